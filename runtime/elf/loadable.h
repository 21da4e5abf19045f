// Keeps damaged libraries away from the dynamic loader, which trusts what it reads.
#pragma once

#include "runtime/elf/file.h"

namespace run_model {

// Follows everything that the loader follows without looking: segments, dynamic entries, hash
// tables, symbols, versions, notes, relocations, initialisers. Throws Error(kFormat) where it would
// read, write or jump outside of the library. A damaged instruction or constant cannot be told from
// a sound one: that is what the checksums in an artifact's metadata are for.
void check_loadable(const ElfFile& file);

}  // namespace run_model
