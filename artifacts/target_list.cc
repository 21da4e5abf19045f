#include "artifacts/target_list.h"

#include "artifacts/target_list_text.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxTargetsBytes = std::size_t{1} << 20;

std::vector<std::string> strings(const JsonField& field) {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < field.array_size(); ++i) items.push_back(field.at(i).string());
  return items;
}

ListedTarget parse_target(const JsonField& field) {
  ListedTarget target;
  target.name = field.member("name").string();
  target.title = field.member("title").string();
  target.machine = text_or_empty(field, "machine");
  target.tvm = field.member("tvm").string();
  target.preset = field.member("preset").string();
  target.emulator = strings(field.member("emulator"));
  target.features = strings(field.member("features"));
  return target;
}

// "armv7l hard-float" and "armv7l" are the same machine here.
std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

}  // namespace

std::vector<ListedTarget> parse_target_list(std::string_view text, const std::string& name) {
  const JsonDocument document(text, name);
  const JsonField root = document.root();
  check_schema_version(root, kTargetListSchema, name, "use the targets.json of this version");
  const JsonField list = root.member("targets");
  std::vector<ListedTarget> targets;
  for (std::size_t i = 0; i < list.array_size(); ++i) targets.push_back(parse_target(list.at(i)));
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
    if (!missing_features(target.features, cpu).empty()) continue;
    if (!best || target.features.size() > best->features.size()) best = target;
  }
  return best;
}

}  // namespace run_model
