// What a session is doing, readable from the process that watches over it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace run_model::rpc {

enum class SessionPhase : std::uint32_t {
  kWaiting,    // for a request
  kReceiving,  // a request is being read or carried out
  kAnswering,  // part of the answer may have been sent: nothing else may be written to the socket
};

// Lies in memory that the session's process shares with its parent; has no pointers. One process
// writes; what the other reads while it writes may be torn, so it is only used for messages and
// after the writer has ended.
class SessionProgress {
 public:
  SessionPhase phase() const { return phase_.load(std::memory_order_acquire); }
  void set_phase(SessionPhase phase) { phase_.store(phase, std::memory_order_release); }

  // Counts requests: a watcher that sees the same number for long knows that one takes long.
  std::uint32_t requests() const { return requests_.load(std::memory_order_relaxed); }
  void begin_request() { requests_.fetch_add(1, std::memory_order_relaxed); }

  // What the request is: "function run of GraphExecutor". Cut to what fits.
  void set_doing(std::string_view text);
  std::string doing() const;

 private:
  std::atomic<SessionPhase> phase_{SessionPhase::kWaiting};
  std::atomic<std::uint32_t> requests_{0};
  std::array<char, 240> doing_{};
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace run_model::rpc
