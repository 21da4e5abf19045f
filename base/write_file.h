// Files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string_view>

namespace run_model {

// Writes the pieces one after another to a temporary file beside `path` and renames it, so that a
// reader sees the old file or the new one and a failure leaves nothing behind. A path that is not a
// regular file (/dev/stdout, a pipe) is written to directly. Throws Error(kFile).
void write_file(const std::filesystem::path& path,
                std::span<const std::span<const std::byte>> pieces);

inline void write_file(const std::filesystem::path& path,
                       std::initializer_list<std::span<const std::byte>> pieces) {
  write_file(path, std::span(pieces.begin(), pieces.size()));
}

// Whether the path is such a one.
bool exists_as_special_file(const std::filesystem::path& path);

// Throws what write_file() would, where that can be known before there is anything to write. Leaves
// the file as it is.
void check_can_write(const std::filesystem::path& path);

inline void write_text_file(const std::filesystem::path& path, std::string_view text) {
  write_file(path, {std::as_bytes(std::span(text))});
}

}  // namespace run_model
