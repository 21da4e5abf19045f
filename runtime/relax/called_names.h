// What is looked up by name when a model runs, known before: the functions of an executable that
// are none of its own, and those of the virtual machine that are called by functions compiled as a
// whole (TVM's exec_mode="compiled") and by kernels.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/elf/file.h"
#include "runtime/relax/executable.h"

namespace run_model {

// TVM's functions that the code of a library with a Relax executable names, each once and in the
// file's order: the texts among its constants that begin as TVM's names do ("vm.builtin.",
// "relax.run.", "tvm.contrib.", "runtime.disco."). `file` has the bytes that `elf` was parsed
// from. Functions of other names, which a user's program would have registered with TVM, cannot be
// told from other texts, and are refused when they are called.
std::vector<std::string> called_names(const ElfFile& elf, std::span<const std::byte> file);

// Throws Error(kIncompatible) for the first of what `executable` lists and of these that neither
// the library nor run_model has.
void check_called_names(const RelaxExecutable& executable, const ElfFile& elf,
                        std::span<const std::byte> file);

}  // namespace run_model
