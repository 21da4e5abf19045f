// CUDA's device against a stand-in for NVIDIA's driver; see stand_in.h for what that proves.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/devices/cuda/code_needs.h"
#include "runtime/devices/cuda/device.h"
#include "runtime/devices/drivers.h"
#include "tests/runtime/devices/cuda/stand_in.h"
#include "tests/runtime/devices/test_code.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing::HasSubstr;

// The stand-in, opened before the driver is: a library of the same name is not opened again.
class StandIn {
 public:
  StandIn() : library_(::dlopen(STAND_IN, RTLD_NOW | RTLD_GLOBAL)) {
    if (library_ == nullptr) ADD_FAILURE() << ::dlerror();
  }
  template <typename F>
  F* find(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }

  void reset(const StandInGpu& gpu) const {
    find<decltype(stand_in_reset)>("stand_in_reset")(&gpu);
  }
  std::string log() const { return find<decltype(stand_in_log)>("stand_in_log")(); }
  std::string problems() const { return find<decltype(stand_in_problems)>("stand_in_problems")(); }
  std::string leaks() const { return find<decltype(stand_in_leaks)>("stand_in_leaks")(); }
  void fail(const char* function, int result) const {
    find<decltype(stand_in_fail)>("stand_in_fail")(function, result);
  }
  void kernel(const char* name, StandInKernel work) const {
    find<decltype(stand_in_kernel)>("stand_in_kernel")(name, work);
  }

 private:
  void* library_;
};

const StandIn& stand_in() {
  static const StandIn one;
  return one;
}

constexpr DLDataType kHandle{kDLOpaqueHandle, 64, 1};
constexpr DLDataType kFloat{kDLFloat, 32, 1};
constexpr DLDataType kInt32{kDLInt, 32, 1};

// scale(to, from, factor, count): to[i] = from[i] * factor.
std::shared_ptr<DeviceCode> scale_code(const std::string& version = "8.4",
                                       const std::string& target = "sm_80") {
  auto code = std::make_shared<DeviceCode>();
  code->device = kDLCUDA;
  code->format = "ptx";
  code->kernels = {{"scale",
                    {kHandle, kHandle, kFloat, kInt32},
                    {"blockIdx.x", "threadIdx.x", "tir.use_dyn_shared_memory"}}};
  code->data = "// .version 1.0 is not it\n.version " + version + "\n.target " + target +
               "\n.address_size 64\n.visible .entry scale(\n.param .u64 to,\n.param .u64 from,\n"
               ".param .f32 factor,\n.param .u32 count\n)\n{\nret;\n}\n";
  return code;
}

void scale(const std::uint64_t* arguments, const unsigned* /*sizes*/, unsigned /*shared*/) {
  auto* to = reinterpret_cast<float*>(arguments[0]);
  const auto* from = reinterpret_cast<const float*>(arguments[1]);
  float factor = 0;
  std::memcpy(&factor, &arguments[2], sizeof(factor));
  for (std::uint64_t i = 0; i < arguments[3]; ++i) to[i] = from[i] * factor;
}

class CudaDeviceTest : public testing::Test {
 protected:
  CudaDeviceTest() { stand_in().reset({}); }

  // Each test ends with nothing wrong and everything given back, unless it says otherwise.
  void TearDown() override {
    EXPECT_EQ(stand_in().problems(), "");
    if (!lost_) {
      EXPECT_EQ(stand_in().leaks(), "");
    }
  }

  std::array<PackedValue, 4> arguments(void* to, void* from, double factor, std::int64_t count) {
    std::array<PackedValue, 4> values{};
    values[0].v_handle = to;
    values[1].v_handle = from;
    values[2].v_float64 = factor;
    values[3].v_int64 = count;
    return values;
  }

  bool lost_ = false;
};

constexpr std::array<float, 4> kValues = {1, 2, 3, 4};

TEST_F(CudaDeviceTest, DriverDescribesItsGpus) {
  DeviceDriver& driver = cuda_driver();
  EXPECT_EQ(driver.type(), kDLCUDA);
  EXPECT_EQ(driver.name(), "cuda");
  EXPECT_EQ(driver.absence().reason, "");
  ASSERT_EQ(driver.count(), 1u);
  const DeviceInfo info = driver.info(0);
  EXPECT_EQ(info.name, "Stand-in GPU");
  EXPECT_EQ(info.driver, "CUDA 12.4");
  EXPECT_EQ(info.architecture, "sm_80");
  EXPECT_EQ(info.memory_bytes, 1u << 20);
  EXPECT_EQ(info.shared_memory_bytes, 99u << 10);
  EXPECT_EQ(info.threads_per_group, 1024u);
  EXPECT_EQ(info.group_size[2], 64u);
  EXPECT_EQ(info.grid_size[1], 65535u);
  EXPECT_EQ(info.subgroup_size, 32u);
  EXPECT_EQ(info.compute_units, 108u);
  EXPECT_FALSE(info.software);
  EXPECT_TRUE(throws_error([&] { driver.info(1); }, ErrorKind::kIncompatible,
                           {"there is no device cuda:1", "only cuda:0"}));
}

TEST_F(CudaDeviceTest, MemoryIsZeroedAndCopied) {
  const auto device = cuda_driver().open(0);
  EXPECT_EQ(device->id().device_type, kDLCUDA);
  void* memory = device->allocate(1000);
  EXPECT_EQ(device->allocated_bytes(), 1000u);
  std::array<float, 4> back = kValues;
  device->download(memory, 0, back.data(), sizeof(back));
  EXPECT_EQ(back, (std::array<float, 4>{}));

  void* part = device->part(memory, 0, sizeof(kValues));
  void* second = device->part(memory, device->part_alignment(), sizeof(kValues));
  device->upload(part, 0, kValues.data(), sizeof(kValues));
  device->copy(part, 0, second, 4, 12);
  device->download(second, 0, back.data(), sizeof(back));
  EXPECT_EQ(back, (std::array<float, 4>{0, 1, 2, 3}));
  device->free(part);
  EXPECT_EQ(device->allocated_bytes(), 1000u) << "a part at offset 0 has its memory's address";
  device->free(second);
  device->free(memory);
  EXPECT_EQ(device->allocated_bytes(), 0u);
  device->free(device->allocate(0));
  device->upload(nullptr, 0, kValues.data(), 0);
}

TEST_F(CudaDeviceTest, PinnedMemoryMayChangeAfterAnUpload) {
  auto device = cuda_driver().open(0);
  void* memory = device->allocate(sizeof(kValues));
  std::shared_ptr<void> host = device->allocate_host(sizeof(kValues));
  std::memcpy(host.get(), kValues.data(), sizeof(kValues));
  device->upload(memory, 0, host.get(), sizeof(kValues));
  std::memset(host.get(), 0, sizeof(kValues));
  device->download(memory, 0, host.get(), sizeof(kValues));
  EXPECT_EQ(std::memcmp(host.get(), kValues.data(), sizeof(kValues)), 0);
  device.reset();
  host.reset();  // later than its device
}

TEST_F(CudaDeviceTest, KernelsGetTheirArguments) {
  stand_in().kernel("scale", scale);
  const auto device = cuda_driver().open(0);
  const auto code = scale_code();
  void* from = device->allocate(sizeof(kValues));
  void* to = device->allocate(sizeof(kValues));
  device->upload(from, 0, kValues.data(), sizeof(kValues));
  const auto kernel = device->kernel(code, "scale");
  const auto again = device->kernel(code, "scale");
  // More than what is allowed without asking.
  const LaunchSize size{{7, 1, 1}, {64, 2, 1}, 60 << 10};
  kernel->launch(arguments(to, from, 0.5, 3), size);
  std::array<float, 4> back{};
  device->download(to, 0, back.data(), sizeof(back));
  EXPECT_EQ(back, (std::array<float, 4>{0.5, 1, 1.5, 0}));
  const std::string log = stand_in().log();
  EXPECT_THAT(log, HasSubstr("cuLaunchKernel scale grid=7x1x1 block=64x2x1 shared=61440\n"));
  EXPECT_THAT(log, HasSubstr("cuFuncSetAttribute 8=100352\n"));
  EXPECT_EQ(log.find("cuModuleLoadDataEx"), log.rfind("cuModuleLoadDataEx"));
}

TEST_F(CudaDeviceTest, TooManyThreadsForTheRegisters) {
  stand_in().reset({.kernel_threads = 64});
  const auto device = cuda_driver().open(0);
  const auto kernel = device->kernel(scale_code(), "scale");
  void* memory = device->allocate(64);
  EXPECT_TRUE(throws_error(
      [&] { kernel->launch(arguments(memory, memory, 1, 1), {{1, 1, 1}, {128, 1, 1}, 0}); },
      ErrorKind::kIncompatible,
      {"the kernel 'scale' is launched with 128 threads", "can have 64"}));
}

TEST_F(CudaDeviceTest, RecordedWorkIsRepeated) {
  stand_in().kernel("scale", scale);
  const auto device = cuda_driver().open(0);
  void* from = device->allocate(sizeof(kValues));
  void* to = device->allocate(sizeof(kValues));
  const auto kernel = device->kernel(scale_code(), "scale");
  device->wait();
  auto recording = device->record([&] {
    kernel->launch(arguments(to, from, 2, 4), {});
    device->copy(to, 0, from, 0, sizeof(kValues));
  });
  ASSERT_NE(recording, nullptr);
  device->upload(from, 0, kValues.data(), sizeof(kValues));
  recording->replay();
  recording->replay();
  std::array<float, 4> back{};
  device->download(from, 0, back.data(), sizeof(back));
  EXPECT_EQ(back, (std::array<float, 4>{4, 8, 12, 16}));

  EXPECT_TRUE(
      throws_error([&] { device->record([] { throw Error(ErrorKind::kModel, "within"); }); },
                   ErrorKind::kModel, "within"));
  device->wait();
}

TEST_F(CudaDeviceTest, MarksTellTheTime) {
  const auto device = cuda_driver().open(0);
  void* memory = device->allocate(64);
  const Device::Mark first = device->mark();
  device->copy(memory, 0, memory, 32, 16);
  const Device::Mark second = device->mark();
  // The stand-in's GPU takes half a millisecond for each thing.
  EXPECT_DOUBLE_EQ(device->seconds_between(first, second), 0.001);
  device->forget_marks();
  EXPECT_TRUE(throws_error([&] { device->seconds_between(first, second); }, ErrorKind::kInternal,
                           "forgotten"));
  EXPECT_NE(device->mark(), second);
}

TEST_F(CudaDeviceTest, CodeForOtherGpusIsRefused) {
  const auto device = cuda_driver().open(0);
  const auto refused = [&](const DeviceCode& code, std::initializer_list<std::string_view> texts) {
    EXPECT_TRUE(throws_error([&] { device->kernel(std::make_shared<DeviceCode>(code), "scale"); },
                             ErrorKind::kIncompatible, texts));
  };
  refused(*scale_code("8.4", "sm_90"),
          {"cuda:0 (Stand-in GPU)", "is for GPUs of architecture sm_90 and later",
           "but this one is sm_80", "target cuda-sm_80"});
  refused(*scale_code("8.4", "sm_75a"), {"is for GPUs of architecture sm_75a, but"});
  refused(*scale_code("8.5"), {"is PTX 8.5", "CUDA 12.4, takes PTX up to 8.4"});
  DeviceCode cubin = *scale_code();
  cubin.format = "cubin";
  cubin.data = std::string("\x7f"
                           "ELF\2\1\1\x33\7",
                           9) +
               std::string(39, '\0') + '\x57' + std::string(15, '\0');
  refused(cubin, {"is for GPUs of architecture sm_87, but this one is sm_80"});
}

TEST(CudaCodeNeedsTest, AreReadFromTheCode) {
  DeviceCode code = *scale_code("7.8", "sm_86");
  EXPECT_EQ(cuda::ptx_version(code), (cuda::PtxVersion{7, 8}));
  EXPECT_EQ(cuda::architecture(code), 86u);
  EXPECT_EQ(cuda::architecture_problem(code, 86), "");
  EXPECT_EQ(cuda::architecture_problem(code, 120), "");
  code = *scale_code("8.8", "sm_100f");
  EXPECT_EQ(cuda::architecture_problem(code, 103), "");
  EXPECT_NE(cuda::architecture_problem(code, 120), "");
  code.format = "cubin";
  code.data.assign(64, '\0');
  EXPECT_EQ(cuda::architecture(code), std::nullopt);
  code.data[8] = 8;  // the layout of CUDA 13
  code.data[49] = 90;
  EXPECT_EQ(cuda::architecture(code), 90u);
  EXPECT_NE(cuda::architecture_problem(code, 100), "");
  code.data = "short";
  EXPECT_EQ(cuda::architecture(code), std::nullopt);
  EXPECT_EQ(cuda::newest_ptx(12060), (cuda::PtxVersion{8, 5}));
  EXPECT_EQ(cuda::newest_ptx(99990), std::nullopt);
}

TEST_F(CudaDeviceTest, FailuresNameTheDevice) {
  const auto device = cuda_driver().open(0);
  EXPECT_TRUE(
      throws_error([&] { device->allocate(2 << 20); }, ErrorKind::kModel,
                   {"device cuda:0 (Stand-in GPU) ran out of memory while allocating 2097152",
                    "of 1048576", "CUDA_ERROR_OUT_OF_MEMORY", "take a smaller model"}));
  EXPECT_EQ(device->allocated_bytes(), 0u);
  stand_in().fail("cuMemHostAlloc", 2);
  EXPECT_TRUE(throws_error([&] { device->allocate_host(64); }, ErrorKind::kModel,
                           "CUDA_ERROR_OUT_OF_MEMORY (stand-in)"));
  device->allocate_host(64);
}

TEST_F(CudaDeviceTest, LostDevicesStayLost) {
  lost_ = true;
  const auto device = cuda_driver().open(0);
  void* memory = device->allocate(64);
  stand_in().fail("cuStreamQuery", 700);
  std::string said;
  try {
    device->wait();
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_THAT(said, HasSubstr("device cuda:0 (Stand-in GPU) was lost while running kernels "
                              "(CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access"));
  EXPECT_THAT(said, HasSubstr("start the program again"));
  EXPECT_TRUE(throws_error([&] { device->allocate(64); }, ErrorKind::kModel, said));
  std::array<float, 4> back{};
  EXPECT_TRUE(throws_error([&] { device->download(memory, 0, back.data(), sizeof(back)); },
                           ErrorKind::kModel, said));
  device->free(memory);
}

TEST_F(CudaDeviceTest, TimeOutsAreSaid) {
  lost_ = true;
  const auto device = cuda_driver().open(0);
  stand_in().fail("cuStreamQuery", 702);
  EXPECT_TRUE(throws_error([&] { device->wait(); }, ErrorKind::kModel,
                           {"did not end in time while running kernels", "draws the screen"}));
  EXPECT_TRUE(throws_error([&] { device->wait(); }, ErrorKind::kModel, "did not end in time"));
}

TEST_F(CudaDeviceTest, KernelsThatHangAreGivenUp) {
  lost_ = true;
  std::string reason;
  const cuda::Api* const api = cuda::open_api(reason);
  ASSERT_NE(api, nullptr) << reason;
  auto device = cuda::open_device(*api, 0, 0, cuda_driver().info(0), 1);
  void* memory = device->allocate(sizeof(kValues));
  std::array<float, 4> back{};
  stand_in().fail("cuStreamQuery", cuda::kNotReady);
  const auto download = [&] { device->download(memory, 0, back.data(), sizeof(back)); };
  EXPECT_TRUE(
      throws_error(download, ErrorKind::kModel,
                   {"device cuda:0 (Stand-in GPU) did not end in time while running kernels", "600",
                    "after 0 seconds"}));
  // Nothing that waits for the kernel is called any more.
  const std::string log = stand_in().log();
  EXPECT_TRUE(throws_error(download, ErrorKind::kModel, "did not end in time"));
  EXPECT_TRUE(throws_error([&] { device->wait(); }, ErrorKind::kModel, "did not end in time"));
  device->free(memory);
  device.reset();
  EXPECT_EQ(stand_in().log(), log);
}

TEST_F(CudaDeviceTest, WaitsUntilTheStreamIsReady) {
  const auto device = cuda_driver().open(0);
  void* memory = device->allocate(sizeof(kValues));
  device->upload(memory, 0, kValues.data(), sizeof(kValues));
  stand_in().fail("cuStreamQuery", cuda::kNotReady);
  std::array<float, 4> back{};
  device->download(memory, 0, back.data(), sizeof(back));
  EXPECT_EQ(back, kValues);
}

TEST_F(CudaDeviceTest, OpeningThatFailsGivesTheContextBack) {
  stand_in().fail("cuStreamCreate", 2);
  EXPECT_TRUE(throws_error([] { cuda_driver().open(0); }, ErrorKind::kModel, "making a stream"));
}

// The stand-in sees what it says it sees.
TEST_F(CudaDeviceTest, StandInComplains) {
  {
    const auto device = cuda_driver().open(0);
    void* memory = device->allocate(64);
    EXPECT_ANY_THROW(device->upload(memory, 60, kValues.data(), 16));
    EXPECT_THAT(stand_in().problems(), HasSubstr("cuMemcpyHtoDAsync_v2: out of bounds\n"));
    const auto kernel = device->kernel(scale_code(), "scale");
    auto* nowhere = reinterpret_cast<void*>(std::uintptr_t{1} << 40);
    kernel->launch(arguments(memory, nowhere, 1, 1), {{1, 70000, 1}, {1, 1, 1}, 0});
    EXPECT_THAT(stand_in().problems(), HasSubstr("argument 1 is no live memory\n"));
    EXPECT_THAT(stand_in().problems(), HasSubstr("the grid is 70000\n"));
    EXPECT_THAT(stand_in().leaks(), HasSubstr("memory bytes=64\n1 streams\n"));
  }
  stand_in().reset({});
}

}  // namespace
}  // namespace run_model
