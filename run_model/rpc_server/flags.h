// The flags of rpc_server.
#pragma once

#include <gflags/gflags.h>

DECLARE_string(host);
DECLARE_int32(port);
DECLARE_int32(port_end);
DECLARE_string(key);
DECLARE_string(tracker);
DECLARE_string(custom_addr);
DECLARE_string(proxy);
DECLARE_string(auth_key_file);
DECLARE_int32(max_sessions);
DECLARE_double(session_timeout);
DECLARE_double(call_timeout);
DECLARE_string(memory_limit);
DECLARE_string(file_limit);
DECLARE_string(work_dir);
DECLARE_int32(threads);
DECLARE_bool(silent);
DECLARE_bool(log_json);
