#include "artifacts/cpu_check.h"

#include <run_model/error.h>
#include "artifacts/target_list.h"
#include "base/text.h"
#include "runtime/elf/host.h"
#include "runtime/elf/target.h"

namespace run_model {

void check_cpu(const Package& package, const CpuFeatures& cpu) {
  if (!package.metadata || !package.metadata->features) return;
  const std::vector<std::string> missing = missing_features(*package.metadata->features, cpu);
  if (missing.empty()) return;
  std::string list;
  for (const std::string& name : missing) list += (list.empty() ? "" : ", ") + name;
  const std::string target =
      package.target.empty() ? "" : " for the target " + in_quotes(package.target);
  throw Error(ErrorKind::kIncompatible,
              path_in_quotes(package.files.library) + " was compiled" + target +
                  ", which needs what this CPU lacks: " + list,
              fitting_target_hint(cpu));
}

std::string fitting_target_hint(const CpuFeatures& cpu) {
  const std::string machine = target_name(Host::current().target);
  const auto best = best_target(built_in_targets(), machine, cpu);
  if (!best) return "compile the model with scripts/compile_model for this CPU";
  return "compile the model with scripts/compile_model --target " + best->name +
         ", which fits this CPU";
}

}  // namespace run_model
