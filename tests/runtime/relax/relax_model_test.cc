#include "runtime/relax/relax_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/has_elements.h"
#include "tests/runtime/relax/function_library.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing_relax::dynamic_executable;
using testing_relax::ExecutableBuilder;
using testing_relax::FunctionLibrary;
using testing_relax::parse;
using testing_relax::small_executable;

RelaxTrace trace(const std::string& bytes, std::vector<std::vector<std::int64_t>> shapes = {{2}}) {
  static const FunctionLibrary library;
  const RelaxExecutable executable = parse(bytes);
  const RelaxFunction& function = choose_function(executable, "", "'model.so'");
  return trace_function(executable, function, input_forms(executable, function), shapes, library);
}

TEST(RelaxModelTest, MakesAGraphOfAStaticFunction) {
  const std::string bytes = small_executable().bytes();
  const RelaxTrace made = trace(bytes);
  ASSERT_EQ(made.graph.nodes.size(), 3u);
  EXPECT_EQ(made.graph.nodes[0].name, "x");
  EXPECT_EQ(made.graph.nodes[1].name, "constant_4");
  EXPECT_EQ(made.graph.nodes[2].function, "add");
  EXPECT_TRUE(has_elements(made.graph.nodes[2].inputs, {0, 1}));
  EXPECT_TRUE(made.graph.nodes[2].arguments.empty());
  EXPECT_TRUE(has_elements(made.graph.inputs, {0, 1}));
  EXPECT_TRUE(has_elements(made.graph.outputs, {2}));
  EXPECT_TRUE(has_elements(made.graph.entries[2].shape, {2}));
  ASSERT_EQ(made.constants.size(), 1u);
  EXPECT_EQ(made.constants[0].name, "constant_4");
}

TEST(RelaxModelTest, RefusesShapesThatDoNotFit) {
  const std::string bytes = small_executable().bytes();
  EXPECT_TRUE(throws_error([&] { trace(bytes, {{3}}); }, ErrorKind::kMismatch,
                           {"param=x", "is 3, expected 2"}));
}

TEST(RelaxModelTest, RefusesFunctionsThatNobodyHas) {
  ExecutableBuilder builder = small_executable();
  builder.functions.back().name = "fused_other";
  EXPECT_TRUE(throws_error([&] { trace(builder.bytes()); }, ErrorKind::kIncompatible,
                           {"functions.so", "'fused_other'"}));
  builder.functions.back().name = "vm.builtin.rnn_state_create";
  EXPECT_TRUE(throws_error([&] { trace(builder.bytes()); }, ErrorKind::kIncompatible,
                           {"_create'", "language models"}));
}

TEST(RelaxModelTest, NamesTheFunctionsThereAre) {
  const std::string bytes = small_executable().bytes();
  const RelaxExecutable executable = parse(bytes);
  EXPECT_EQ(choose_function(executable, "main", "").name, "main");
  EXPECT_TRUE(throws_error([&] { choose_function(executable, "add", "library 'm.so'"); },
                           ErrorKind::kMismatch, {"m.so", "'add'", "only 'main'"}));
}

TEST(RelaxModelTest, FollowsSymbolicDimensions) {
  const std::string bytes = dynamic_executable().bytes();
  const RelaxExecutable executable = parse(bytes);
  const auto forms = input_forms(executable, *executable.find("main"));
  ASSERT_EQ(forms.size(), 2u);
  EXPECT_EQ(form_name(forms[0]), "float32 [rows]");
  EXPECT_FALSE(forms[1].is_static());
  EXPECT_TRUE(has_elements(trace(bytes, {{3}, {3}}).graph.entries.back().shape, {6}));
  EXPECT_TRUE(has_elements(trace(bytes, {{5}, {5}}).graph.entries.back().shape, {10}));
  EXPECT_TRUE(throws_error([&] { trace(bytes, {{3}, {4}}); }, ErrorKind::kMismatch,
                           "dimension 0 of [4] is 4, but 3 elsewhere"));
}

}  // namespace
}  // namespace run_model
