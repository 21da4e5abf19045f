#include "run_model/run_model/profile/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kHostile[] = "</script><script>alert(1)</script><!-- \"a\",\r\n\x1b[31m\xe2\x80\xa8";

ProfiledNode make_node(const std::string& function, double mean, double share, double cumulative) {
  ProfiledNode node;
  node.info.name = "node of " + function;
  node.info.function = function;
  node.info.inputs = {{"x", {1, 3, 8, 8}, {kDLFloat, 32, 1}}};
  node.info.outputs = {{"y", {1, 4, 8, 8}, {kDLFloat, 32, 1}}};
  node.time.count = 10;
  node.time.min = mean / 2;
  node.time.mean = node.time.median = mean;
  node.time.p95 = node.time.max = 2 * mean;
  node.share = share;
  node.cumulative_share = cumulative;
  node.bytes_read = 768;
  node.bytes_written = 1024;
  node.live_bytes = 1792;
  return node;
}

// Two nodes: 1 ms of known work, then 3 ms of a function with a hostile name.
Profile make_profile() {
  Profile profile;
  profile.model = "net";
  profile.threads = 2;
  profile.runs = 10;
  profile.warm_up_runs = 3;
  profile.nodes.push_back(make_node("tvmgen_default_fused_nn_conv2d_add", 1.0, 0.25, 1.0));
  profile.nodes[0].family = OperatorFamily::kConv2d;
  profile.nodes[0].operations = OperationCount{2000000, "2 x weights x output positions"};
  profile.nodes[0].kernel = R"({"kernel": "direct"})";
  profile.nodes[0].end = 1.0;
  profile.nodes.push_back(make_node(kHostile, 3.0, 0.75, 0.75));
  profile.nodes[1].start = 1.25;
  profile.nodes[1].end = 4.0;
  profile.nodes[1].info.name = kHostile;
  profile.by_time = {1, 0};
  profile.families = {{OperatorFamily::kUnknown, 1, 3.0, 0.75, 0, 0, 0.0, 1792},
                      {OperatorFamily::kConv2d, 1, 1.0, 0.25, 1, 2000000, 1.0, 1792}};
  profile.plain_run.median = 3.9;
  profile.node_run.median = 4.1;
  profile.sum_of_nodes = 4.0;
  profile.overhead = 0.2;
  profile.memory = {{100, 200, 4096}, 1792, 0, 512};
  return profile;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

TEST(ProfileTextTest, SortsByTimeAndFitsTheWidth) {
  Profile profile = make_profile();
  profile.nodes[0].info.function = "tvmgen_default_fused_" + std::string(300, 'x') + "_end";
  for (const std::size_t width : {80, 100, 160, 400}) {
    const std::string text = profile_text(profile, {}, width);
    EXPECT_THAT(lines_of(text), Each(SizeIs(Le(width))));
    EXPECT_THAT(text, HasSubstr("_end\n"));
    EXPECT_LT(text.find("\n1  "), text.find("\n0  ")) << text;
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
}

TEST(ProfileTextTest, NamesWhatNodesCompute) {
  Profile profile = make_profile();
  profile.nodes[0].onnx_nodes = {"/layer1/conv", kHostile};
  for (const std::size_t width : {100, 200}) {
    const std::string text = profile_text(profile, {}, width);
    EXPECT_THAT(lines_of(text), Each(SizeIs(Le(width))));
    EXPECT_THAT(text, HasSubstr("  computes\n"));
    EXPECT_THAT(text, HasSubstr("  /layer1/conv, "));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    // Where there is room, TVM's function beside it.
    EXPECT_EQ(text.find("nn_conv2d_add") != std::string::npos, width == 200);
  }
}

TEST(ProfileTextTest, KeepsTheRunningOrderAndCutsTheTable) {
  ProfileSettings settings;
  settings.order = ProfileOrder::kRunning;
  std::string text = profile_text(make_profile(), settings, 100);
  EXPECT_LT(text.find("\n0  "), text.find("\n1  ")) << text;
  EXPECT_THAT(text, Not(HasSubstr("cum %")));
  settings.top = 1;
  text = profile_text(make_profile(), settings, 100);
  EXPECT_THAT(text, HasSubstr("… and 1 more node\n"));
  EXPECT_THAT(text, HasSubstr("nn_conv2d_add"));
}

TEST(ProfileTextTest, SaysWhatThereIs) {
  const std::string text = profile_text(make_profile(), {}, 100);
  EXPECT_THAT(text, HasSubstr("Profile: 2 nodes, 10 runs after 3 to warm up, 2 threads\n"));
  EXPECT_THAT(
      text,
      HasSubstr("Sum of the nodes 4.000 ms; a run 3.900 ms, node by node 4.100 ms (medians)"));
  EXPECT_THAT(text, HasSubstr("Running node by node costs +0.200 ms (+5.1 %)"));
  EXPECT_THAT(text, HasSubstr("parameters 300 B, activations 4.0 KiB\n"));
  EXPECT_THAT(text, HasSubstr("at most 1.8 KiB of activations needed at once (node 0)\n"));
  // 2e6 operations in a millisecond.
  EXPECT_THAT(text, HasSubstr("  2.0  "));
}

TEST(ProfileTextTest, AGraphMayComputeNothing) {
  Profile profile;
  profile.threads = 1;
  EXPECT_EQ(
      profile_text(profile, {}, 100),
      "Profile: 0 nodes, 0 runs after 0 to warm up, 1 thread\n\nThe graph computes nothing.\n");
  EXPECT_THAT(profile_json(profile).compact(), HasSubstr("\"nodes\":[]"));
  EXPECT_EQ(lines_of(profile_csv(profile)).size(), 1u);
  EXPECT_EQ(json::parse(profile_trace(profile))["traceEvents"].size(), 2u);
  EXPECT_THAT(profile_html(profile), HasSubstr("\"nodes\":[]"));
}

TEST(ProfileTextTest, CutsBetweenCharacters) {
  Profile profile = make_profile();
  std::string name = "fused_";
  for (int i = 0; i < 100; ++i) name += "ü";
  profile.nodes[0].info.function = name;
  for (std::size_t width = 80; width < 90; ++width) {
    const std::string text = profile_text(profile, {}, width);
    EXPECT_NO_THROW(json(text).dump()) << width;  // throws for text that is no UTF-8
  }
}

TEST(ProfileJsonTest, HoldsWhatIsKnownAndNullForTheRest) {
  const json profile = json::parse(profile_json(make_profile()).text());
  EXPECT_EQ(profile["schema_version"], 1);
  EXPECT_EQ(profile["target"], nullptr);
  const json& conv = profile["nodes"][0];
  EXPECT_EQ(conv["family"], "conv2d");
  EXPECT_EQ(conv["operations"], 2000000);
  EXPECT_EQ(conv["kernel"], R"({"kernel": "direct"})");
  EXPECT_DOUBLE_EQ(conv["gflop_per_s"].get<double>(), 2.0);
  EXPECT_DOUBLE_EQ(conv["gb_per_s"].get<double>(), 1792 / 1e6);
  EXPECT_EQ(conv["inputs"][0]["shape"], json::array({1, 3, 8, 8}));
  const json& other = profile["nodes"][1];
  EXPECT_EQ(other["operations"], nullptr);
  EXPECT_EQ(other["kernel"], nullptr);
  EXPECT_EQ(other["gflop_per_s"], nullptr);
  EXPECT_EQ(other["function"], kHostile);
  EXPECT_EQ(profile["families"][0]["gflop_per_s"], nullptr);
}

TEST(ProfileCsvTest, QuotesNames) {
  Profile profile = make_profile();
  profile.nodes[1].info.function = "a,\"b\"\r\nc";
  profile.nodes[0].onnx_nodes = {"conv", "relu"};
  const std::string csv = profile_csv(profile);
  EXPECT_THAT(csv, HasSubstr(",\"a,\"\"b\"\"\r\nc\","));
  EXPECT_THAT(csv, HasSubstr(",\"{\"\"kernel\"\": \"\"direct\"\"}\",\"conv, relu\",cpu\r\n"));
  EXPECT_TRUE(csv.ends_with(",,,cpu\r\n"));  // by which kernel, what the last node computes
}

TEST(ProfileTraceTest, HasMeasuredTimeStamps) {
  const json trace = json::parse(profile_trace(make_profile()));
  std::vector<json> nodes;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") nodes.push_back(event);
  }
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0]["ts"], 0.0);
  EXPECT_EQ(nodes[0]["dur"], 1000.0);
  EXPECT_EQ(nodes[1]["ts"], 1250.0);
  EXPECT_EQ(nodes[1]["dur"], 2750.0);
  EXPECT_EQ(nodes[1]["name"], kHostile);
}

TEST(ProfileHtmlTest, NamesCannotLeaveTheirPlace) {
  Profile profile = make_profile();
  profile.model = kHostile;
  const std::string page = profile_html(profile);
  // One script of data and one of code, as in the page without any profile.
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = page.find("</script", at)) != std::string::npos; ++at) ++ends;
  EXPECT_EQ(ends, 2u);
  EXPECT_THAT(page, Not(HasSubstr("<!-- ")));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</")));
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t start = page.find(open) + open.size();
  const json data = json::parse(page.substr(start, page.find("</script", start) - start));
  EXPECT_EQ(data["model"], kHostile);
  EXPECT_EQ(data["nodes"][1]["name"], kHostile);
}

TEST(ProfileHtmlTest, NeedsNoNetwork) {
  const std::string page = profile_html(make_profile());
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("href=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
}

TEST(ProfileFormatsTest, BytesThatAreNoUtf8AreReplaced) {
  Profile profile = make_profile();
  profile.nodes[0].info.function = "fused_\xff\xfe";
  EXPECT_THAT(profile_html(profile), HasSubstr("fused_\\ufffd"));
  EXPECT_NO_THROW(json::parse(profile_trace(profile)));
  EXPECT_THAT(profile_text(profile, {}, 100), HasSubstr("\\xff\\xfe"));
}

}  // namespace
}  // namespace run_model
