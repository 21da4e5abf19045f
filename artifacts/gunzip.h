// Unpacking of whole gzip files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace run_model {

bool is_gzip(std::span<const std::byte> bytes);

// The unpacked content; a file of several members gives them one after the other. Throws
// Error(kFormat) naming `name` when it is damaged or cut off (its CRC-32 and length are checked),
// or unpacks to more than `limit` bytes.
std::vector<std::byte> gunzip(std::span<const std::byte> packed, std::size_t limit,
                              const std::string& name);

}  // namespace run_model
