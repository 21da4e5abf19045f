// Reading a picture file into memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace run_model {

// The contents of the file at `path`, which may be a pipe. Throws Error(kFile) when it is missing,
// a directory or unreadable, Error(kImage) when it is larger than kMaxImageFileBytes.
std::vector<std::uint8_t> read_picture_file(const std::string& path);

}  // namespace run_model
