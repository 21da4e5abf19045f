#include "runtime/loading/device_blob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/test_params.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing_params::put;
using testing_params::tensor_record;

constexpr DLDataType kFloat32{kDLFloat, 32, 1};

std::string text(const std::string& value) {
  std::string out;
  put<std::uint64_t>(out, value.size());
  return out + value;
}

std::string names(const std::vector<std::string>& values) {
  std::string out;
  put<std::uint64_t>(out, values.size());
  for (const std::string& value : values) {
    out += text(value);
  }
  return out;
}

std::string numbers(const std::vector<std::uint64_t>& values) {
  std::string out;
  put<std::uint64_t>(out, values.size());
  for (const std::uint64_t value : values) {
    put(out, value);
  }
  return out;
}

std::string graph_module(const std::string& key = "GraphExecutorFactory") {
  std::string out = text(key) + text("{graph}");
  put<std::uint64_t>(out, 2);
  return out + names({"p0", "p1"}) + tensor_record({2}, kFloat32, "12345678") +
         tensor_record({}, kFloat32, "abcd") + text("default");
}

std::string import_tree() { return text("_import_tree") + numbers({0, 1, 1}) + numbers({1}); }

std::string blob(const std::vector<std::string>& modules) {
  std::string content;
  put<std::uint64_t>(content, modules.size());
  for (const std::string& module : modules) {
    content += module;
  }
  std::string out;
  put<std::uint64_t>(out, content.size());
  return out + content;
}

std::optional<EmbeddedGraph> parse_blob(const std::string& bytes) {
  return read_device_blob(std::as_bytes(std::span(bytes)), "library 'm.so'", 1000).graph;
}

class GraphKeyTest : public testing::TestWithParam<const char*> {};

TEST_P(GraphKeyTest, GivesGraphAndParameters) {
  const std::string bytes = blob({graph_module(GetParam()), text("_lib"), import_tree()});
  const auto graph = parse_blob(bytes);
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->graph_json, "{graph}");
  EXPECT_EQ(graph->module_name, "default");
  ASSERT_EQ(graph->params.size(), 2u);
  EXPECT_EQ(graph->params[0].name, "p0");
  EXPECT_EQ(graph->params[0].shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(graph->params[1].name, "p1");
  EXPECT_EQ(graph->params[1].shape, std::vector<std::int64_t>{});
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  EXPECT_EQ(graph->params[0].data.data(), begin + bytes.find("12345678"));
  EXPECT_EQ(graph->params[0].data.size(), 8u);
  EXPECT_EQ(graph->params[1].data.data(), begin + bytes.find("abcd"));
}

INSTANTIATE_TEST_SUITE_P(Releases, GraphKeyTest,
                         testing::Values("GraphRuntimeFactory", "GraphExecutorFactory"));

TEST(DeviceBlobTest, LibraryAloneHasNoGraph) {
  EXPECT_FALSE(parse_blob(blob({text("_lib")})).has_value());
  EXPECT_FALSE(parse_blob(blob({})).has_value());
}

TEST(DeviceBlobTest, BytesAfterTheStatedLengthAreNotLookedAt) {
  EXPECT_TRUE(parse_blob(blob({graph_module()}) + "padding").has_value());
}

TEST(DeviceBlobTest, EmptyConstantsAreAccepted) {
  std::string no_constants = names({});
  put<std::uint64_t>(no_constants, 0);
  no_constants += names({});
  put<std::uint64_t>(no_constants, 0);
  for (const char* key : {"metadata", "const_loader"}) {
    const auto graph = parse_blob(blob({graph_module(), text(key) + no_constants, text("_lib")}));
    EXPECT_TRUE(graph.has_value()) << key;
  }
  EXPECT_TRUE(
      parse_blob(blob({graph_module(), text("metadata_module"), text("_lib")})).has_value());
}

TEST(DeviceBlobTest, ConstantsOfExternalFunctionsAreRefused) {
  std::string constants = names({"c0"});
  put<std::uint64_t>(constants, 1);
  constants += tensor_record({1}, kFloat32, "1234") + names({"tvmgen_default_dnnl_main_0"});
  put<std::uint64_t>(constants, 1);
  constants += names({"c0"});
  EXPECT_TRUE(
      throws_error([&] { parse_blob(blob({graph_module(), text("const_loader") + constants})); },
                   ErrorKind::kIncompatible,
                   {"library 'm.so'", "'tvmgen_default_dnnl_main_0'", "external code generator"}));
}

TEST(DeviceBlobTest, NamesWhatAModuleIsFor) {
  EXPECT_TRUE(throws_error([] { parse_blob(blob({text("metal") + "binary"})); },
                           ErrorKind::kIncompatible,
                           {"was compiled for an Apple GPU (metal)", "compile for the CPU"}));
  EXPECT_TRUE(throws_error([] { parse_blob(blob({text("AotExecutorFactory")})); },
                           ErrorKind::kIncompatible, "ahead-of-time executor"));
  EXPECT_TRUE(throws_error([] { parse_blob(blob({text("my_codegen\x1b[31m")})); },
                           ErrorKind::kIncompatible,
                           {"a module of the kind 'my_codegen\\x1b[31m'", "does not know"}));
}

TEST(DeviceBlobTest, CountsThatDoNotAgreeAreRefused) {
  std::string three_tensors = text("GraphExecutorFactory") + text("{}");
  put<std::uint64_t>(three_tensors, 3);
  three_tensors += names({"p0"}) + text("default");
  EXPECT_TRUE(throws_error([&] { parse_blob(blob({three_tensors})); }, ErrorKind::kFormat,
                           "3 parameters, but 1 names"));
  EXPECT_TRUE(throws_error([] { parse_blob(blob({graph_module(), graph_module()})); },
                           ErrorKind::kFormat, "a second graph"));
  EXPECT_TRUE(throws_error(
      [] {
        parse_blob(blob({text("_lib"), text("_import_tree") + numbers({0, 2}) + numbers({1})}));
      },
      ErrorKind::kFormat, "rows and children do not fit together"));
  EXPECT_TRUE(throws_error(
      [] {
        parse_blob(blob({text("_lib"), text("_import_tree") + numbers({0, 1}) + numbers({7})}));
      },
      ErrorKind::kFormat, "names module 7 of 1"));
}

TEST(DeviceBlobTest, LeftoverBytesAreRefused) {
  std::string bytes = blob({graph_module(), text("_lib")});
  std::string longer;
  put<std::uint64_t>(longer, bytes.size() - 8 + 3);
  EXPECT_TRUE(throws_error([&] { parse_blob(longer + bytes.substr(8) + "xyz"); },
                           ErrorKind::kFormat, "3 bytes are left over after the last module"));
}

TEST(DeviceBlobTest, EveryTruncationIsNoticed) {
  const std::string bytes = blob({graph_module(), text("_lib"), import_tree()});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(
        throws_error([&] { parse_blob(bytes.substr(0, length)); }, ErrorKind::kFormat, "m.so"));
  }
}

// A changed byte either gives an Error or a graph whose parts all lie within the blob.
TEST(DeviceBlobTest, NoChangedByteLeadsOutside) {
  const std::string bytes = blob({graph_module(), text("_lib"), import_tree()});
  std::size_t refused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned char mask : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ mask);
      try {
        const auto graph = parse_blob(damaged);
        if (graph) {
          const auto* begin = reinterpret_cast<const std::byte*>(damaged.data());
          for (const Param& param : graph->params) {
            EXPECT_GE(param.data.data(), begin);
            EXPECT_LE(param.data.data() + param.data.size(), begin + damaged.size());
          }
        }
      } catch (const Error& error) {
        EXPECT_TRUE(error.kind() == ErrorKind::kFormat || error.kind() == ErrorKind::kIncompatible);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, bytes.size()) << "lengths and keys make up more than a third of the blob";
}

}  // namespace
}  // namespace run_model
