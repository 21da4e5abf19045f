#include "run_model/shared/stop_signals.h"

#include <signal.h>

#include <atomic>

namespace run_model {
namespace {

std::atomic<int> g_noted{0};
static_assert(std::atomic<int>::is_always_lock_free);  // or a handler must not touch it

}  // namespace

void handle_stop_signals(void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  struct sigaction before{};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
    ::sigaction(SIGHUP, &action, nullptr);
  }
}

void note_stop_signals() {
  handle_stop_signals([](int signal) { g_noted = signal; }, static_cast<int>(SA_RESETHAND));
}

int noted_stop_signal() { return g_noted; }

}  // namespace run_model
