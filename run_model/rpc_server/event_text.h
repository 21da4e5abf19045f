// The log of rpc_server.
#pragma once

#include <string>

#include <run_model/rpc/server.h>

namespace run_model {

// "2026-11-22 01:20:33 session 3 192.168.2.1:51234: connected" with a newline. `time` is seconds
// since 1970; local time.
std::string event_text(const rpc::ServerEvent& event, std::int64_t time);

// {"schema_version": 1, "time": "2026-11-22T01:20:33Z", "event": "connected", "warning": false,
// "peer": "192.168.2.1:51234" or null, "session": 3 or null, "message": "…"} on one line.
std::string event_json(const rpc::ServerEvent& event, std::int64_t time);

// The line on standard output that says that clients can connect.
std::string ready_text(const rpc::HostPort& address, bool behind_proxy);
std::string ready_json(const rpc::HostPort& address, bool behind_proxy);

}  // namespace run_model
