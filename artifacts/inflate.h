// Unpacking of deflated data, and the checksum that zip files use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace run_model {

// Unpacks raw deflate data that must give exactly `bytes` bytes. Throws Error(kFormat) naming
// `name` otherwise, before allocating where `bytes` is more than deflate can make of the input.
std::vector<std::byte> inflate_exactly(std::span<const std::byte> packed, std::uint64_t bytes,
                                       const std::string& name);

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t previous = 0);

}  // namespace run_model
