// Whether this program can run a library: decided before it is loaded, and put into words when the
// dynamic loader refuses it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <run_model/error.h>
#include "runtime/elf/file.h"
#include "runtime/elf/host.h"

namespace run_model {

// Which compiler made a library, as far as its calling convention shows by the symbols.
enum class LibraryKind {
  kTvm,        // TVM 0.6 … 0.20
  kTvm021,     // TVM 0.21: functions take TVMFFIAny arguments
  kTvm022,     // TVM 0.22 and later: as 0.21, and their names begin with "__tvm_ffi_"
  kTvmItself,  // libtvm.so or libtvm_runtime.so
  kEmpty,      // no functions at all, as of a model that only passes its inputs on
  kOther,      // a library that TVM has not made
};

LibraryKind library_kind(const ElfFile& file);

// The functions that the library defines for its users: without the C runtime's _init and _fini and
// without helpers whose names begin with two underscores.
std::vector<std::string_view> compiled_functions(const ElfFile& file);

// What the names of compiled functions begin with since TVM 0.22.
inline constexpr char kFfiPrefix[] = "__tvm_ffi_";

// The undefined symbols that loading the library would stop at.
std::vector<std::string_view> missing_symbols(const ElfFile& file, const Host& host);

// Throws Error(kIncompatible) when the library is for another machine, C library or generation of
// TVM, or needs functions that `host` has not; Error(kFormat) when it is no compiled model or
// damaged where the dynamic loader would trust it. Missing libraries among DT_NEEDED are left to
// the loader.
void check_library(const ElfFile& file, const Host& host);

// The Error(kIncompatible) for a library that passed check_library() and that dlopen() refused with
// the message `reason`.
Error load_error(const ElfFile& file, const Host& host, std::string_view reason);

}  // namespace run_model
