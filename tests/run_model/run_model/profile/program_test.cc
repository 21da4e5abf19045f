// Profiles of the built program, on a small stand-in for a compiled model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/has_elements.h"
#include "tests/run_model/picture_artifact.h"
#include "tests/run_model/spawn.h"
#include "tests/runtime/test_graphs.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using Strings = std::vector<std::string>;

class ProfileProgramTest : public ::testing::Test {
 protected:
  ProgramResult run(const Strings& flags) const {
    Strings args{"net", artifact_.folder().path().string(), "--fill-mode=ones", "--repeat=4"};
    args.insert(args.end(), flags.begin(), flags.end());
    return spawn(RUN_MODEL_PROGRAM, args);
  }

  json profile() const {
    const ProgramResult result = run({"--profile", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out).at("profile");
  }

  // Nodes after the input "data" and the parameter "bias", each with the output of the one before
  // (the first with "data"); all in the shape of "data".
  void write_graph(const Strings& functions, std::vector<int> storages) const {
    using testing_graphs::call_node;
    using testing_graphs::input_node;
    std::vector<json> nodes{input_node("data"), input_node("bias")};
    int last = 0;
    for (const std::string& function : functions) {
      nodes.push_back(call_node("n" + std::to_string(nodes.size()), function, {{last, 0}}));
      last = static_cast<int>(nodes.size()) - 1;
    }
    json graph = testing_graphs::graph_of(nodes, storages, {{last, 0}});
    json& shapes = graph["attrs"]["shape"][1];
    for (json& shape : shapes) shape = {1, 3, 4, 4};
    shapes[1] = {3};
    artifact_.folder().write("net_tvm.json", graph.dump());
  }

  static Strings families(const json& profile) {
    Strings families;
    for (const json& node : profile.at("nodes")) families.push_back(node.at("family"));
    return families;
  }

  PictureArtifact artifact_;
};

TEST_F(ProfileProgramTest, OneNode) {
  const json result = profile();
  ASSERT_EQ(result.at("nodes").size(), 1u);
  const json& node = result["nodes"][0];
  EXPECT_EQ(node.at("function"), "fused_channel_sums");
  EXPECT_EQ(node.at("family"), "unknown");  // no operator of TVM
  EXPECT_EQ(node.at("operations"), nullptr);
  EXPECT_EQ(node.at("calls"), 4);
  EXPECT_EQ(node.at("bytes_read"), 4 * (48 + 3));
  EXPECT_EQ(node.at("parameter_bytes"), 4 * 3);
  EXPECT_EQ(node.at("bytes_written"), 4 * 3);
  EXPECT_EQ(node.at("live_bytes"), 4 * (48 + 3));
  EXPECT_DOUBLE_EQ(node.at("share").get<double>(), 1.0);
}

// A function of the stand-in that says of itself what layers of this project's kernels say.
TEST_F(ProfileProgramTest, WhatTheArtifactSaysOfAFunction) {
  const std::string kernel = R"({"kernel": "direct", "tile": [6, 2]})";
  const auto profiled = [&](const char* multiply_adds, const char* names = R"(["a", "b"])") {
    json graph = json::parse(TemporaryFolder::read(artifact_.path("net_tvm.json")));
    json& attributes = graph["nodes"].back()["attrs"];
    attributes["multiply_adds"] = multiply_adds;
    attributes["kernel"] = kernel;
    attributes["onnx_nodes"] = names;
    artifact_.folder().write("net_tvm.json", graph.dump());
    return profile().at("nodes").at(0);
  };
  json node = profiled("48");
  EXPECT_EQ(node.at("operations"), 96);
  EXPECT_EQ(node.at("operations_rule"), "2 x multiply-adds of the layer's definition");
  EXPECT_TRUE(node.at("gflop_per_s").is_number());
  EXPECT_EQ(node.at("kernel"), kernel);
  EXPECT_EQ(node.at("onnx_nodes"), (json{"a", "b"}));
  EXPECT_EQ(node.at("bytes_read"), 4 * (48 + 3));
  node = profiled("4.8e1");
  EXPECT_EQ(node.at("operations"), nullptr);
  EXPECT_EQ(node.at("operations_rule"), nullptr);
  // What is no list of names is left out of the report.
  for (const char* names : {"", "[", "{}", "[1]"}) {
    EXPECT_EQ(profiled("48", names).at("onnx_nodes"), json::array()) << names;
  }
}

TEST_F(ProfileProgramTest, CopiesAndViews) {
  write_graph({"__copy", "__nop", "__copy"}, {0, 1, 2, 2, 3});
  const json result = profile();
  EXPECT_TRUE(has_elements(families(result), {"copy", "view", "copy"}));
  EXPECT_EQ(result["nodes"][0].at("bytes_written"), 4 * 48);
  EXPECT_EQ(result["nodes"][1].at("bytes_written"), 0);
  EXPECT_EQ(result["nodes"][1].at("gb_per_s"), nullptr);
  EXPECT_EQ(result["nodes"][2].at("live_bytes"), 2 * 4 * 48);
}

TEST_F(ProfileProgramTest, AGraphThatComputesNothing) {
  write_graph({}, {0, 1});
  EXPECT_TRUE(profile().at("nodes").empty());
  const ProgramResult result = run({"--profile"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("The graph computes nothing.\n"));
}

TEST_F(ProfileProgramTest, FilesAloneLeaveTheReportAsItIs) {
  const ProgramResult result =
      run({"--profile-csv", artifact_.path("p.csv"), "--profile-trace", artifact_.path("p.trace"),
           "--profile-html", artifact_.path("p.html"), "--profile-json", artifact_.path("p.json")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("Profile: ")));
  EXPECT_THAT(TemporaryFolder::read(artifact_.path("p.csv")), HasSubstr("\"fused_channel_sums\""));
  EXPECT_EQ(json::parse(TemporaryFolder::read(artifact_.path("p.json"))).at("model"), "net");
  EXPECT_TRUE(
      json::parse(TemporaryFolder::read(artifact_.path("p.trace"))).contains("traceEvents"));
  EXPECT_THAT(TemporaryFolder::read(artifact_.path("p.html")), HasSubstr("fused_channel_sums"));
}

TEST_F(ProfileProgramTest, NothingIsProfiledUnasked) {
  const ProgramResult result = run({"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(json::parse(result.out).contains("profile"));
}

}  // namespace
}  // namespace run_model
