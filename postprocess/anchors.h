// Anchors from the options that generate them.
#pragma once

#include <vector>

#include <run_model/task.h>

namespace run_model {

// In the order of the generator's own. Throws Error(kMismatch) where there would be millions.
std::vector<Anchor> generate_anchors(const AnchorSource& source);

}  // namespace run_model
