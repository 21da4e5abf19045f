// What compiled code looks up by name when it runs, known before: the virtual machine's functions
// that are called by functions compiled as a whole (TVM's exec_mode="compiled") and by kernels.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/elf/file.h"

namespace run_model {

// TVM's functions that the code of a library with a Relax executable names, each once and in the
// file's order: the texts among its constants that begin as TVM's names do ("vm.builtin.",
// "relax.run.", "tvm.contrib.", "runtime.disco."). `file` has the bytes that `elf` was parsed
// from. Functions of other names, which a user's program would have registered with TVM, cannot be
// told from other texts, and are refused when they are called.
std::vector<std::string> called_names(const ElfFile& elf, std::span<const std::byte> file);

// Throws Error(kIncompatible) for the first of them that neither the library nor run_model has.
void check_called_names(const ElfFile& elf, std::span<const std::byte> file);

}  // namespace run_model
