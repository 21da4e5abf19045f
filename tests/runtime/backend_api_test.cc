#include "runtime/backend_api.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <run_model/module.h>
#include <run_model/tensor.h>
#include "runtime/float16.h"
#include "runtime/relax/functions/runtime_functions.h"
#include "runtime/threads/call_context.h"
#include "runtime/threads/contention.h"

namespace run_model {
namespace {

// Calls a function of a library with integers, doubles and pointers as they come.
class Caller {
 public:
  explicit Caller(const std::string& library)
      : module_(Module::open(std::filesystem::path(LIBRARY_DIR) / library)) {}

  int operator()(const std::string& name, std::vector<PackedValue> args) {
    const PackedFunction function = module_->find(name);
    if (function == nullptr) {
      ADD_FAILURE() << "no function " << name;
      return -1;
    }
    std::vector<int> codes(args.size(), kTypeInt);
    clear_last_packed_error();
    return function(args.data(), codes.data(), static_cast<int>(args.size()), &result_, &code_,
                    nullptr);
  }

  const PackedValue& result() const { return result_; }

 private:
  std::shared_ptr<Module> module_;
  PackedValue result_{};
  int code_ = kTypeNull;
};

PackedValue integer(std::int64_t value) { return {.v_int64 = value}; }
PackedValue pointer(const void* value) { return {.v_handle = const_cast<void*>(value)}; }
PackedValue number(double value) { return {.v_float64 = value}; }

TEST(BackendApiTest, EveryFunctionIsExportedByThisProgram) {
  for (const ExportedSymbol& symbol : exported_symbols()) {
    EXPECT_EQ(::dlsym(RTLD_DEFAULT, symbol.name), symbol.address) << symbol.name;
  }
}

TEST(BackendApiTest, FailureLeavesItsReason) {
  Caller call("slots.so");
  EXPECT_EQ(call("fused_fail", {}), -1);
  EXPECT_EQ(last_packed_error(), "Assert fail: the shape is wrong");
  EXPECT_STREQ(TVMGetLastError(), "Assert fail: the shape is wrong");
  TVMAPISetLastError(nullptr);
  EXPECT_EQ(last_packed_error(), "");
}

class ParallelTest : public testing::TestWithParam<const char*> {};

// What fused_parallel leaves where as many tasks run as are asked for; 0 is as many as suit.
std::vector<std::int32_t> counts_of(const std::string& library, int tasks) {
  std::vector<std::int32_t> counts(64, 0);
  for (int i = 0; i < tasks; ++i) {
    counts[static_cast<std::size_t>(i)] = library == "slots.so" ? 1   // counts the runs
                                                                : i;  // adds the index
  }
  return counts;
}

TEST_P(ParallelTest, EveryTaskRunsOnceOnThePoolOfThisThread) {
  Caller call(GetParam());
  ThreadPool pool({.threads = 3});
  const CurrentPool current(pool);
  for (const int tasks : {3, 7}) {
    std::vector<std::int32_t> counts(64, 0);
    ASSERT_EQ(call("fused_parallel", {pointer(counts.data()), integer(tasks)}), 0);
    EXPECT_EQ(counts, counts_of(GetParam(), tasks));
  }
}

// A loop with barriers is found out by its first run, which gets threads for all of its tasks.
TEST_P(ParallelTest, LoopsAreCutFinerOnABusyMachineUnlessTheyHaveBarriers) {
  Caller call(GetParam());
  ThreadPool pool({.threads = 3});
  const CurrentPool current(pool);
  const bool barriers = std::string(GetParam()) == "direct.so";
  for (const int tasks : {12, barriers ? 3 : 12}) {
    note_contention(std::chrono::minutes(1));
    std::vector<std::int32_t> counts(64, 0);
    ASSERT_EQ(call("fused_parallel", {pointer(counts.data()), integer(0)}), 0);
    EXPECT_EQ(counts, counts_of(GetParam(), tasks));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ParallelTest, testing::Values("slots.so", "direct.so"), [](const auto& instance) {
      return std::string(instance.param).substr(0, std::string(instance.param).find('.'));
    });

TEST(BackendApiTest, NumberOfTasksCanBeAskedFor) {
  Caller call("slots.so");
  ThreadPool pool({.threads = 4});
  const CurrentPool current(pool);
  std::vector<std::int32_t> counts(4, 0);
  ASSERT_EQ(call("fused_parallel", {pointer(counts.data()), integer(2)}), 0);
  EXPECT_EQ(call.result().v_int64, 2);
  EXPECT_EQ(counts, (std::vector<std::int32_t>{1, 1, 0, 0}));
}

TEST(BackendApiTest, BarrierHoldsEveryTask) {
  Caller call("slots.so");
  ThreadPool pool({.threads = 4});
  const CurrentPool current(pool);
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(call("fused_barrier", {integer(4)}), 0);
    ASSERT_EQ(call.result().v_int64, 1);
  }
}

// The reason is set on a worker's thread and must reach the thread that runs the model.
TEST(BackendApiTest, FailureOfATaskReachesTheCaller) {
  Caller call("slots.so");
  for (const int threads : {1, 3}) {
    ThreadPool pool({.threads = threads});
    const CurrentPool current(pool);
    EXPECT_EQ(call("fused_parallel_fail", {}), -1);
    EXPECT_EQ(last_packed_error(), "the last task failed");
  }
}

TEST(BackendApiTest, WorkspaceIsAlignedAndReused) {
  Caller call("slots.so");
  ASSERT_EQ(call("fused_workspace", {integer(100000), integer(kDLCPU)}), 0);
  void* first = call.result().v_handle;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % kTensorAlignment, 0u);
  ASSERT_EQ(call("fused_workspace", {integer(100000), integer(kDLCPU)}), 0);
  EXPECT_EQ(call.result().v_handle, first);
}

TEST(BackendApiTest, WorkspaceFailuresGiveReasons) {
  Caller call("slots.so");
  EXPECT_EQ(call("fused_workspace", {integer(std::int64_t{1} << 62), integer(kDLCPU)}), -1);
  EXPECT_NE(last_packed_error().find("no memory for 4611686018427387904 bytes"), std::string::npos)
      << last_packed_error();
  EXPECT_EQ(call("fused_workspace", {integer(16), integer(kDLMetal)}), -1);
  EXPECT_NE(last_packed_error().find("without its driver"), std::string::npos)
      << last_packed_error();
  int other = 0;
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, &other), -1);
  EXPECT_NE(last_packed_error().find("did not allocate"), std::string::npos);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLMetal, 0, &other), -1);
}

TEST(BackendApiTest, FunctionsOfTheSameLibraryCanBeCalledByName) {
  Caller call("slots.so");
  ASSERT_EQ(call("fused_call_by_name", {pointer("fused_add_one"), integer(6)}), 0);
  EXPECT_EQ(call.result().v_int64, 7);
}

TEST(BackendApiTest, FunctionsOfTvmsRuntimeAreNamed) {
  Caller call("slots.so");
  EXPECT_EQ(call("fused_call_by_name", {pointer("tvm.contrib.cblas.matmul"), integer(0)}), -1);
  EXPECT_EQ(
      last_packed_error(),
      "the model calls the function 'tvm.contrib.cblas.matmul', which is part of TVM's own runtime "
      "and not of run_model; compile without -libs=… in the target");
  EXPECT_EQ(call("fused_call_by_name", {pointer("tvm.contrib.thrust.sort"), integer(0)}), -1);
  EXPECT_NE(last_packed_error().find("sorting operators"), std::string::npos);
  void* function = nullptr;
  EXPECT_EQ(TVMBackendGetFuncFromEnv(nullptr, "f", &function), -1);
}

// As tvm.contrib.sort.topk of TVM 0.18 gave it.
TEST(BackendApiTest, SortingFunctionsAreThere) {
  float values[] = {0.5F, 3.0F, -1.0F, 3.0F}, best[2] = {};
  std::int32_t places[2] = {};
  std::int64_t size = 4, wanted = 2;
  const DLTensor input{values, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &size, nullptr, 0};
  const DLTensor sorted{best, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &wanted, nullptr, 0};
  const DLTensor indices{places, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &wanted, nullptr, 0};
  const PackedFunction topk = find_packed_runtime_function("tvm.contrib.sort.topk");
  ASSERT_NE(topk, nullptr);
  std::vector<PackedValue> arguments = {pointer(&input), pointer(&sorted), pointer(&indices),
                                        integer(2),      integer(-1),      pointer("both"),
                                        integer(0)};
  std::vector<int> codes = {kTypeTensorHandle, kTypeTensorHandle, kTypeTensorHandle, kTypeInt,
                            kTypeInt,          kTypeString,       kTypeBool};
  PackedValue result{};
  int code = kTypeInt;
  const auto call = [&] {
    return topk(arguments.data(), codes.data(), static_cast<int>(codes.size()), &result, &code,
                nullptr);
  };
  ASSERT_EQ(call(), 0) << last_packed_error();
  EXPECT_EQ(code, kTypeNull);
  EXPECT_EQ((std::vector{best[0], best[1]}), (std::vector{3.0F, 3.0F}));
  EXPECT_EQ((std::vector{places[0], places[1]}), (std::vector{1, 3}));
  for (const int wrong : {kTypeFloat, kTypeNull}) {
    codes[0] = wrong;
    EXPECT_EQ(call(), -1);
    EXPECT_NE(last_packed_error().find("argument 0 is no tensor"), std::string::npos);
  }
  Caller by_name("slots.so");
  EXPECT_EQ(by_name("fused_call_by_name", {pointer("tvm.contrib.sort.argsort")}), -1);
  EXPECT_NE(last_packed_error().find("an argument is missing"), std::string::npos);
}

TEST(BackendApiTest, LibraryThatRefersToFunctionsByName) {
  Caller call("direct.so");
  ASSERT_EQ(call("fused_rest", {}), 0) << last_packed_error();
  EXPECT_EQ(call.result().v_int64, 1);
}

// Halves as integers, the convention of LLVM up to 14.
TEST(BackendApiTest, HalvesInIntegers) {
  Caller call("direct.so");
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(call("fused_double_half", {integer(bits)}), 0);
    const float doubled = 2 * half_to_float(half);
    ASSERT_EQ(call.result().v_int64, float_to_half(doubled)) << bits;
  }
  ASSERT_EQ(call("fused_round_double", {number(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40))}),
            0);
  EXPECT_EQ(call.result().v_int64, 0x3c01);
}

#ifdef HAVE_HALF_REGISTER

// Halves in floating-point registers, the convention of LLVM from 15 on and of this compiler.
TEST(BackendApiTest, HalvesInFloatRegisters) {
  Caller call("half_register.so");
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float expected = half_to_float(half);
    float value = 0;
    ASSERT_EQ(call("fused_extend", {pointer(&half), pointer(&value)}), 0);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected)) << bits;
    if (std::isnan(expected)) {
      continue;
    }
    ASSERT_EQ(call.result().v_float64, static_cast<double>(expected)) << bits;
    std::uint16_t back = 0;
    ASSERT_EQ(call("fused_round_float", {pointer(&back), number(expected)}), 0);
    ASSERT_EQ(back, half);
    ASSERT_EQ(call("fused_round_double", {pointer(&back), number(expected)}), 0);
    ASSERT_EQ(back, half);
  }
}

#endif

}  // namespace
}  // namespace run_model
