// Whole files into memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/as_text.h"

namespace run_model {

// The largest file of arrays: 4 GiB, and no more than a 32-bit address space has room for beside
// the arrays themselves.
inline constexpr auto kMaxArrayFileBytes = static_cast<std::size_t>(
    std::min<std::uint64_t>(std::uint64_t{1} << 32, std::numeric_limits<std::size_t>::max() / 4));

// The bytes of a file, which may also be a pipe. Throws Error(kFile) when it cannot be read, and
// Error(kFormat) when it holds more than `limit` bytes; `what` says in the sentence what the file
// was expected to be, for instance "a NumPy file".
std::vector<std::byte> read_file(const std::filesystem::path& path, std::size_t limit,
                                 std::string_view what);

// The first `limit` bytes, or fewer where the file is shorter. Throws Error(kFile).
std::vector<std::byte> read_file_start(const std::filesystem::path& path, std::size_t limit);

}  // namespace run_model
