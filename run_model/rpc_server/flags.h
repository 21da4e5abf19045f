// The flags of rpc_server, and all that it says about itself.
#pragma once

#include <cstdint>
#include <string>

#include "run_model/shared/manual.h"

namespace run_model {

// What the command line has set, under gflags' names; the table of the manual has the defaults.
struct ServerFlags {
  std::string host;
  std::int32_t port = 0, port_end = 0;
  std::string key, tracker, custom_addr, proxy, auth_key_file;
  std::int32_t max_sessions = 0;
  double session_timeout = 0, call_timeout = 0, idle_timeout = 0;
  std::string memory_limit, file_limit, work_dir;
  std::int32_t threads = 0;
  bool landlock = true, silent = false, log_json = false;
};

extern ServerFlags server_flags;

extern const Manual kServerManual;

}  // namespace run_model
