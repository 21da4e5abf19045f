// Runs one picture through a network and compares what comes out with a golden case.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "artifacts/references/golden_case.h"
#include "artifacts/references/tolerance_table.h"
#include "run_model/check_zoo/result.h"
#include "run_model/shared/loaded_package.h"

namespace run_model {

struct JudgeContext {
  std::string model;
  std::string target;
  std::filesystem::path images;
  const ToleranceTable* tolerances = nullptr;
  std::vector<std::string> labels;  // empty: only those of the golden cases
};

// Everything that a case demands is checked, and every failure is told: that the artifact was
// compiled from the file that the reference ran and is prepared for the same preprocessing
// (where it has metadata), that the picture is the reference's, that the network's input is bit
// for bit, and the rules of <run_model/score_comparison.h>, or of result_comparison.h for tasks. A
// picture that is not there is skipped. Throws nothing: an Error becomes a failure.
CaseResult judge_case(LoadedPackage& loaded, const std::filesystem::path& golden,
                      const std::string& picture, const JudgeContext& context);

// Fills the network's input with a case's picture. Returns it, and in `report` what was done.
// Throws Error(kMismatch) when the network has no such input, Error(kFile | kImage) for the
// picture.
Tensor fill_input(GraphExecutor& executor, const GoldenCase& golden,
                  const std::filesystem::path& images, PreprocessReport* report = nullptr);

}  // namespace run_model
