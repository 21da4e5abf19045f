// Keeps damaged libraries away from the dynamic loader, which trusts what it reads.
#pragma once

#include <cstdint>

#include "runtime/elf/file.h"

namespace run_model {

// Whether [address, address + length) of the loaded image lies in one segment that has all of
// `flags` (PF_R, PF_W, PF_X).
bool in_image(const ElfFile& file, std::uint64_t address, std::uint64_t length,
              std::uint32_t flags);

// Follows everything that the loader follows without looking: segments, dynamic entries, hash
// tables, symbols, versions, notes, relocations, initialisers. Throws Error(kFormat) where it would
// read, write or jump outside of the library. A damaged instruction or constant cannot be told from
// a sound one: that is what the checksums in an artifact's metadata are for.
void check_loadable(const ElfFile& file);

}  // namespace run_model
