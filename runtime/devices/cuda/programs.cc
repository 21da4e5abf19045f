#include "runtime/devices/cuda/programs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/cuda/code_needs.h"
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

// Lets launches ask for as much dynamic shared memory as the GPU has beside the kernel's own.
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
    check_registers(kernel_, size, static_cast<std::uint64_t>(most_threads_), gpu_.label());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = parameter_bits(arguments[i], kernel_.argument_types[i]);
    }
    const CurrentContext current(gpu_);
    const auto u = [](std::uint64_t number) { return static_cast<unsigned>(number); };
    const Result result =
        gpu_.api().launch(function_, u(size.groups[0]), u(size.groups[1]), u(size.groups[2]),
                          u(threads[0]), u(threads[1]), u(threads[2]), u(size.dynamic_shared_bytes),
                          gpu_.stream(), pointers_.empty() ? nullptr : pointers_.data(), nullptr);
    if (result != kSuccess) [[unlikely]]
      gpu_.fail(result, "launching kernel " + in_quotes(kernel_.name));
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

constexpr std::size_t kLogBytes = 4096;

int driver_version(const Api& api) {
  int version = 0;
  return api.driver_version(&version) == kSuccess ? version : 0;
}

// The architecture that DeviceInfo names: 90 of "sm_90".
Architecture architecture_of(const DeviceInfo& info) {
  return static_cast<Architecture>(std::stoul(info.architecture.substr(3)));
}

std::string driver_name(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Throws where the versions tell why the driver did not take the code.
void refuse_newer_ptx(const GpuContext& gpu, const DeviceCode& code) {
  const auto needs = ptx_version(code);
  const int driver = driver_version(gpu.api());
  const auto newest = newest_ptx(driver);
  if (!needs || !newest || *needs <= *newest) return;
  throw Error(ErrorKind::kIncompatible,
              "the model's code is PTX " + version_name(*needs) + ", but the driver of " +
                  gpu.label() + ", " + driver_name(driver) + ", takes PTX up to " +
                  version_name(*newest),
              "install a newer NVIDIA driver, or compile the model for this GPU's architecture");
}

}  // namespace

void Programs::unload() noexcept {
  for (const auto& [code, module] : modules_) gpu_.api().module_unload(module);
  modules_.clear();
}

std::unique_ptr<DeviceKernel> Programs::kernel(const std::shared_ptr<const DeviceCode>& code,
                                               const std::string& name) {
  const auto info = std::find_if(code->kernels.begin(), code->kernels.end(),
                                 [&](const KernelInfo& kernel) { return kernel.name == name; });
  if (code->device != kDLCUDA || info == code->kernels.end()) {
    throw Error(ErrorKind::kInternal, "the code has no CUDA kernel " + in_quotes(name));
  }
  ModuleHandle module = load(code);
  Function function = nullptr;
  const Result result = gpu_.api().module_function(&function, module, name.c_str());
  if (result == kNotFound) {
    throw Error(ErrorKind::kFormat,
                "there is no code for the kernel " + in_quotes(name) + " in what " + gpu_.label() +
                    " was given",
                "copy or export the library again");
  }
  gpu_.check(result, "looking for a kernel");
  return std::make_unique<CudaKernel>(gpu_, info_, *info, function);
}

ModuleHandle Programs::load(const std::shared_ptr<const DeviceCode>& code) {
  const auto known = modules_.find(code);
  if (known != modules_.end()) return known->second;
  const std::string problem = architecture_problem(*code, architecture_of(info_));
  if (!problem.empty()) {
    throw Error(ErrorKind::kIncompatible,
                "the model cannot run on " + gpu_.label() + ": its code " + problem,
                "compile it for target cuda-" + info_.architecture);
  }
  ModuleHandle module = load_image(*code);
  modules_.emplace(code, module);
  return module;
}

ModuleHandle Programs::load_image(const DeviceCode& code) {
  std::array<char, kLogBytes> log{};
  std::array<JitOption, 2> names = {JitOption::kErrorLog, JitOption::kErrorLogBytes};
  // The option's value is the number itself.
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  ModuleHandle module = nullptr;
  // PTX has to end with a zero byte: std::string has one.
  const Result result =
      gpu_.api().module_load(&module, code.data.c_str(), names.size(), names.data(), values.data());
  if (result == kSuccess) return module;
  if (result == kUnsupportedPtx || result == kInvalidPtx) {
    refuse_newer_ptx(gpu_, code);
  }
  if (result == kNoBinaryForGpu) {
    const auto made_for = architecture(code);
    throw Error(ErrorKind::kIncompatible,
                "the model cannot run on " + gpu_.label() + ": its code has no part for " +
                    info_.architecture +
                    (made_for ? ", it is for sm_" + std::to_string(*made_for) : ""),
                "compile it for target cuda-" + info_.architecture);
  }
  const std::string text(log.data());
  if (!text.empty()) {
    throw Error(ErrorKind::kIncompatible,
                "the driver of " + gpu_.label() +
                    " refused the model's code: " + in_quotes(text.substr(0, text.find('\n'))),
                "compile the model again, for target cuda-" + info_.architecture);
  }
  gpu_.check(result, "loading the model's code");
  return module;
}

}  // namespace run_model::cuda
