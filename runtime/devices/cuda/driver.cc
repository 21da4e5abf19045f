#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <string>

#include <run_model/error.h>
#include "runtime/devices/cuda/api.h"
#include "runtime/devices/cuda/device.h"
#include "runtime/devices/drivers.h"

namespace run_model {
namespace cuda {
namespace {

constexpr const char* kInstallNvidia =
    "install NVIDIA's driver (Debian: nvidia-driver; in a container: its GPU support)";

class CudaDriver final : public DeviceDriver {
 public:
  DLDeviceType type() const override { return kDLCUDA; }
  std::string name() const override { return "cuda"; }

  const Absence& absence() override {
    std::call_once(opened_, [this] { open_driver(); });
    return absence_;
  }

  std::size_t count() override { return absence().reason.empty() ? count_ : 0; }

  DeviceInfo info(std::size_t index) override { return describe(device(index)); }

  std::unique_ptr<Device> open(std::size_t index) override {
    const DeviceNumber number = device(index);
    return open_device(*api_, number, static_cast<int>(index), describe(number));
  }

 private:
  void open_driver() {
    api_ = open_api(absence_.reason);
    absence_.hint = kInstallNvidia;
    if (api_ == nullptr) return;
    int count = 0;
    Result result = api_->init(0);
    if (result == kSuccess) result = api_->device_count(&count);
    if (result == kSuccess && count == 0) result = kNoDevice;
    if (result == kNoDevice) {
      absence_ = {"NVIDIA's driver found no GPU", "look at the output of nvidia-smi"};
    } else if (result != kSuccess) {
      absence_ = {"NVIDIA's driver cannot be used: " + result_text(*api_, result),
                  "look at the output of nvidia-smi; after an update of the driver, restart"};
    } else {
      absence_ = {};
      count_ = static_cast<std::size_t>(count);
    }
  }

  DeviceNumber device(std::size_t index) {
    check_index(index);
    DeviceNumber number = 0;
    check(api_->device_get(&number, static_cast<int>(index)));
    return number;
  }

  void check(Result result) const {
    if (result == kSuccess) return;
    throw Error(ErrorKind::kIncompatible,
                "NVIDIA's driver does not describe its GPU: " + result_text(*api_, result),
                "look at the output of nvidia-smi");
  }

  std::uint64_t attribute(DeviceNumber device, DeviceAttribute attribute) const {
    int value = 0;
    check(api_->device_attribute(&value, attribute, device));
    return value < 0 ? 0 : static_cast<std::uint64_t>(value);
  }

  DeviceInfo describe(DeviceNumber device) const {
    using enum DeviceAttribute;
    DeviceInfo info;
    std::array<char, 256> name{};
    check(api_->device_name(name.data(), static_cast<int>(name.size() - 1), device));
    info.name = name.data();
    int version = 0;
    check(api_->driver_version(&version));
    info.driver =
        "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    info.architecture =
        "sm_" + std::to_string(attribute(device, kMajor) * 10 + attribute(device, kMinor));
    std::size_t bytes = 0;
    check(api_->device_memory(&bytes, device));
    info.memory_bytes = bytes;
    info.largest_buffer_bytes = bytes;
    // More than kSharedPerBlock where a kernel asks for it, as kernel.cc does for each.
    info.shared_memory_bytes =
        std::max(attribute(device, kSharedPerBlock), attribute(device, kSharedPerBlockOptIn));
    info.threads_per_group = attribute(device, kThreadsPerBlock);
    info.group_size = {attribute(device, kBlockX), attribute(device, kBlockY),
                       attribute(device, kBlockZ)};
    info.grid_size = {attribute(device, kGridX), attribute(device, kGridY),
                      attribute(device, kGridZ)};
    info.subgroup_size = static_cast<std::uint32_t>(attribute(device, kWarpSize));
    info.compute_units = static_cast<std::uint32_t>(attribute(device, kMultiprocessors));
    info.clock_khz = static_cast<std::uint32_t>(attribute(device, kClockKhz));
    return info;
  }

  std::once_flag opened_;
  Absence absence_;
  const Api* api_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace
}  // namespace cuda

DeviceDriver& cuda_driver() {
  // Never freed: what it opened is in use until the program's last handler.
  static auto& driver = *new cuda::CudaDriver;
  return driver;
}

}  // namespace run_model
