// What the first bytes of a file say that it is.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace run_model {

// A noun phrase such as "a tar archive", "TVM parameters", "text" or "of no kind that run_model
// knows", to follow "is". Only for messages: nothing else may depend on it.
std::string file_kind(std::span<const std::byte> bytes);

}  // namespace run_model
