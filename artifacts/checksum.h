// Checks files against the sizes and checksums that metadata.json lists.
#pragma once

#include <cstdint>
#include <filesystem>

#include <run_model/metadata.h>

namespace run_model {

// XXH3 with 64 bits and seed 0, as `xxhsum -H3` prints it. Throws Error(kFile).
std::uint64_t file_xxh3_64(const std::filesystem::path& path);

// Throws Error(kFormat) when the size or the checksum is another, Error(kMismatch) when `metadata`
// lists files, but not this one.
void verify_file(const std::filesystem::path& path, const Metadata& metadata,
                 const std::filesystem::path& metadata_path);

}  // namespace run_model
