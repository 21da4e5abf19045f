#include "run_model/rpc_server/stop_signal.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <run_model/error.h>

namespace run_model {
namespace {

int g_write_end = -1;

void on_signal(int) {
  const int saved = errno;
  static_cast<void>(!::write(g_write_end, "s", 1));
  errno = saved;
}

}  // namespace

int watch_stop_signals() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorKind::kInternal, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  g_write_end = ends[1];
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  return ends[0];
}

}  // namespace run_model
