// One client's session: reads its requests from a socket, carries them out, answers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <run_model/rpc/function.h>

namespace run_model::rpc {

enum class SessionPhase : std::uint32_t {
  kWaiting,    // for a request
  kReceiving,  // a request is being read or carried out
  kAnswering,  // part of the answer may have been sent: nothing else may be written to the socket
};

// Which releases of TVM write values as a client does.
enum class Encoding : std::uint32_t { kTvm08, kTvm021 };  // 0.8 to 0.20, 0.21 and later

// What a session is doing, readable from the process that watches over it.
//
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

  // Which one the client speaks, as far as it has shown: kTvm08 until then.
  Encoding encoding() const { return encoding_.load(std::memory_order_relaxed); }
  void set_encoding(Encoding encoding) { encoding_.store(encoding, std::memory_order_relaxed); }

  // What the request is: "function run of GraphExecutor". Cut to what fits.
  void set_doing(std::string_view text);
  std::string doing() const;

 private:
  std::atomic<SessionPhase> phase_{SessionPhase::kWaiting};
  std::atomic<std::uint32_t> requests_{0};
  std::atomic<Encoding> encoding_{Encoding::kTvm08};
  std::array<char, 240> doing_{};
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

struct SessionLimits {
  std::uint64_t message_bytes = std::uint64_t{2}
                                << 30;  // of one request but for copies and uploads
  std::uint64_t allocation_bytes = std::uint64_t{1}
                                   << 38;  // of one tensor; less than what systems overcommit
  std::size_t handles = 100000;            // functions, modules, tensors held at a time
  // How long to look for the next request before sleeping until it comes. Waking a sleeping process
  // costs more than a small call.
  int spin_microseconds = 100;
};

struct SessionOptions {
  SessionLimits limits;
  const Registry* functions = nullptr;  // outlives the session
  SessionProgress* progress = nullptr;  // null: nobody watches
  // Told of what the session does, for the log: "load_module net.so". May be empty.
  std::function<void(const std::string&)> log;
};

enum class SessionEnd {
  kShutdown,      // the client said goodbye
  kDisconnected,  // it was gone between two requests
  kBroken,        // it was gone within a request, or sent what is no request
};

// Serves until the client goes away. `socket` is a connected stream socket after the handshake; the
// caller closes it. Failures of calls are the client's to hear; nothing is thrown for them.
SessionEnd serve_session(int socket, const SessionOptions& options);

}  // namespace run_model::rpc
