#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "runtime/devices/code/code_cache.h"
#include "runtime/devices/drivers.h"
#include "runtime/devices/vulkan/device.h"
#include "runtime/devices/vulkan/physical_device.h"

namespace run_model {
namespace {

class VulkanDriver final : public DeviceDriver {
 public:
  DLDeviceType type() const override { return kDLVulkan; }
  std::string name() const override { return "vulkan"; }

  const Absence& absence() override {
    std::call_once(opened_, [this] { devices_ = find_vulkan_devices(instance_, absence_); });
    return absence_;
  }

  std::size_t count() override {
    absence();
    return devices_.size();
  }

  DeviceInfo info(std::size_t index) override { return device(index).info; }

  std::unique_ptr<Device> open(std::size_t index) override {
    const VulkanPhysicalDevice& found = device(index);
    if (!found.unusable.empty()) {
      throw Error(ErrorKind::kIncompatible, found.info.name + " cannot be used: " + found.unusable,
                  "install a newer Vulkan driver, or choose another device");
    }
    return open_vulkan_device(found, static_cast<int>(index), {.disk = CodeCache::of_user()});
  }

 private:
  const VulkanPhysicalDevice& device(std::size_t index) {
    check_index(index);
    return devices_[index];
  }

  std::once_flag opened_;
  VulkanInstance instance_;
  Absence absence_;
  std::vector<VulkanPhysicalDevice> devices_;
};

}  // namespace

DeviceDriver& vulkan_driver() {
  // Never freed: what it opened is in use until the program's last handler.
  static auto& driver = *new VulkanDriver;
  return driver;
}

}  // namespace run_model
