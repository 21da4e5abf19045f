// One client's session: reads its requests from a socket, carries them out, answers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <run_model/rpc/registry.h>
#include <run_model/rpc/session_progress.h>

namespace run_model::rpc {

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
