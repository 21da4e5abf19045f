#include "artifacts/targets.h"

#include <algorithm>
#include <memory>

#include <run_model/error.h>
#include "artifacts/target_list_text.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "runtime/elf/file.h"
#include "runtime/elf/host.h"
#include "runtime/elf/target.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxTargetsBytes = std::size_t{1} << 20;

ListedTarget parse_target(const JsonField& field) {
  ListedTarget target;
  target.name = field.member("name").string();
  target.title = field.member("title").string();
  target.machine = text_or_empty(field, "machine");
  target.tvm = field.member("tvm").string();
  target.preset = field.member("preset").string();
  target.emulator = strings_field(field.member("emulator"));
  target.features = strings_field(field.member("features"));
  return target;
}

// A kind of GPU, beside the CPU that its host code is for.
ListedTarget parse_device(const JsonField& field, const std::vector<ListedTarget>& targets) {
  const JsonField host = field.member("host");
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const ListedTarget& target) {
    return target.name == host.string();
  });
  if (found == targets.end()) host.fail("is " + in_quotes(host.string()) + ", which is no target");
  ListedTarget target = *found;
  target.name = field.member("name").string();
  target.title = field.member("title").string();
  target.tvm = field.member("tvm").string();
  target.device = target.tvm.substr(0, target.tvm.find(' '));
  target.emulator.clear();  // emulates no GPU
  return target;
}

// "armv7l hard-float" and "armv7l" are the same machine here.
std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

std::optional<ElfTarget> target_of(const std::filesystem::path& path) {
  try {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path, "library");
    return ElfFile::parse(file->bytes(), path.string()).target();
  } catch (const Error&) {
    return std::nullopt;
  }
}

constexpr std::string_view kNative = "native";

using Candidates = std::vector<TargetCandidate>;

std::vector<std::string> missing_for(const TargetCandidate& candidate, const CpuFeatures& cpu) {
  if (!candidate.features) return {};
  return missing_features(*candidate.features, cpu);
}

std::string list_targets(const Candidates& candidates, const CpuFeatures& cpu) {
  return comma_list(candidates, [&](const TargetCandidate& candidate) {
    const std::string machine = library_machine(candidate.library);
    std::string text = candidate.name + " (" + (machine.empty() ? "no usable library" : machine);
    if (library_fits_this_machine(candidate.library)) {
      const std::vector<std::string> missing = missing_for(candidate, cpu);
      for (std::size_t i = 0; i < missing.size(); ++i) {
        text += (i == 0 ? ", needs " : " ") + missing[i];
      }
    }
    return text + ")";
  });
}

bool holds_all(const std::vector<std::string>& features, const std::vector<std::string>& others) {
  return std::all_of(others.begin(), others.end(), [&](const std::string& name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  });
}

// Of `fitting`, the only one whose features hold those of all others that list any.
std::optional<std::size_t> most_demanding(const Candidates& candidates,
                                          const std::vector<std::size_t>& fitting) {
  std::optional<std::size_t> found;
  for (const std::size_t i : fitting) {
    if (!candidates[i].features) continue;
    const bool holds = std::all_of(fitting.begin(), fitting.end(), [&](std::size_t j) {
      return !candidates[j].features || holds_all(*candidates[i].features, *candidates[j].features);
    });
    if (!holds) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

std::vector<ListedTarget> parse_target_list(std::string_view text, const std::string& name) {
  const JsonDocument document(text, name);
  const JsonField root = document.root();
  check_schema_version(root, kTargetListSchema, name, "use the targets.json of this version");
  const JsonField list = root.member("targets");
  std::vector<ListedTarget> targets;
  for (std::size_t i = 0; i < list.array_size(); ++i) targets.push_back(parse_target(list.at(i)));
  if (const auto devices = find_member(root, "devices")) {
    for (std::size_t i = 0; i < devices->array_size(); ++i) {
      targets.push_back(parse_device(devices->at(i), targets));
    }
  }
  return targets;
}

std::vector<ListedTarget> read_target_list(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxTargetsBytes, "the list of targets");
  return parse_target_list(as_text(bytes), path_in_quotes(path));
}

const std::vector<ListedTarget>& built_in_targets() {
  static const std::vector<ListedTarget> kTargets =
      parse_target_list(kTargetListText, "the built-in list of targets");
  return kTargets;
}

std::optional<ListedTarget> best_target(const std::vector<ListedTarget>& targets,
                                        std::string_view machine, const CpuFeatures& cpu) {
  std::optional<ListedTarget> best;
  for (const ListedTarget& target : targets) {
    if (target.machine.empty() || target.machine != first_word(machine)) continue;
    if (!target.device.empty()) continue;
    if (!missing_features(target.features, cpu).empty()) continue;
    if (!best || target.features.size() > best->features.size()) best = target;
  }
  return best;
}

std::string library_machine(const std::filesystem::path& path) {
  const std::optional<ElfTarget> target = target_of(path);
  return target ? target_name(*target) : "";
}

bool library_fits_this_machine(const std::filesystem::path& path) {
  const std::optional<ElfTarget> found = target_of(path);
  return found && target_fits(*found, Host::current().target);
}

std::size_t choose_target(const Candidates& candidates, const std::string& wanted,
                          const std::filesystem::path& folder, const CpuFeatures& cpu) {
  if (!wanted.empty()) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].name == wanted) return i;
    }
    throw Error(ErrorKind::kFile,
                path_in_quotes(folder) + " has no target " + in_quotes(wanted) + ", but " +
                    list_targets(candidates, cpu),
                "give one of these as --target, or compile the model for it");
  }
  if (candidates.size() == 1) return 0;

  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!library_fits_this_machine(candidates[i].library)) continue;
    if (!missing_for(candidates[i], cpu).empty()) continue;
    if (candidates[i].name == kNative) return i;
    fitting.push_back(i);
  }
  if (fitting.empty()) {
    throw Error(ErrorKind::kIncompatible,
                path_in_quotes(folder) + " has no target for this machine, but " +
                    list_targets(candidates, cpu),
                fitting_target_hint(cpu));
  }
  if (fitting.size() == 1) return fitting.front();
  if (const auto best = most_demanding(candidates, fitting)) return *best;
  throw Error(ErrorKind::kUsage,
              path_in_quotes(folder) +
                  " has several targets for this machine: " + list_targets(candidates, cpu),
              "choose one with --target");
}

void check_cpu(const Package& package, const CpuFeatures& cpu) {
  if (!package.metadata || !package.metadata->features) return;
  const std::vector<std::string> missing = missing_features(*package.metadata->features, cpu);
  if (missing.empty()) return;
  const std::string target =
      package.target.empty() ? "" : " for the target " + in_quotes(package.target);
  throw Error(ErrorKind::kIncompatible,
              path_in_quotes(package.files.library) + " was compiled" + target +
                  ", which needs what this CPU lacks: " + comma_list(missing),
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
