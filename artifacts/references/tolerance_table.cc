#include "artifacts/references/tolerance_table.h"

#include <algorithm>
#include <array>

#include <run_model/error.h>
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxTolerancesBytes = std::size_t{1} << 20;

double not_negative(const JsonField& field) {
  const double value = field.number();
  if (value < 0) field.fail("is less than 0");
  return value;
}

// Absent is any; an empty name would be the same by mistake.
std::string name_or_any(const JsonField& object, std::string_view key) {
  if (!object.has(key)) return "";
  const std::string& name = object.member(key).string();
  if (name.empty()) object.member(key).fail("is empty");
  return name;
}

std::string reason_field(const JsonField& entry) {
  const std::string& why = entry.member("why").string();
  if (why.empty()) entry.member("why").fail("is empty: every tolerance needs its reason");
  return why;
}

ToleranceEntry parse_entry(const JsonField& field) {
  constexpr std::array<std::string_view, 7> kKnown{"model", "target", "kind", "atol",
                                                   "rtol",  "order",  "why"};
  refuse_other_members(field, kKnown);
  ToleranceEntry entry;
  entry.model = name_or_any(field, "model");
  entry.target = name_or_any(field, "target");
  entry.kind = parsed_field(field.member("kind"), parse_score_kind);
  entry.tolerance.atol = not_negative(field.member("atol"));
  entry.tolerance.rtol = not_negative(field.member("rtol"));
  entry.tolerance.order = not_negative(field.member("order"));
  entry.why = reason_field(field);
  return entry;
}

double share_of_all(const JsonField& field) {
  if (not_negative(field) > 1) field.fail("is more than 1");
  return field.number();
}

ResultToleranceEntry parse_results(const JsonField& field) {
  constexpr std::array<std::string_view, 11> kKnown{"model",  "target",    "kind", "iou",
                                                    "score",  "pixels",    "map",  "levels",
                                                    "cosine", "agreement", "why"};
  refuse_other_members(field, kKnown);
  ResultToleranceEntry entry;
  entry.model = name_or_any(field, "model");
  entry.target = name_or_any(field, "target");
  entry.tolerance = {share_of_all(field.member("iou")), not_negative(field.member("score")),
                     not_negative(field.member("pixels")), share_of_all(field.member("agreement"))};
  if (const auto map = find_member(field, "map")) entry.tolerance.map = not_negative(*map);
  if (const auto levels = find_member(field, "levels")) {
    entry.tolerance.levels = not_negative(*levels);
  }
  if (const auto cosine = find_member(field, "cosine")) {
    entry.tolerance.cosine = share_of_all(*cosine);
  }
  entry.why = reason_field(field);
  return entry;
}

bool same_kind(const ToleranceEntry& a, const ToleranceEntry& b) { return a.kind == b.kind; }
bool same_kind(const ResultToleranceEntry& /*a*/, const ResultToleranceEntry& /*b*/) {
  return true;
}

template <typename Entry>
bool same_place(const Entry& a, const Entry& b) {
  return a.model == b.model && a.target == b.target && same_kind(a, b);
}

template <typename Entry>
void add(std::vector<Entry>& entries, const Entry& entry, const JsonField& field) {
  for (const Entry& other : entries) {
    if (same_place(entry, other)) field.fail("is for the same as an entry before it");
  }
  entries.push_back(entry);
}

// 0: does not fit. A model's own entry comes before a target's.
template <typename Entry>
int fitness(const Entry& entry, std::string_view model, std::string_view target) {
  if (!entry.model.empty() && entry.model != model) return 0;
  if (!entry.target.empty() && entry.target != target) return 0;
  return 1 + (entry.target.empty() ? 0 : 1) + (entry.model.empty() ? 0 : 2);
}

void check_complete(const ToleranceTable& table, const JsonField& entries) {
  for (const ScoreKind kind : {ScoreKind::kLogits, ScoreKind::kProbabilities}) {
    const ToleranceEntry wanted{"", "", kind, {}, ""};
    const bool there =
        std::any_of(table.entries.begin(), table.entries.end(),
                    [&](const ToleranceEntry& entry) { return same_place(entry, wanted); });
    if (there) continue;
    entries.fail("have none without model and target for " + std::string(score_kind_name(kind)));
  }
}

}  // namespace

const ToleranceEntry& ToleranceTable::find(std::string_view model, std::string_view target,
                                           ScoreKind kind) const {
  const auto fits = [&](const ToleranceEntry& entry) {
    return entry.kind == kind ? fitness(entry, model, target) : 0;
  };
  const auto best = std::max_element(
      entries.begin(), entries.end(),
      [&](const ToleranceEntry& a, const ToleranceEntry& b) { return fits(a) < fits(b); });
  if (best == entries.end() || fits(*best) == 0) {
    throw Error(ErrorKind::kInternal, "there is no tolerance for " + std::string(model));
  }
  return *best;
}

const ResultToleranceEntry& ToleranceTable::find_results(std::string_view model,
                                                         std::string_view target) const {
  const ResultToleranceEntry* best = nullptr;
  int most = 0;
  for (const ResultToleranceEntry& entry : results) {
    const int fits = fitness(entry, model, target);
    if (fits <= most) continue;
    most = fits;
    best = &entry;
  }
  if (best == nullptr) {
    throw Error(
        ErrorKind::kFormat,
        "the table of tolerances has no entry of the kind \"results\" for " + in_quotes(model),
        "add one, as artifacts/tolerances.json has it");
  }
  return *best;
}

ToleranceTable parse_tolerances(std::string_view text, const std::string& name) {
  const JsonDocument document(text, name);
  const JsonField root = document.root();
  check_schema_version(root, kToleranceSchema, name, "use a newer check_zoo");
  const JsonField entries = root.member("entries");
  ToleranceTable table;
  for (std::size_t i = 0; i < entries.array_size(); ++i) {
    const JsonField field = entries.at(i);
    if (field.member("kind").string() == "results") {
      add(table.results, parse_results(field), field);
    } else {
      add(table.entries, parse_entry(field), field);
    }
  }
  check_complete(table, entries);
  return table;
}

ToleranceTable read_tolerances(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes =
      read_file(path, kMaxTolerancesBytes, "a table of tolerances");
  return parse_tolerances(as_text(bytes), path_in_quotes(path));
}

}  // namespace run_model
