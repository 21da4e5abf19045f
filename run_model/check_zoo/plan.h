// What check_zoo is going to check, and what it leaves out and why: the forms of artifacts, the
// golden cases, and the plan made of them.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/package.h>
#include "artifacts/targets.h"
#include "run_model/check_zoo/settings.h"
#include "runtime/cpu/features.h"

namespace run_model {

// Beneath <zoo>/<model>/<target>/:
//   triple   model.so, model.json, model.params and metadata.json
//   flat     forms/flat/<model>_tvm.{so,json,params}
//   mod      forms/mod/mod.{so,json,params}
//   tar      forms/tar/<model>.tar, a package of tvmc
//   single   forms/single/<model>.so, with graph and parameters inside
//   linked   forms/linked/, a library with the parameters inside, and a graph
//   mlf      forms/mlf/<model>.tar, Model Library Format, which has to be linked for the machine
//   that
//            runs it: forms/mlf/linked/ is what scripts/link_mlf makes of it
inline constexpr std::array<std::string_view, 7> kForms{"triple", "flat",   "mod", "tar",
                                                        "single", "linked", "mlf"};

struct FormLocation {
  std::filesystem::path place;  // the file or folder that is there if the artifact is
  PackageRequest request;       // how open_package finds it
};

// `form` is one of kForms.
FormLocation locate_form(const std::filesystem::path& zoo, const std::string& model,
                         const std::string& target, std::string_view form);

struct GoldenFile {
  std::string picture;  // "chelsea"
  std::filesystem::path path;
};

// The models that have at least one case <folder>/<model>/<picture>.json, sorted.
std::vector<std::string> golden_models(const std::vector<std::filesystem::path>& folders);

// The cases of a model, sorted by picture. Where two folders have the same picture, the earlier
// folder counts.
std::vector<GoldenFile> golden_files(const std::vector<std::filesystem::path>& folders,
                                     const std::string& model);

// One form of one model's artifact for one target: one worker process.
struct PlannedJob {
  std::string model;
  std::string target;
  std::string form;
  std::vector<std::string> pictures;  // never empty but for a model without golden cases
  std::string skipped_because;        // empty: it is going to be run
  // The emulator with its options and the program that it runs; empty: this very program.
  std::vector<std::string> command;
  bool on_device = false;  // a driver compiles its kernels first, and may compute on the CPU
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
