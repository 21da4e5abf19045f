// What check_zoo is going to check, and what it leaves out and why.
#pragma once

#include <string>
#include <vector>

#include "artifacts/target_list.h"
#include "run_model/check_zoo/settings.h"
#include "runtime/cpu/features.h"

namespace run_model {

// One form of one model's artifact for one target: one worker process.
struct PlannedJob {
  std::string model;
  std::string target;
  std::string form;
  std::vector<std::string> pictures;  // never empty but for a model without golden cases
  std::string skipped_because;        // empty: it is going to be run
  // The emulator with its options and the program that it runs; empty: this very program.
  std::vector<std::string> command;
};

// The machine that check_zoo runs on; tests describe others.
struct CheckHost {
  std::string machine;  // as `uname -m` says
  CpuFeatures cpu;
  std::filesystem::path program;  // of check_zoo itself
  std::string search_path;        // PATH

  static CheckHost current();
};

struct Plan {
  std::vector<PlannedJob> jobs;  // sorted by model, then in the order of the targets and forms
  // Targets of the list that the zoo has no artifact of and that nobody asked for.
  std::vector<std::string> targets_left_out;
};

// Throws Error(kUsage) for a target that is not in the list, and for a picture or a model that no
// golden case has.
Plan plan_checks(const CheckSettings& settings, const std::vector<ListedTarget>& targets,
                 const CheckHost& host);

}  // namespace run_model
