#include "rpc/modules/library_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <run_model/error.h>
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

class LibraryModuleTest : public testing::Test {
 protected:
  Value call(const char* name, std::vector<Value> arguments) {
    const FunctionPointer function = module_->find(name);
    if (function == nullptr) throw std::runtime_error(std::string("no function ") + name);
    return function->call(arguments);
  }

  std::shared_ptr<LibraryModule> module_ =
      std::make_shared<LibraryModule>(Module::open(PACKED_FUNCTIONS));
};

TEST_F(LibraryModuleTest, HandsArgumentsOverInTheirOwnTypes) {
  const Tensor tensor = Tensor::empty({1}, {kDLFloat, 32, 1});
  const std::vector<Value> arguments{std::int64_t{1},
                                     2.0,
                                     Bool{true},
                                     std::string("x"),
                                     Bytes{},
                                     DLDataType{kDLInt, 8, 1},
                                     Device{},
                                     TensorArgument{tensor, 0},
                                     {}};
  // int, float, bool as int, text, bytes, data type, device, tensor, null
  EXPECT_EQ(std::get<std::int64_t>(call("codes_of", arguments)), 0x020bc5674);
  EXPECT_EQ(std::get<std::int64_t>(call("codes_of", {})), 0);
  EXPECT_EQ(std::get<double>(call("add_numbers", {std::int64_t{2}, 0.5})), 2.5);
  EXPECT_EQ(
      std::get<std::int64_t>(
          call("lengths", {std::string("abc"), Bytes::copy_of(std::as_bytes(std::span("12", 2)))})),
      5);
}

TEST_F(LibraryModuleTest, TellsCompiledCodeTheByteOffset) {
  const Tensor memory = Tensor::empty({64}, {kDLFloat, 32, 1});
  auto* const values = static_cast<float*>(memory.data());
  for (int i = 0; i < 64; ++i) values[i] = static_cast<float>(i);
  const auto part = [&](std::uint64_t byte_offset) {
    return TensorArgument{
        Tensor::view(static_cast<char*>(memory.data()) + byte_offset, {4}, memory.dtype(), nullptr),
        byte_offset};
  };
  EXPECT_EQ(std::get<std::int64_t>(call("add_one", {part(8), part(128)})), 136);
  EXPECT_EQ(values[32], 3);
  EXPECT_EQ(values[35], 6);
}

TEST_F(LibraryModuleTest, PreparedCallsDoTheSame) {
  const Tensor from = Tensor::empty({4}, {kDLFloat, 32, 1});
  const Tensor to = Tensor::empty({4}, {kDLFloat, 32, 1});
  std::fill_n(static_cast<float*>(from.data()), 4, 1.f);
  const FunctionPointer function = module_->find("add_one");
  const std::function<void()> run =
      function->prepare(std::vector<Value>{TensorArgument{from, 0}, TensorArgument{to, 0}});
  run();
  EXPECT_EQ(static_cast<float*>(to.data())[3], 2);
  EXPECT_TRUE(throws_error(module_->find("fails")->prepare({}), ErrorKind::kModel, "the reason"));
}

TEST_F(LibraryModuleTest, FailuresCarryTheReason) {
  EXPECT_TRUE(
      throws_error([&] { call("fails", {}); }, ErrorKind::kModel, "'fails' failed: the reason"));
}

TEST_F(LibraryModuleTest, RefusesWhatCompiledCodeCannotTake) {
  EXPECT_TRUE(throws_error([&] { call("codes_of", {module_->find("text")}); }, ErrorKind::kMismatch,
                           "is a function, expected"));
  EXPECT_TRUE(throws_error([&] { call("codes_of", {OpaqueHandle{123}}); }, ErrorKind::kMismatch,
                           "an opaque handle"));
  EXPECT_TRUE(throws_error([&] { call("codes_of", {Device{kDLMetal, 0}}); }, ErrorKind::kMismatch,
                           "device type 8"));
  EXPECT_TRUE(throws_error([&] { call("returns_module", {}); }, ErrorKind::kModel, "type code 9"));
}

TEST_F(LibraryModuleTest, ReturnsTextsAndBools) {
  EXPECT_EQ(std::get<std::string>(call("text", {})), "from the library");
  EXPECT_TRUE(std::get<Bool>(call("is_positive", {std::int64_t{3}})).value);
  EXPECT_FALSE(std::get<Bool>(call("is_positive", {std::int64_t{-3}})).value);
}

TEST_F(LibraryModuleTest, FindsOnlyWhatTheLibraryHas) {
  EXPECT_EQ(module_->find("nothing"), nullptr);
  // A function of the C library, which the module is linked with.
  EXPECT_EQ(module_->find("strlen"), nullptr);
  EXPECT_EQ(module_->find("default"), nullptr);
}

}  // namespace
}  // namespace run_model::rpc
