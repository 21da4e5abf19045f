#include "runtime/devices/cuda/programs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/cuda/code_needs.h"
#include "runtime/devices/cuda/kernel.h"

namespace run_model::cuda {
namespace {

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
  return make_kernel(gpu_, info_, *info, function);
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
