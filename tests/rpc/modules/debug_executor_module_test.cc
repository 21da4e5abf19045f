#include "rpc/modules/debug_executor_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/has_elements.h"
#include "tests/rpc/executor_fixture.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

using namespace testing_executor;
using nlohmann::json;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::Lt;
using testing::SizeIs;

// Nodes 0 … 4 of the graph: x, w, a, r, b.
class DebugExecutorTest : public testing::Test {
 protected:
  DebugExecutorTest() {
    ask("set_input", {"x", given({1, 2, 3, 4})});
    ask("set_input", {"w", given({1, 1, 1, 1})});
  }
  Value ask(const std::string& function, const std::vector<Value>& arguments = {}) {
    return call(module_, function, arguments);
  }

  std::shared_ptr<RemoteModule> module_ = make_debug_executor(library(), graph());
};

std::vector<double> doubles_in(const Value& value, std::size_t from) {
  const auto data = std::get<Bytes>(value).data.subspan(from);
  std::vector<double> doubles(data.size() / sizeof(double));
  std::memcpy(doubles.data(), data.data(), data.size());
  return doubles;
}

TEST_F(DebugExecutorTest, HasTheFunctionsOfTheExecutorToo) {
  EXPECT_EQ(module_->kind(), "GraphExecutorDebug");
  ask("run");
  EXPECT_TRUE(has_elements(values_of(ask("get_output", {number(0)})), {-2, -3, -4, -5}));
  EXPECT_EQ(module_->find("no such function"), nullptr);
}

TEST_F(DebugExecutorTest, RunsUpToANode) {
  EXPECT_TRUE(has_elements(values_of(ask("debug_get_output", {number(2)})), {2, 3, 4, 5}));
  EXPECT_TRUE(has_elements(values_of(ask("debug_get_output", {"b"})), {4, 6, 8, 10}));
  EXPECT_TRUE(has_elements(values_of(ask("debug_get_output", {number(0)})), {1, 2, 3, 4}));
  const Tensor copy = vector_of({0, 0, 0, 0});
  ask("debug_get_output", {number(3), TensorArgument{copy}});
  EXPECT_TRUE(has_elements(values_of(copy), {2, 3, 4, 5}));
  EXPECT_TRUE(throws_error([&] { ask("debug_get_output", {"c"}); }, ErrorKind::kMismatch,
                           "no node of the name 'c'"));
  EXPECT_TRUE(
      throws_error([&] { ask("debug_get_output", {number(5)}); }, ErrorKind::kMismatch, "0 to 4"));
}

TEST_F(DebugExecutorTest, ExecutesNodeByNode) {
  std::vector<std::vector<float>> results;
  for (std::int64_t node = 0; node < 5; ++node) {
    ask("execute_node", {number(node)});
    for (std::int64_t output = 0; output < (node == 4 ? 2 : 1); ++output) {
      results.push_back(values_of(ask("get_node_output", {number(node), number(output)})));
    }
  }
  EXPECT_THAT(results, ElementsAre(ElementsAre(1, 2, 3, 4), Each(1), ElementsAre(2, 3, 4, 5),
                                   ElementsAre(2, 3, 4, 5), ElementsAre(4, 6, 8, 10),
                                   ElementsAre(-2, -3, -4, -5)));
  EXPECT_TRUE(throws_error([&] { ask("get_node_output", {number(2), number(0)}); },
                           ErrorKind::kMismatch, "call execute_node(2) first"));
  EXPECT_TRUE(throws_error([&] { ask("get_node_output", {number(4), number(2)}); },
                           ErrorKind::kMismatch, "is 2, expected 0 to 1"));
  ask("set_input", {"x", given({9, 9, 9, 9})});
  ask("execute_node", {number(4)});
  EXPECT_THAT(values_of(ask("get_node_output", {number(4), number(1)})), Each(-10))
      << "the same node again starts from the inputs as they are now";
}

TEST_F(DebugExecutorTest, KeepsANodesOutputThoughOthersReuseItsMemory) {
  ask("execute_node", {number(2)});
  const Value kept = ask("get_node_output", {number(2), number(0)});
  ask("set_input", {"x", given({9, 9, 9, 9})});
  ask("run");
  EXPECT_TRUE(has_elements(values_of(kept), {2, 3, 4, 5}));
}

TEST_F(DebugExecutorTest, MeasuresEachNode) {
  const Value blob =
      ask("run_individual", {number(3), number(2), number(0), number(100), number(0), number(1)});
  std::int64_t nodes = 0;
  std::memcpy(&nodes, std::get<Bytes>(blob).data.data(), sizeof(nodes));
  EXPECT_EQ(nodes, 5);
  const std::vector<double> seconds = doubles_in(blob, sizeof(nodes));
  ASSERT_THAT(seconds, SizeIs(10));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(seconds[i], 0.0) << "an input";
  EXPECT_THAT(std::vector(seconds.begin() + 4, seconds.end()), Each(AllOf(Gt(0.0), Lt(1.0))));
  EXPECT_TRUE(has_elements(values_of(ask("get_output", {number(0)})), {-2, -3, -4, -5}));
}

TEST_F(DebugExecutorTest, MeasuresOneNode) {
  const std::vector<Value> how = {number(3),   number(4), number(0),
                                  number(100), number(0), number(1)};
  std::vector<Value> arguments = how;
  arguments.insert(arguments.begin(), number(2));
  EXPECT_THAT(doubles_in(ask("run_individual_node", arguments), 0),
              AllOf(SizeIs(4), Each(Gt(0.0))));
  arguments[0] = number(1);
  EXPECT_THAT(doubles_in(ask("run_individual_node", arguments), 0), AllOf(SizeIs(4), Each(0.0)));
  arguments[0] = number(5);
  EXPECT_TRUE(
      throws_error([&] { ask("run_individual_node", arguments); }, ErrorKind::kMismatch, "0 to 4"));
}

TEST_F(DebugExecutorTest, MeasuresForOlderReleases) {
  const std::string text =
      std::get<std::string>(ask("run_individual", {number(3), number(1), number(0)}));
  EXPECT_EQ(std::count(text.begin(), text.end(), ','), 5);
  EXPECT_TRUE(text.starts_with("0,0,")) << text;
  const Value blob = ask("run_individual", {number(3), number(1), number(0), number(0), number(1)});
  EXPECT_EQ(std::get<Bytes>(blob).data.size(), sizeof(std::int64_t) + 5 * sizeof(double));
  EXPECT_TRUE(throws_error([&] { ask("run_individual", {number(3), number(1)}); },
                           ErrorKind::kMismatch, "takes 3, 5 or 6 numbers"));
}

TEST_F(DebugExecutorTest, ProfilesInTvmsForm) {
  const json report = json::parse(std::get<std::string>(ask("profile_rpc")));
  ASSERT_EQ(report["calls"].size(), 3u);
  const json& add = report["calls"][0];
  EXPECT_EQ(add["Name"]["string"], "fused_add");
  EXPECT_EQ(add["Hash"]["string"], "37f27536f17557a3");
  EXPECT_EQ(add["data_layout"]["string"], "NCHW");
  EXPECT_EQ(add["Argument Shapes"]["string"], "float32[4], float32[4], float32[4]");
  EXPECT_EQ(report["calls"][1]["Name"]["string"], "__nop");
  double sum = 0;
  for (const json& each : report["calls"])
    sum += each["Duration (us)"]["microseconds"].get<double>();
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, report["device_metrics"]["cpu0"]["Duration (us)"]["microseconds"].get<double>());
  EXPECT_TRUE(throws_error([&] { ask("profile"); }, ErrorKind::kUsage, "call profile_rpc"));
}

using nlohmann::json;

// What TVM 0.18 itself writes for one call (Report.json()), but for the order of members.
TEST(ProfileReport, HasTheFormOfTvms) {
  const ProfileReport report{{{"fused_nn_dense",
                               1.5,
                               "float32[1, 8], float32[1, 4]",
                               {{"hash", "37f27536f17557a3"}, {"data_layout", "NCHW"}}}},
                             6.0,
                             2};
  const json expected = json::parse(R"json({
    "calls": [{"Percent": {"percent": 25.0}, "Count": {"count": 1}, "Device": {"string": "cpu0"},
               "Name": {"string": "fused_nn_dense"}, "Duration (us)": {"microseconds": 1.5},
               "Hash": {"string": "37f27536f17557a3"}, "data_layout": {"string": "NCHW"},
               "Argument Shapes": {"string": "float32[1, 8], float32[1, 4]"}}],
    "device_metrics": {"cpu0": {"Device": {"string": "cpu0"}, "Name": {"string": "Total"},
                                "Count": {"count": 1}, "Duration (us)": {"microseconds": 6.0}}},
    "configuration": {"Number of threads": {"count": 2}, "Executor": {"string": "Graph"}}})json");
  EXPECT_EQ(json::parse(to_json(report)), expected);
}

// TVM's reader takes no \uNNNN, which a graph from elsewhere could have in a name.
TEST(ProfileReport, WritesNoEscapesThatTheReaderLacks) {
  const std::string text = to_json({{{"a\x01\"\\\b", 1, "", {{"my\x02layout", "x\x1f"}}}}, 0, 1});
  EXPECT_EQ(text.find("\\u"), std::string::npos) << text;
  EXPECT_EQ(text.find("\\b"), std::string::npos) << text;
  const json call = json::parse(text)["calls"][0];
  EXPECT_EQ(call["Name"]["string"], "a?\"\\?");
  EXPECT_EQ(call["my?layout"]["string"], "x?");
  EXPECT_EQ(call["Percent"]["percent"], 0.0) << "of a run that took no time";
}

}  // namespace
}  // namespace run_model::rpc
