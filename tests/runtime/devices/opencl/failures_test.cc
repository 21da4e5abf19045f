// What OpenCL's drivers say of lost devices and too little memory, said here by functions in the
// driver's place.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/graph_executor.h>
#include "runtime/devices/drivers.h"
#include "runtime/devices/opencl/api.h"
#include "runtime/devices/opencl/device.h"
#include "tests/runtime/executor/graph_executor_fixture.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using Floats = std::vector<float>;

cl_int failure = CL_SUCCESS;  // what the function in question gives

// While it lives, a function of the driver is another one.
template <typename Function>
class Replaced {
 public:
  Replaced(Function OpenClApi::* member, Function function)
      : place_(const_cast<OpenClApi&>(opencl_api()).*member), original_(place_) {
    place_ = function;
  }
  ~Replaced() { place_ = original_; }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  Function& place_;
  Function original_;
};

cl_int fail_finish(cl_command_queue) { return failure; }
cl_mem fail_buffer(cl_context, cl_mem_flags, std::size_t, void*, cl_int* status) {
  *status = failure;
  return nullptr;
}
cl_int fail_launch(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*,
                   const std::size_t*, cl_uint, const cl_event*, cl_event*) {
  return failure;
}

class OpenClFailuresTest : public GraphExecutorTest {
 protected:
  GraphExecutor adding() {
    json graph = add_graph();
    graph["attrs"]["device_index"][1] = std::vector<int>(3, kDLOpenCL);
    ModelFiles made = files(graph, add_params(true));
    made.library = DEVICE_MODEL;
    GraphExecutor executor(made);
    executor.set_input(0, vector_of({1, 1, 1, 1}));
    return executor;
  }
};

std::string sentence_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(OpenClFailuresTest, LostDevicesStayLost) {
  for (const auto& [code, name] : {std::pair{CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
                                   {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
                                   {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"}}) {
    const auto device = opencl_driver().open(0);
    void* memory = device->allocate(64);
    std::string said;
    {
      failure = code;
      const Replaced finish(&OpenClApi::clFinish, &fail_finish);
      said = sentence_of([&] { device->wait(); });
    }
    EXPECT_NE(said.find("device opencl:0 ("), std::string::npos) << said;
    EXPECT_NE(said.find("was lost while running kernels (" + std::string(name)), std::string::npos)
        << said;
    EXPECT_NE(said.find("start the program again"), std::string::npos) << said;
    // The driver would do all of this.
    std::array<char, 64> bytes{};
    EXPECT_EQ(sentence_of([&] { device->wait(); }), said);
    EXPECT_EQ(sentence_of([&] { device->allocate(64); }), said);
    EXPECT_EQ(sentence_of([&] { device->submit(); }), said);
    EXPECT_EQ(sentence_of([&] { device->upload(memory, 0, bytes.data(), 64); }), said);
    EXPECT_EQ(sentence_of([&] { device->download(memory, 0, bytes.data(), 64); }), said);
    device->free(memory);
  }
}

// A GPU's, whose patience ends, on whatever computes here.
std::unique_ptr<Device> open_patiently(std::uint64_t nanoseconds) {
  const OpenClApi& api = opencl_api();
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  EXPECT_EQ(api.clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
  EXPECT_EQ(api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), CL_SUCCESS);
  return open_opencl_device(api, platform, device, {kDLOpenCL, 0}, opencl_driver().info(0),
                            nanoseconds);
}

cl_int never_done(cl_event, cl_event_info, std::size_t, void* value, std::size_t*) {
  const cl_int running = CL_RUNNING;
  std::memcpy(value, &running, sizeof(running));
  return CL_SUCCESS;
}
cl_int done_wrongly(cl_event, cl_event_info, std::size_t, void* value, std::size_t*) {
  std::memcpy(value, &failure, sizeof(failure));
  return CL_SUCCESS;
}
int frees = 0;
cl_int count_free(cl_mem) {
  ++frees;
  return CL_SUCCESS;
}

TEST_F(OpenClFailuresTest, WaitsForTheQueueWhereItMayHang) {
  const auto device = open_patiently(60'000'000'000);
  void* memory = device->allocate(64);
  const std::array<char, 4> given{1, 2, 3, 4};
  std::array<char, 4> got{};
  device->upload(memory, 8, given.data(), given.size());
  device->copy(memory, 8, memory, 16, given.size());
  device->wait();
  device->download(memory, 16, got.data(), got.size());
  EXPECT_EQ(got, given);
  {
    failure = CL_OUT_OF_RESOURCES;
    const Replaced status(&OpenClApi::clGetEventInfo, &done_wrongly);
    EXPECT_TRUE(throws_error([&] { device->wait(); }, ErrorKind::kModel,
                             {"was lost while running kernels (CL_OUT_OF_RESOURCES"}));
  }
  device->free(memory);
}

TEST_F(OpenClFailuresTest, KernelsThatHangAreGivenUp) {
  auto device = open_patiently(1'000'000'000);
  void* memory = device->allocate(64);
  std::array<char, 64> bytes{};
  const Replaced status(&OpenClApi::clGetEventInfo, &never_done);
  const std::string said =
      sentence_of([&] { device->download(memory, 0, bytes.data(), bytes.size()); });
  EXPECT_NE(said.find("did not end in time while running kernels (CL_RUNNING after 1 seconds)"),
            std::string::npos)
      << said;
  EXPECT_EQ(sentence_of([&] { device->wait(); }), said);
  EXPECT_EQ(sentence_of([&] { device->upload(memory, 0, bytes.data(), bytes.size()); }), said);
  frees = 0;
  failure = CL_SUCCESS;
  const Replaced release(&OpenClApi::clReleaseMemObject, &count_free);
  device->free(memory);
  device.reset();
  EXPECT_EQ(frees, 0) << "the kernel may still use it";
}

cl_int few_threads(cl_kernel, cl_device_id, cl_kernel_work_group_info what, std::size_t size,
                   void* value, std::size_t*) {
  constexpr std::size_t kThreads = 32;
  std::memset(value, 0, size);
  if (what == CL_KERNEL_WORK_GROUP_SIZE) std::memcpy(value, &kThreads, sizeof(kThreads));
  return CL_SUCCESS;
}

TEST_F(OpenClFailuresTest, TooManyThreadsForTheRegisters) {
  const auto device = opencl_driver().open(0);
  auto code = std::make_shared<DeviceCode>();
  code->format = "cl";
  code->data = "// Function: idle\n__kernel void idle() {}\n";
  code->kernels.push_back({.name = "idle"});
  const Replaced needs(&OpenClApi::clGetKernelWorkGroupInfo, &few_threads);
  const auto kernel = device->kernel(code, "idle");
  kernel->launch({}, {{3, 1, 1}, {8, 4, 1}, 0});
  EXPECT_TRUE(throws_error(
      [&] { kernel->launch({}, {{1, 1, 1}, {8, 4, 2}, 0}); }, ErrorKind::kIncompatible,
      {"kernel 'idle' is launched with 64 threads a group", "device opencl:0 (", "can have 32"}));
}

TEST_F(OpenClFailuresTest, MissingExtensionsAreNamed) {
  const auto device = opencl_driver().open(0);
  auto code = std::make_shared<DeviceCode>();
  code->format = "cl";
  code->data = "// Function: strange\n#pragma OPENCL EXTENSION cl_khr_none_such : enable\n"
               "__kernel void strange() { no_such_function(); }\n";
  code->kernels.push_back({.name = "strange"});
  EXPECT_TRUE(
      throws_error([&] { device->kernel(code, "strange"); }, ErrorKind::kIncompatible,
                   {"device opencl:0 (", "has no cl_khr_none_such, which kernel 'strange' needs"}));
}

TEST_F(OpenClFailuresTest, MemoryMayBeThereLater) {
  const auto device = opencl_driver().open(0);
  for (const cl_int code : {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES}) {
    failure = code;
    const Replaced create(&OpenClApi::clCreateBuffer, &fail_buffer);
    EXPECT_TRUE(throws_error([&] { device->allocate(64); }, ErrorKind::kModel,
                             {"device opencl:0 (", "ran out of memory while allocating 64 bytes",
                              opencl_error_name(code), "take a smaller model"}));
  }
  device->free(device->allocate(64));
}

TEST_F(OpenClFailuresTest, ExecutorsGiveNoOldOutputs) {
  GraphExecutor executor = adding();
  executor.run();
  EXPECT_EQ(values_of(executor.output(0)), (Floats{2, 3, 4, 5}));
  {
    failure = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    const Replaced launch(&OpenClApi::clEnqueueNDRangeKernel, &fail_launch);
    const std::string said = sentence_of([&] { executor.run(); });
    EXPECT_NE(said.find("ran out of memory while launching kernel 'add_kernel'"), std::string::npos)
        << said;
    EXPECT_EQ(sentence_of([&] { executor.output(0); }), said);
  }
  executor.run();
  EXPECT_EQ(values_of(executor.output(0)), (Floats{2, 3, 4, 5}));

  std::string said;
  {
    failure = CL_OUT_OF_RESOURCES;
    const Replaced finish(&OpenClApi::clFinish, &fail_finish);
    said = sentence_of([&] { executor.run(); });
    EXPECT_NE(said.find("was lost"), std::string::npos) << said;
  }
  EXPECT_EQ(sentence_of([&] { executor.output(0); }), said);
  EXPECT_EQ(sentence_of([&] { executor.run(); }), said);
  EXPECT_EQ(sentence_of([&] { executor.run_async(); }), said);
  EXPECT_EQ(sentence_of([&] { executor.wait(); }), said);
  EXPECT_EQ(sentence_of([&] { executor.output(0); }), said);
}

}  // namespace
}  // namespace run_model
