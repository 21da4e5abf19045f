// The lists of labels that come with an installed program.
#pragma once

#include <filesystem>

namespace run_model {

// `given` itself; but where it is a plain file name that is not there, and the program's
// installation
// (<prefix>/bin/run_model) has a file of that name in <prefix>/share/run_model/labels, that one.
std::filesystem::path find_labels(const std::filesystem::path& given);

}  // namespace run_model
