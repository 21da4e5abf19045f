#include "artifacts/references/tolerance_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "artifacts/targets.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using nlohmann::json;

json entry(const std::string& kind, double atol) {
  return {{"kind", kind}, {"atol", atol}, {"rtol", 0.5}, {"order", 0.25}, {"why", "measured"}};
}

json complete_table() {
  return {{"schema_version", 1}, {"entries", {entry("logits", 1), entry("probabilities", 2)}}};
}

ToleranceTable parse_table(const json& document) {
  return parse_tolerances(document.dump(), "'t.json'");
}

double atol(const ToleranceTable& table, const std::string& model, const std::string& target) {
  return table.find(model, target, ScoreKind::kLogits).tolerance.atol;
}

TEST(ToleranceTableTest, FindsByKind) {
  const ToleranceTable table = parse_table(complete_table());
  EXPECT_EQ(table.find("m", "t", ScoreKind::kLogits).tolerance.atol, 1);
  const ToleranceEntry& last = table.find("m", "t", ScoreKind::kProbabilities);
  EXPECT_EQ(last.tolerance.atol, 2);
  EXPECT_EQ(last.tolerance.rtol, 0.5);
  EXPECT_EQ(last.tolerance.order, 0.25);
  EXPECT_EQ(last.why, "measured");
}

TEST(ToleranceTableTest, TheMoreSpecificEntryCounts) {
  json document = complete_table();
  const auto add = [&](const char* model, const char* target, double value) {
    json more = entry("logits", value);
    if (model != nullptr) more["model"] = model;
    if (target != nullptr) more["target"] = target;
    document["entries"].push_back(more);
  };
  add("m", "t", 10);
  add("m", nullptr, 20);
  add(nullptr, "t", 30);
  const ToleranceTable table = parse_table(document);
  EXPECT_EQ(atol(table, "m", "t"), 10);
  EXPECT_EQ(atol(table, "m", "u"), 20);
  EXPECT_EQ(atol(table, "n", "t"), 30);
  EXPECT_EQ(atol(table, "n", "u"), 1);
}

json results_entry(double pixels) {
  return {{"kind", "results"}, {"iou", 0.9},       {"score", 0.01},
          {"pixels", pixels},  {"agreement", 0.5}, {"why", "measured"}};
}

TEST(ToleranceTableTest, ResultsHaveEntriesOfTheirOwn) {
  json document = complete_table();
  EXPECT_TRUE(throws_error([&] { parse_table(document).find_results("m", "t"); },
                           ErrorKind::kFormat, "no entry of the kind \"results\" for 'm'"));
  document["entries"].push_back(results_entry(1));
  json of_model = results_entry(2);
  of_model["model"] = "m";
  of_model.update({{"map", 0.25}, {"levels", 3}, {"cosine", 0.75}});
  document["entries"].push_back(of_model);
  const ToleranceTable table = parse_table(document);
  EXPECT_EQ(table.entries.size(), 2U);
  EXPECT_EQ(table.find_results("m", "t").tolerance.pixels, 2);
  EXPECT_EQ(table.find_results("m", "t").tolerance.map, 0.25);
  EXPECT_EQ(table.find_results("m", "t").tolerance.levels, 3);
  EXPECT_EQ(table.find_results("m", "t").tolerance.cosine, 0.75);
  EXPECT_EQ(table.find_results("n", "t").tolerance.pixels, 1);
  EXPECT_EQ(table.find_results("n", "t").tolerance.agreement, 0.5);
  EXPECT_EQ(table.find_results("n", "t").tolerance.map, 0);
  EXPECT_EQ(table.find_results("n", "t").tolerance.cosine, 1);

  document["entries"].push_back(of_model);
  EXPECT_TRUE(throws_error([&] { parse_table(document); }, ErrorKind::kFormat,
                           "entries[4] is for the same as an entry before it"));
  document["entries"].back()["iou"] = 1.5;
  EXPECT_TRUE(
      throws_error([&] { parse_table(document); }, ErrorKind::kFormat, "iou is more than 1"));
  document["entries"].back() = {{"kind", "results"}, {"atol", 1}};
  EXPECT_TRUE(throws_error([&] { parse_table(document); }, ErrorKind::kFormat, "atol"));
}

TEST(ToleranceTableTest, RefusesWhatIsMalformed) {
  struct Case {
    std::string pointer;
    json value;
    std::string message;
  };
  const std::vector<Case> cases{
      {"/entries/0/atol", -1, "entries[0].atol is less than 0"},
      {"/entries/0/rtol", "1", "entries[0].rtol"},
      {"/entries/0/kind", "odds", "it is one of logits, probabilities"},
      {"/entries/0/why", "", "every tolerance needs its reason"},
      {"/entries/0/target", "", "entries[0].target is empty"},
      {"/entries/0/atols", 1, "not a field that this version knows"},
      {"/entries/1", entry("logits", 1), "entries[1] is for the same"},
      {"/entries/1/model", "m", "none without model and target for probabilities"},
      {"/entries", 1, "entries is no list"},
  };
  for (const auto& [pointer, value, message] : cases) {
    json document = complete_table();
    document[json::json_pointer(pointer)] = value;
    EXPECT_TRUE(throws_error([&] { parse_table(document); }, ErrorKind::kFormat, message))
        << pointer;
  }
  json newer = complete_table();
  newer["schema_version"] = 2;
  EXPECT_TRUE(
      throws_error([&] { parse_table(newer); }, ErrorKind::kIncompatible, "schema_version 2"));
}

// What the project itself ships: every target is judged by numbers that were chosen for it.
TEST(ToleranceTableTest, TheProjectsTableHasEveryTarget) {
  const std::filesystem::path folder = std::filesystem::path(RUN_MODEL_SOURCE_DIR) / "artifacts";
  const ToleranceTable table = read_tolerances(folder / "tolerances.json");
  for (const ListedTarget& target : read_target_list(folder / "targets.json")) {
    if (!target.device.empty()) continue;  // as any other target
    for (const ScoreKind kind : {ScoreKind::kLogits, ScoreKind::kProbabilities}) {
      EXPECT_EQ(table.find("any", target.name, kind).target, target.name);
    }
  }
}

}  // namespace
}  // namespace run_model
