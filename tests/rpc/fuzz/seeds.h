// What clients send in a whole session, as a start for the fuzzer.
#pragma once

#include <string>
#include <vector>

namespace run_model::rpc {

// Each is the bytes of one client, from its first request on.
std::vector<std::string> session_seeds();

}  // namespace run_model::rpc
