// Unpacking of deflated data: whole gzip files, and the bare streams in zip files with their
// checksum.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Unpacks raw deflate data that must give exactly `bytes` bytes. Throws Error(kFormat) naming
// `name` otherwise, before allocating where `bytes` is more than deflate can make of the input.
std::vector<std::byte> inflate_exactly(std::span<const std::byte> packed, std::uint64_t bytes,
                                       const std::string& name);

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t previous = 0);

}  // namespace run_model
