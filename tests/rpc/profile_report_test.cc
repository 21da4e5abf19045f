#include "rpc/profile_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace run_model::rpc {
namespace {

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
