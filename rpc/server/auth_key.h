// The file of --auth-key-file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace run_model::rpc {

// The file's bytes without white space (of ASCII) at their end. Throws Error(kFile) for a file that
// cannot be read or that others than its owner can read or write, Error(kFormat) for fewer than 16
// bytes or more than 4096.
std::vector<std::byte> read_auth_key(const std::filesystem::path& path);

}  // namespace run_model::rpc
