#include "run_model/rpc_server/flags.h"

// help.cc says the same in the words and the order that users see.
DEFINE_string(host, "127.0.0.1", "the address to listen on");
DEFINE_int32(port, 9090, "the first port to try");
DEFINE_int32(port_end, 9199, "the port before which to stop trying");
DEFINE_string(key, "", "the kind of board");
DEFINE_string(tracker, "", "HOST:PORT of TVM's RPC tracker");
DEFINE_string(custom_addr, "", "HOST or HOST:PORT that the tracker tells clients");
DEFINE_string(proxy, "", "HOST:PORT of TVM's RPC proxy");
DEFINE_string(auth_key_file, "", "the key that clients must know");
DEFINE_int32(max_sessions, 1, "sessions at a time");
DEFINE_double(session_timeout, 0, "seconds of a session, 0 for no limit");
DEFINE_double(call_timeout, 600, "seconds of one call, 0 for no limit");
DEFINE_string(memory_limit, "0", "memory of a session, 0 for no limit");
DEFINE_string(file_limit, "1G", "files of a session");
DEFINE_string(work_dir, "", "the folder for files of sessions");
DEFINE_int32(threads, 0, "threads of a session, 0 for one for each core");
DEFINE_bool(silent, false, "log warnings only");
DEFINE_bool(log_json, false, "log JSON lines");
