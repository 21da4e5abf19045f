// The program's result on standard output.
#pragma once

#include <string_view>

namespace run_model {

// Writes all of it. Throws Error(kFile) when that fails, as on a full disk or a closed pipe.
void write_standard_output(std::string_view text);

}  // namespace run_model
