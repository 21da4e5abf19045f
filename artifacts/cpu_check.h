// Decides from an artifact's metadata whether this CPU runs its code.
#pragma once

#include <run_model/package.h>
#include "runtime/cpu/features.h"

namespace run_model {

// Throws Error(kIncompatible) naming the features that the metadata lists and `cpu` lacks, the
// artifact's target, and the target that would fit. Metadata that lists none says nothing, and
// neither does an artifact without metadata: those are let through.
void check_cpu(const Package& package, const CpuFeatures& cpu = this_cpu());

// "compile the model with scripts/compile_model --target x86_64_v2, which fits this CPU": what to
// do where no artifact fits `cpu` on the machine that this program was built for.
std::string fitting_target_hint(const CpuFeatures& cpu);

}  // namespace run_model
