// Which machine a library is for, to choose among the targets that a model was compiled for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace run_model {

// "x86_64", "armv7l hard-float" and so on; empty when the file is no readable ELF file.
std::string library_machine(const std::filesystem::path& path);

// Whether a library of that name could be loaded into this process, going by its class, byte order
// and machine. False when the file is no readable ELF file.
bool library_fits_this_machine(const std::filesystem::path& path);

}  // namespace run_model
