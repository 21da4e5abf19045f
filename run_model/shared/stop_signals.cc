#include "run_model/shared/stop_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include <run_model/error.h>

namespace run_model {
namespace {

std::atomic<int> g_noted{0};
std::atomic<int> g_write_end{-1};
static_assert(std::atomic<int>::is_always_lock_free);  // or a handler must not touch it

void note(int signal) {
  const int saved = errno;
  g_noted = signal;
  static_cast<void>(!::write(g_write_end, "s", 1));
  errno = saved;
}

}  // namespace

int note_stop_signals(SecondSignal second) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorKind::kInternal, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  g_write_end = ends[1];
  struct sigaction action{};
  action.sa_handler = note;
  action.sa_flags = second == SecondSignal::kIsNoted ? SA_RESTART : static_cast<int>(SA_RESETHAND);
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  struct sigaction before{};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
    ::sigaction(SIGHUP, &action, nullptr);
  }
  return ends[0];
}

int noted_stop_signal() { return g_noted; }

bool wait_for_standard_input(int stop) {
  std::array<pollfd, 2> waited{{{STDIN_FILENO, POLLIN, 0}, {stop, POLLIN, 0}}};
  while (::poll(waited.data(), waited.size(), -1) < 0 && errno == EINTR) {
  }
  return waited[1].revents == 0;
}

}  // namespace run_model
