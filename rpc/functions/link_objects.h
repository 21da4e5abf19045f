// Makes a library of uploaded objects, where the board has a compiler.
#pragma once

#include <filesystem>

namespace run_model::rpc {

// `input` is a tar archive of objects and C or C++ sources (lib.export_library("net.tar")) or one
// object. Links them to the library `output` with the first of $CXX, c++, g++, clang++, cc, gcc and
// clang that the PATH has, without a shell, and returns its path. Throws Error(kIncompatible) where
// there is no compiler, naming what to do on the host; Error(kFormat) for a damaged archive or one
// that holds anything else; Error(kMismatch) with the compiler's words when it fails.
std::filesystem::path link_objects(const std::filesystem::path& input,
                                   const std::filesystem::path& output);

}  // namespace run_model::rpc
