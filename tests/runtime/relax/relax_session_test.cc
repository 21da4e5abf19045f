// Functions of Relax executables called one by one, and what they take beside tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/relax_session.h>
#include "runtime/relax/input_forms.h"
#include "tests/has_elements.h"
#include "tests/runtime/relax/function_library.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing_relax::con;
using testing_relax::ExecutableBuilder;
using testing_relax::FunctionLibrary;
using testing_relax::imm;
using testing_relax::reg;

Tensor rows_of(const std::vector<float>& values, std::int64_t width) {
  const auto count = static_cast<std::int64_t>(values.size());
  Tensor tensor = Tensor::empty({count / width, width}, {kDLFloat, 32, 1});
  std::copy(values.begin(), values.end(), tensor.elements<float>().begin());
  return tensor;
}

std::vector<float> elements_of(const Tensor& tensor) {
  const auto elements = tensor.elements<float>();
  return {elements.begin(), elements.end()};
}

// The virtual machine's functions do not need a model.
RelaxSession session() {
  return RelaxSession(std::make_shared<FunctionLibrary>(testing_relax::small_executable().bytes()));
}

RelaxValue cache_of(RelaxSession& session, std::int64_t filled) {
  const RelaxValue arguments[] = {RelaxValue::of_tensor(rows_of({1, 2, 3, 4}, 2)),
                                  RelaxValue::of_shape({2, 2}), RelaxValue::of_integer(filled)};
  return session.call("vm.builtin.attention_kv_cache_create", arguments);
}

std::vector<float> held(RelaxSession& session, const RelaxValue& cache, std::int64_t rows) {
  const RelaxValue arguments[] = {cache, RelaxValue::of_shape({rows, 2})};
  return elements_of(session.call("vm.builtin.attention_kv_cache_view", arguments).tensor());
}

// What is expected in these was taken from TVM 0.27's own functions.
TEST(RelaxSessionTest, KeepsACacheThatGrows) {
  RelaxSession calls = session();
  const RelaxValue cache = cache_of(calls, 0);
  EXPECT_EQ(cache.kind(), RelaxValue::Kind::kState);
  EXPECT_TRUE(held(calls, cache, 0).empty());
  for (const std::vector<float>& rows :
       {std::vector<float>{1, 2}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
    const RelaxValue arguments[] = {cache, RelaxValue::of_tensor(rows_of(rows, 2))};
    calls.call("vm.builtin.attention_kv_cache_append", arguments);
  }
  EXPECT_TRUE(has_elements(held(calls, cache, 6), {1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(throws_error([&] { held(calls, cache, 3); }, ErrorKind::kMismatch,
                           {"holds 6 rows", "3 are asked for"}));
  const RelaxValue wide[] = {cache, RelaxValue::of_tensor(rows_of({1, 2, 3}, 3))};
  EXPECT_TRUE(throws_error([&] { calls.call("vm.builtin.attention_kv_cache_append", wide); },
                           ErrorKind::kFormat, "float32 [1, 3]"));
  const RelaxValue caches[] = {RelaxValue::of_tuple({cache}), RelaxValue::of_integer(4)};
  calls.call("vm.builtin.attention_kv_cache_array_popn", caches);
  EXPECT_TRUE(has_elements(held(calls, cache, 2), {1, 2, 0, 1}));
  EXPECT_TRUE(throws_error([&] { calls.call("vm.builtin.attention_kv_cache_array_popn", caches); },
                           ErrorKind::kFormat, "4 rows are taken"));
}

TEST(RelaxSessionTest, LetsAWindowGoRoundBehindItsSinks) {
  RelaxSession calls = session();
  const RelaxValue cache = cache_of(calls, 0);
  for (int i = 0; i < 9; ++i) {
    const float value = static_cast<float>(i);
    const RelaxValue arguments[] = {cache, RelaxValue::of_tensor(rows_of({value, value}, 2)),
                                    RelaxValue::of_integer(4), RelaxValue::of_integer(1)};
    calls.call("vm.builtin.attention_kv_cache_window_override_with_sinks", arguments);
  }
  EXPECT_TRUE(has_elements(held(calls, cache, 4), {0, 0, 7, 7, 8, 8, 6, 6}));
  const RelaxValue two[] = {cache, RelaxValue::of_tensor(rows_of({70, 70, 80, 80}, 2)),
                            RelaxValue::of_integer(4), RelaxValue::of_integer(1)};
  calls.call("vm.builtin.attention_kv_cache_window_override_with_sinks", two);
  EXPECT_TRUE(has_elements(held(calls, cache, 4), {0, 0, 80, 80, 8, 8, 70, 70}));
}

TEST(RelaxSessionTest, NamesWhatItDoesNotHave) {
  RelaxSession calls = session();
  EXPECT_EQ(calls.functions(), std::vector<std::string>{"main"});
  EXPECT_TRUE(throws_error([&] { calls.call("other", {}); }, ErrorKind::kMismatch,
                           {"'other'", "only 'main'"}));
  EXPECT_TRUE(throws_error([&] { calls.call("vm.builtin.kv_state_fork_sequence", {}); },
                           ErrorKind::kIncompatible, "not forked"));
  EXPECT_TRUE(throws_error([&] { calls.call("main", {}); }, ErrorKind::kMismatch, "takes 1"));
  EXPECT_TRUE(throws_error([&] { RelaxSession(std::make_shared<FunctionLibrary>()); },
                           ErrorKind::kMismatch, "holds no executable"));
}

// main((a, (b,)), length) = a + b, where `length` has to be (2,).
ExecutableBuilder tuple_executable() {
  ExecutableBuilder builder;
  const std::string text = "ErrorContext(fn=main, loc=param[1], param=length) ";
  const std::int64_t context = con(builder.text(text));
  builder.begin("main", {"pair", "length"}, 8);
  builder.call(kRelaxVoid, "vm.builtin.check_tuple_info", {reg(0), imm(2), context});
  builder.call(2, "vm.builtin.tuple_getitem", {reg(0), imm(0)});
  builder.check_numbers(2, false, text);
  builder.call(3, "vm.builtin.tuple_getitem", {reg(0), imm(1)});
  builder.call(kRelaxVoid, "vm.builtin.check_tuple_info", {reg(3), imm(1), context});
  builder.call(4, "vm.builtin.tuple_getitem", {reg(3), imm(0)});
  builder.check_numbers(4, false, text);
  builder.call(kRelaxVoid, "vm.builtin.check_shape_info", {reg(1), imm(1), context});
  for (const std::int64_t value : {2, 4, 1}) builder.match_pair(value, text);
  builder.new_pair(6);
  builder.call(kRelaxVoid, "add", {reg(2), reg(4), reg(6)});
  builder.ret(6);
  return builder;
}

TEST(RelaxSessionTest, TakesTuplesAndShapesAsTensors) {
  GraphExecutor executor(std::make_shared<FunctionLibrary>(tuple_executable().bytes()));
  ASSERT_EQ(executor.inputs().size(), 3u);
  EXPECT_EQ(executor.inputs()[0].name, "pair.0");
  EXPECT_EQ(executor.inputs()[1].name, "pair.1.0");
  EXPECT_EQ(executor.inputs()[2].name, "length");
  Tensor one = Tensor::empty({2}, {kDLFloat, 32, 1});
  one.elements<float>()[0] = 1;
  one.elements<float>()[1] = 2;
  Tensor length = Tensor::empty({1}, {kDLInt, 64, 1});
  length.elements<std::int64_t>()[0] = 2;
  executor.set_input("pair.0", one);
  executor.set_input("pair.1.0", one);
  executor.set_input("length", length);
  executor.run();
  EXPECT_TRUE(has_elements(elements_of(executor.output(0)), {2, 4}));
  length.elements<std::int64_t>()[0] = 3;
  executor.set_input("length", length);
  EXPECT_TRUE(throws_error([&] { executor.run(); }, ErrorKind::kMismatch,
                           {"param=length", "3, expected 2"}));
}

// Each call puts a tuple `width` times into the next.
std::shared_ptr<FunctionLibrary> tuples_in_tuples(std::size_t width, int calls) {
  ExecutableBuilder builder;
  builder.begin("main", {"x"}, 2);
  builder.check_numbers(0, true, "ErrorContext(fn=main)");
  builder.call(1, "vm.builtin.make_tuple", std::vector<std::int64_t>(width, reg(0)));
  for (int i = 1; i < calls; ++i) {
    builder.call(1, "vm.builtin.make_tuple", std::vector<std::int64_t>(width, reg(1)));
  }
  builder.ret(1);
  return std::make_shared<FunctionLibrary>(builder.bytes());
}

TEST(RelaxSessionTest, BoundsTheItemsOfTuplesInAll) {
  EXPECT_EQ(GraphExecutor(tuples_in_tuples(2, 10)).outputs().size(), 1024u);
  EXPECT_TRUE(throws_error([] { GraphExecutor(tuples_in_tuples(2, 60)); }, ErrorKind::kFormat,
                           {"make_tuple", "131070 items, 16 deep"}));
  EXPECT_TRUE(throws_error([] { GraphExecutor(tuples_in_tuples(1, 20)); }, ErrorKind::kFormat,
                           "17 items, 17 deep"));
  ExecutableBuilder builder;
  builder.begin("main", {"x", "y"}, 2);
  for (const std::int64_t parameter : {0, 1}) {
    builder.call(kRelaxVoid, "vm.builtin.check_tuple_info", {reg(parameter), imm(40'000)});
  }
  builder.ret(0);
  const RelaxExecutable executable = testing_relax::parse(builder.bytes());
  EXPECT_EQ(input_forms(executable, *executable.find("main")).size(), 40'001u);
}

// A function that keeps another's last arguments, and one that keeps the argument before those.
std::shared_ptr<FunctionLibrary> closures(std::int64_t kept) {
  ExecutableBuilder builder;
  const std::int64_t triple = builder.begin("triple", {"a", "b", "c"}, 4);
  builder.call(3, "vm.builtin.make_tuple", {reg(0), reg(1), reg(2)});
  builder.ret(3);
  builder.begin("main", {"x"}, 4);
  builder.call(1, "vm.builtin.make_closure", {testing_relax::fun(triple), imm(3)});
  builder.call(2, "vm.builtin.make_closure", {reg(1), kept});
  builder.call(3, "vm.builtin.invoke_closure", {reg(kRelaxMachine), reg(2), reg(0)});
  builder.ret(3);
  return std::make_shared<FunctionLibrary>(builder.bytes());
}

TEST(RelaxSessionTest, FunctionsKeepTheirLastArguments) {
  RelaxSession calls(closures(imm(2)));
  const RelaxValue one[] = {RelaxValue::of_integer(1)};
  std::vector<std::int64_t> numbers;
  for (const RelaxValue& item : calls.call("main", one).items()) numbers.push_back(item.integer());
  EXPECT_THAT(numbers, testing::ElementsAre(1, 2, 3));
  RelaxSession nested(closures(reg(1)));
  EXPECT_TRUE(throws_error([&] { nested.call("main", one); }, ErrorKind::kFormat,
                           "keeps another that keeps arguments"));
}

// main(x) = the distinct rows of x, sorted, their first places, which row is which, and how often.
TEST(RelaxSessionTest, TellsRowsApartAsNumPyDoes) {
  ExecutableBuilder builder;
  builder.begin("main", {"x"}, 2);
  builder.call(1, "relax.run.unique", {reg(0), imm(1), imm(1), imm(1), imm(1), imm(-2)});
  builder.ret(1);
  RelaxSession calls(std::make_shared<FunctionLibrary>(builder.bytes()));
  const float nan = std::nanf("");
  const RelaxValue rows[] = {RelaxValue::of_tensor(rows_of({nan, 1, nan, 1, 0, 2, -0.0F, 2}, 2))};
  const std::vector<RelaxValue> parts = calls.call("main", rows).items();
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_THAT(elements_of(parts[0].tensor()),
              testing::ElementsAre(0, 2, testing::IsNan(), 1, testing::IsNan(), 1));
  EXPECT_TRUE(has_elements(parts[1].tensor().elements<std::int64_t>(), {2, 0, 1}));
  EXPECT_TRUE(has_elements(parts[2].tensor().elements<std::int64_t>(), {1, 2, 0, 0}));
  EXPECT_TRUE(has_elements(parts[3].tensor().elements<std::int64_t>(), {2, 1, 1}));
  const RelaxValue none[] = {RelaxValue::of_tensor(Tensor::empty({}, {kDLFloat, 32, 1}))};
  EXPECT_TRUE(throws_error([&] { calls.call("main", none); }, ErrorKind::kFormat, "no axis -2"));
}

TEST(RelaxSessionTest, ReadsAnnotationsOfCompiledFunctions) {
  ExecutableBuilder builder;
  builder.text("ErrorContext(fn=main, loc=param[0], param=pair, annotation=T.Tuple(R.Tensor(("
               "T.int64(2), n), dtype=\"float32\"), T.Tuple(R.Tensor((), dtype=\"bool\")))) ");
  builder.text("ErrorContext(fn=main, loc=param[1], param=s, annotation=R.Shape([n, 3])) ");
  builder.text("ErrorContext(fn=main, loc=param[2], param=p, annotation=T.int64) ");
  builder.text("ErrorContext(fn=main, loc=param[3], param=any, annotation=R.Tensor(dtype=\"int8\", "
               "ndim=2)) ");
  builder.text("ErrorContext(fn=main, loc=param[4], param=q, annotation=R.Prim(value=n)) ");
  builder.text("ErrorContext(fn=main, loc=param[5], param=r, annotation=R.Shape(ndim=3)) ");
  builder.text("ErrorContext(fn=main, loc=param[6], param=t, annotation=R.Shape(ndim=-1)) ");
  RelaxExecutable executable = testing_relax::parse(builder.bytes());
  RelaxFunction function;
  function.kind = RelaxFunctionKind::kCompiled;
  function.name = "main";
  function.parameters = 7;
  function.parameter_names = {"pair", "s", "p", "any", "q", "r", "t"};
  std::vector<std::string> forms;
  for (const RelaxInput& form : input_forms(executable, function)) {
    forms.push_back(form.name + ": " + form_name(form));
  }
  EXPECT_THAT(forms, testing::ElementsAre("pair.0: float32 [2, n]", "pair.1.0: bool []",
                                          "s: int64 [2]", "p: int64 []", "any: int8 [?, ?]",
                                          "q: int64 []", "r: int64 [3]", "t: int64 [?]"));
}

}  // namespace
}  // namespace run_model
