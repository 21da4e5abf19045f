// The forms that a zoo keeps the artifacts of a model and a target in.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include <run_model/package.h>

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

}  // namespace run_model
