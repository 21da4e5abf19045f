#include "runtime/devices/vulkan/physical_device.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>

namespace run_model {
namespace {

// Of 2018 and later drivers: subgroups, 16-bit storage, storage buffers as a storage class.
constexpr std::uint32_t kLeastVersion = VK_API_VERSION_1_1;

constexpr const char* kLibrary = "libvulkan.so.1";
constexpr const char* kInstallLibrary =
    "install libvulkan1 and the GPU's Vulkan driver (Debian: mesa-vulkan-drivers, or NVIDIA's own)";
constexpr const char* kInstallDriver =
    "install the GPU's Vulkan driver (Debian: mesa-vulkan-drivers, or NVIDIA's own)";

std::string version_text(std::uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
         std::to_string(VK_API_VERSION_MINOR(version));
}

DeviceDriver::Absence open_instance(VulkanInstance& instance) {
  const std::string failure = load_library(instance.library, kLibrary);
  if (!failure.empty()) return {failure, kInstallLibrary};
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "run_model";
  application.pEngineName = "run_model";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;
  const VkResult result = instance.library.CreateInstance(&create, nullptr, &instance.handle);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return {"libvulkan.so.1 found no driver", kInstallDriver};
  }
  if (result != VK_SUCCESS) {
    return {"libvulkan.so.1 could not start (" + vulkan_result_name(result) + ")", kInstallDriver};
  }
  const std::string lacking = load_functions(instance.library, instance.handle, instance.functions);
  if (!lacking.empty()) {
    return {"libvulkan.so.1 has no " + lacking, "install a newer libvulkan1"};
  }
  return {};
}

// Of the families that compute: one that does nothing else where there is one, because displays
// and their time limits are elsewhere then.
std::optional<std::uint32_t> queue_family(const std::vector<VkQueueFamilyProperties>& families) {
  std::optional<std::uint32_t> best;
  for (std::uint32_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || families[i].queueCount == 0) {
      continue;
    }
    const bool only_computes = (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0;
    if (!best || (only_computes && (families[*best].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0)) {
      best = i;
    }
  }
  return best;
}

DeviceInfo device_info(const VulkanPhysicalDevice& device,
                       const VkPhysicalDeviceDriverProperties& driver) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  DeviceInfo info;
  info.name = device.properties.deviceName;
  info.driver = "Vulkan " + version_text(device.version);
  if (driver.driverName[0] != '\0') info.driver += std::string(" ") + driver.driverName;
  if (driver.driverInfo[0] != '\0') info.driver += std::string(" (") + driver.driverInfo + ")";
  for (std::uint32_t i = 0; i < device.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = device.memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) info.memory_bytes += heap.size;
  }
  info.largest_buffer_bytes =
      std::min<std::uint64_t>(limits.maxStorageBufferRange, device.largest_allocation);
  info.shared_memory_bytes = limits.maxComputeSharedMemorySize;
  info.threads_per_group = limits.maxComputeWorkGroupInvocations;
  for (std::size_t i = 0; i < 3; ++i) {
    info.group_size[i] = limits.maxComputeWorkGroupSize[i];
    info.grid_size[i] = limits.maxComputeWorkGroupCount[i];
  }
  info.subgroup_size = device.subgroups.subgroupSize;
  info.software = device.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  return info;
}

VulkanPhysicalDevice look_at(const VulkanInstance& instance, VkPhysicalDevice handle) {
  const VulkanInstanceFunctions& vk = instance.functions;
  VulkanPhysicalDevice device;
  device.instance = &instance;
  device.handle = handle;
  vk.GetPhysicalDeviceProperties(handle, &device.properties);
  device.version = std::min<std::uint32_t>(device.properties.apiVersion, VK_API_VERSION_1_3);
  vk.GetPhysicalDeviceMemoryProperties(handle, &device.memory);
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  if (device.version >= kLeastVersion) {
    VkPhysicalDeviceMaintenance3Properties sizes{};
    sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    if (device.version >= VK_API_VERSION_1_2) sizes.pNext = &driver;
    device.subgroups.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    device.subgroups.pNext = &sizes;
    VkPhysicalDeviceProperties2 all{};
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    all.pNext = &device.subgroups;
    vk.GetPhysicalDeviceProperties2(handle, &all);
    device.subgroups.pNext = nullptr;
    device.largest_allocation = sizes.maxMemoryAllocationSize;
  } else {
    device.unusable = "its driver has Vulkan " + version_text(device.properties.apiVersion) +
                      ", and run_model needs 1.1";
  }
  std::uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  if (const std::optional<std::uint32_t> family = queue_family(families)) {
    device.queue_family = *family;
    device.time_stamp_bits = families[*family].timestampValidBits;
  } else {
    device.unusable = "it has no queue for compute";
  }
  device.info = device_info(device, driver);
  return device;
}

int rank(const VulkanPhysicalDevice& device) {
  switch (device.properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

}  // namespace

std::vector<VulkanPhysicalDevice> find_vulkan_devices(VulkanInstance& instance,
                                                      DeviceDriver::Absence& absence) {
  absence = open_instance(instance);
  if (!absence.reason.empty()) return {};
  std::vector<VkPhysicalDevice> handles;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {
    std::uint32_t count = 0;
    result = instance.functions.EnumeratePhysicalDevices(instance.handle, &count, nullptr);
    if (result != VK_SUCCESS) break;
    handles.resize(count);
    result = instance.functions.EnumeratePhysicalDevices(instance.handle, &count, handles.data());
    handles.resize(count);
  }
  if (result != VK_SUCCESS || handles.empty()) {
    absence = {"no Vulkan driver knows a device of this machine" +
                   (result == VK_SUCCESS ? "" : " (" + vulkan_result_name(result) + ")"),
               kInstallDriver};
    return {};
  }
  std::vector<VulkanPhysicalDevice> devices;
  for (VkPhysicalDevice handle : handles) devices.push_back(look_at(instance, handle));
  std::ranges::stable_sort(devices, {}, [](const VulkanPhysicalDevice& device) {
    return std::tuple(!device.unusable.empty(), rank(device));
  });
  return devices;
}

}  // namespace run_model
