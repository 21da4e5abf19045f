#include "runtime/devices/cuda/kernel.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/launch.h"

namespace run_model::cuda {
namespace {

// As the kernel takes it, in the first bytes.
std::uint64_t parameter_bits(const PackedValue& value, DLDataType type) {
  std::uint64_t bits = 0;
  if (type.code == kDLOpaqueHandle) {
    std::memcpy(&bits, &value.v_handle, sizeof(value.v_handle));
  } else {
    const ScalarBytes scalar = scalar_bytes(value, type);
    std::memcpy(&bits, scalar.bytes.data(), scalar.size);
  }
  return bits;
}

class CudaKernel final : public DeviceKernel {
 public:
  CudaKernel(GpuContext& gpu, const DeviceInfo& device, const KernelInfo& kernel, Function function)
      : gpu_(gpu), kernel_(kernel), function_(function), values_(kernel.argument_types.size()) {
    for (std::uint64_t& value : values_) pointers_.push_back(&value);
    most_threads_ = attribute(FunctionAttribute::kThreadsPerBlock);
    const auto own_shared = static_cast<std::uint64_t>(attribute(FunctionAttribute::kStaticShared));
    if (!uses_dynamic_shared() || own_shared > device.shared_memory_bytes) return;
    gpu_.check(gpu_.api().set_function_attribute(
                   function_, FunctionAttribute::kDynamicShared,
                   static_cast<int>(device.shared_memory_bytes - own_shared)),
               "setting the size of shared memory");
  }

  void launch(std::span<const PackedValue> arguments, const LaunchSize& size) override {
    const auto& threads = size.threads;
    const std::uint64_t all_threads = threads[0] * threads[1] * threads[2];
    if (all_threads > static_cast<std::uint64_t>(most_threads_)) {
      throw Error(ErrorKind::kIncompatible,
                  "the kernel " + in_quotes(kernel_.name) + " is launched with " +
                      std::to_string(all_threads) + " threads a group, but by its registers " +
                      gpu_.label() + " can have " + std::to_string(most_threads_),
                  "compile the model with other schedules, or for this GPU");
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = parameter_bits(arguments[i], kernel_.argument_types[i]);
    }
    const CurrentContext current(gpu_);
    const auto u = [](std::uint64_t number) { return static_cast<unsigned>(number); };
    const Result result =
        gpu_.api().launch(function_, u(size.groups[0]), u(size.groups[1]), u(size.groups[2]),
                          u(threads[0]), u(threads[1]), u(threads[2]), u(size.dynamic_shared_bytes),
                          gpu_.stream(), pointers_.empty() ? nullptr : pointers_.data(), nullptr);
    if (result != kSuccess) [[unlikely]] {
      gpu_.check(result, ("launching the kernel " + in_quotes(kernel_.name)).c_str());
    }
  }

 private:
  bool uses_dynamic_shared() const {
    return !kernel_.launch_tags.empty() &&
           kernel_.launch_tags.back() == "tir.use_dyn_shared_memory";
  }

  int attribute(FunctionAttribute attribute) {
    int value = 0;
    gpu_.check(gpu_.api().function_attribute(&value, attribute, function_),
               "asking for what a kernel needs");
    return value;
  }

  GpuContext& gpu_;
  const KernelInfo& kernel_;
  Function function_;
  int most_threads_ = 0;
  std::vector<std::uint64_t> values_;
  std::vector<void*> pointers_;  // to the values
};

}  // namespace

std::unique_ptr<DeviceKernel> make_kernel(GpuContext& gpu, const DeviceInfo& device,
                                          const KernelInfo& kernel, Function function) {
  return std::make_unique<CudaKernel>(gpu, device, kernel, function);
}

}  // namespace run_model::cuda
