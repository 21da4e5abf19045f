// Whole files into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace run_model {

// The bytes of a file, which may also be a pipe. Throws Error(kFile) when it cannot be read, and
// Error(kFormat) when it holds more than `limit` bytes; `what` says in the sentence what the file
// was expected to be, for instance "a NumPy file".
std::vector<std::byte> read_file(const std::filesystem::path& path, std::size_t limit,
                                 std::string_view what);

// The first `limit` bytes, or fewer where the file is shorter. Throws Error(kFile).
std::vector<std::byte> read_file_start(const std::filesystem::path& path, std::size_t limit);

// The same bytes seen as characters.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace run_model
