#include "runtime/relax/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "runtime/elf/file.h"
#include "runtime/relax/called_names.h"
#include "runtime/relax/library_blob.h"
#include "tests/runtime/relax/test_executable.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing_params::put;
using testing_relax::bytes_of_text;
using testing_relax::con;
using testing_relax::ExecutableBuilder;
using testing_relax::fun;
using testing_relax::imm;
using testing_relax::parse;
using testing_relax::reg;
using testing_relax::small_executable;

void expect_refused_bytes(const std::string& bytes, const std::string& text,
                          ErrorKind kind = ErrorKind::kFormat) {
  EXPECT_TRUE(throws_error([&] { parse(bytes); }, kind, {"'model.so'", text})) << text;
}

TEST(RelaxExecutableTest, ReadsFunctionsConstantsAndInstructions) {
  const std::string bytes = small_executable().bytes();
  const RelaxExecutable executable = parse(bytes);
  ASSERT_EQ(executable.functions.size(), 6u);
  const RelaxFunction* main = executable.find("main");
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->kind, RelaxFunctionKind::kBytecode);
  EXPECT_EQ(main->parameter_names, std::vector<std::string>{"x"});
  EXPECT_EQ(main->end - main->start, 6u);
  EXPECT_EQ(executable.find("other"), nullptr);
  const auto& tensor = std::get<Param>(executable.constants[4]);
  EXPECT_EQ(tensor.shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(tensor.data.size(), 8u);
  const RelaxInstruction& call = executable.instructions[4];
  EXPECT_EQ(call.opcode, RelaxOpcode::kCall);
  EXPECT_EQ(call.arguments[1].kind, RelaxArgumentKind::kConstant);
  EXPECT_EQ(call.arguments[1].value, 4);
}

TEST(RelaxExecutableTest, ReadsTheFormWithoutMemoryScopesToo) {
  ExecutableBuilder builder = small_executable();
  builder.magic = 0xD225DE2F4214151D;
  EXPECT_EQ(parse(builder.bytes()).functions.size(), 6u);
}

TEST(RelaxExecutableTest, ReadsNegativeImmediates) {
  ExecutableBuilder builder;
  builder.begin("main", {}, 1);
  builder.call(0, "vm.builtin.copy", {imm(-5)});
  builder.ret(0);
  EXPECT_EQ(parse(builder.bytes()).instructions[0].arguments[0].value, -5);
}

TEST(RelaxExecutableTest, KnowsTheBoolOfLaterReleases) {
  ExecutableBuilder builder = small_executable();
  EXPECT_FALSE(parse(builder.bytes()).bool_is_a_type);
  builder.tensor({1}, {6, 8, 1}, "\1");
  const RelaxExecutable executable = parse(builder.bytes());
  EXPECT_TRUE(executable.bool_is_a_type);
  EXPECT_EQ(dtype_name(std::get<Param>(executable.constants.back()).dtype), "bool");
}

TEST(RelaxExecutableTest, RefusesOtherFormats) {
  ExecutableBuilder builder = small_executable();
  builder.magic = 17;
  expect_refused_bytes(builder.bytes(), "there is no Relax executable");
  builder = small_executable();
  builder.version = "0.15";
  expect_refused_bytes(builder.bytes(), "version '0.15'", ErrorKind::kIncompatible);
  builder = small_executable();
  builder.scopes = {"global.texture"};
  expect_refused_bytes(builder.bytes(), "'global.texture'", ErrorKind::kIncompatible);
  builder = small_executable();
  builder.scopes.assign(9, "global");
  expect_refused_bytes(builder.bytes(), "memory for constant 8 of 5");
  expect_refused_bytes(small_executable().bytes() + "x", "1 bytes are left over");
}

// What a virtual machine would follow blindly.
TEST(RelaxExecutableTest, RefusesWhatLeadsAstray) {
  const auto refuse = [](auto&& add, const std::string& text) {
    ExecutableBuilder builder;
    const std::int64_t copy = builder.packed("vm.builtin.copy");
    builder.begin("main", {"x"}, 3);
    add(builder, copy);
    expect_refused_bytes(builder.bytes(), text);
  };
  using Builder = ExecutableBuilder;
  refuse([](Builder& b, std::int64_t) { b.ret(3); }, "names register 3 of 3");
  refuse([](Builder& b, std::int64_t) { b.ret(-1); }, "names register -1 of 3");
  refuse([](Builder& b, std::int64_t f) { b.call(3, f, {}), b.ret(0); }, "names register 3");
  refuse([](Builder& b, std::int64_t f) { b.call(1, f, {reg(7)}), b.ret(0); }, "register 7");
  refuse([](Builder& b, std::int64_t f) { b.call(1, f, {con(0)}), b.ret(0); }, "constant 0 of 0");
  refuse([](Builder& b, std::int64_t f) { b.call(1, f, {fun(2)}), b.ret(0); }, "function 2 of 2");
  refuse([](Builder& b, std::int64_t) { b.call(1, 9, {}), b.ret(0); }, "calls function 9 of 2");
  refuse([](Builder& b, std::int64_t f) { b.call(1, f, {reg(0)}); }, "does not return");
  refuse([](Builder& b, std::int64_t) { b.jump(0), b.ret(0); }, "jumps by 0");
  refuse([](Builder& b, std::int64_t) { b.jump(2), b.ret(0); }, "jumps by 2");
  refuse([](Builder& b, std::int64_t) { b.branch(0, -1), b.ret(0); }, "jumps by -1");
  refuse([](Builder& b, std::int64_t) { b.branch(0, 1); }, "jumps by 1");
  refuse([](Builder& b, std::int64_t) { b.instruction({5}), b.ret(0); }, "opcode 5");
  refuse([](Builder& b, std::int64_t) { b.instruction({1, 0, 0, 9}); }, "has 9 arguments");
  refuse([](Builder& b, std::int64_t) { b.instruction({1, 0}); }, "is cut short");
  refuse([](Builder& b, std::int64_t) { b.ret(0), b.words.push_back(1); }, "words are left over");
  refuse([](Builder& b, std::int64_t) { b.ret(0), b.offsets[0] = 1; }, "does not begin where");
  refuse([](Builder& b, std::int64_t) { b.ret(0), b.functions[1].end = 5; }, "0 to 5 of 1");
  refuse([](Builder& b, std::int64_t) { b.ret(0), b.functions[1].registers = 0; }, "1 parameters");
  refuse([](Builder& b, std::int64_t) { b.ret(0), b.functions[1].kind = 3; }, "of kind 3");
}

std::string library_blob(const std::string& executable, const std::string& kind,
                         std::uint64_t child = 1) {
  std::string content;
  for (const std::uint64_t number : {3, 0, 1, 1, 1}) put<std::uint64_t>(content, number);
  put(content, child);
  content += bytes_of_text("_lib") + bytes_of_text(kind) + bytes_of_text(executable);
  return bytes_of_text(content);
}

std::optional<RelaxBytes> parse_blob(const std::string& blob) {
  return parse_library_blob(std::as_bytes(std::span(blob)), "'model.so'", 100, false);
}

TEST(RelaxLibraryBlobTest, FindsTheExecutableAmongTheModules) {
  const std::string executable = small_executable().bytes();
  for (const char* kind : {"relax.VMExecutable", "relax.Executable"}) {
    const std::string blob = library_blob(executable, kind);
    const auto found = parse_blob(blob);
    ASSERT_TRUE(found) << kind;
    EXPECT_EQ(found->bytes.size(), executable.size());
    EXPECT_EQ(found->base, 100 + blob.size() - executable.size());
  }
  EXPECT_FALSE(parse_blob(library_blob("", "const_loader")));
}

TEST(RelaxCalledNamesTest, TellsAFunctionThatIsLeftOutWhoeverCallsIt) {
  const auto file = MappedFile::open(EXECUTOR_MODEL, "library");
  const ElfFile elf = ElfFile::parse(file->bytes(), "library 'model.so'");
  RelaxExecutable executable;
  for (const char* name : {"vm.builtin.reshape", "tvm.contrib.sort.topk", "relax.run.unique"}) {
    executable.functions.emplace_back().name = name;
  }
  executable.functions.emplace_back().name = "main";
  executable.functions.back().kind = RelaxFunctionKind::kBytecode;
  check_called_names(executable, elf, file->bytes());
  executable.functions.emplace_back().name = "vm.builtin.rnn_state_get";
  EXPECT_TRUE(throws_error([&] { check_called_names(executable, elf, file->bytes()); },
                           ErrorKind::kIncompatible,
                           {"'model.so'", "'vm.builtin.rnn_state_get'", "language models"}));
}

TEST(RelaxLibraryBlobTest, ReadsTheFormOf021) {
  const std::string executable = small_executable().bytes();
  std::string content;
  put<std::uint64_t>(content, 3);
  content += bytes_of_text("_lib") + bytes_of_text("relax.Executable") + bytes_of_text(executable) +
             bytes_of_text("_import_tree");
  for (const std::uint64_t number : {3, 0, 1, 1, 1, 1}) put<std::uint64_t>(content, number);
  const std::string blob = bytes_of_text(content);
  const auto found = parse_library_blob(std::as_bytes(std::span(blob)), "'model.so'", 0, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes.size(), executable.size());
}

TEST(RelaxLibraryBlobTest, RefusesOtherModulesAndDamage) {
  EXPECT_TRUE(throws_error([] { parse_blob(library_blob("", "cuda")); }, ErrorKind::kIncompatible,
                           {"'model.so'", "'cuda'"}));
  EXPECT_TRUE(throws_error([] { parse_blob(library_blob("", "relax.Executable", 2)); },
                           ErrorKind::kFormat, "names module 2 of 2"));
  const std::string blob = library_blob("executable", "relax.Executable");
  for (std::size_t length = 0; length < blob.size(); ++length) {
    EXPECT_TRUE(throws_error([&] { parse_blob(blob.substr(0, length)); }, ErrorKind::kFormat,
                             "'model.so'"));
  }
}

}  // namespace
}  // namespace run_model
