// Puts the dynamic loader's messages into words that say what to do.
#pragma once

#include <string_view>

#include <run_model/error.h>
#include "runtime/elf/file.h"
#include "runtime/elf/host.h"

namespace run_model {

// The Error(kIncompatible) for a library that passed check_library() and that dlopen() refused with
// the message `reason`.
Error load_error(const ElfFile& file, const Host& host, std::string_view reason);

}  // namespace run_model
