// The part of check_loadable() that is about relocations.
#pragma once

#include <cstdint>

#include "runtime/elf/file.h"

namespace run_model {

// DT_RELR, the table of packed relocations: missing from older elf.h.
inline constexpr std::uint64_t kTagRelr = 36;

// Throws Error(kFormat) when a relocation is of a kind that shared libraries do not have, writes
// outside of the library's writable memory, points outside of the library or names a symbol that
// does not exist. Kinds are only known for x86, Arm and RISC-V; MIPS is not looked at.
void check_relocations(const ElfFile& file);

}  // namespace run_model
