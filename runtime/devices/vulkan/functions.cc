#include "runtime/devices/vulkan/functions.h"

#include "base/installed_library.h"

namespace run_model {
namespace {

template <typename Function>
void set(Function& function, PFN_vkVoidFunction address) {
  function = reinterpret_cast<Function>(address);
}

}  // namespace

std::string load_library(VulkanLibrary& functions, const char* file) {
  InstalledLibrary library(file, "Vulkan 1.1");
  library.find(functions.GetInstanceProcAddr, "vkGetInstanceProcAddr");
  if (functions.GetInstanceProcAddr == nullptr) return library.problem();
#define RUN_MODEL_VULKAN_LOAD(name)                                               \
  set(functions.name, functions.GetInstanceProcAddr(VK_NULL_HANDLE, "vk" #name)); \
  if (functions.name == nullptr) library.note_missing("vk" #name);
  RUN_MODEL_VULKAN_LIBRARY_FUNCTIONS(RUN_MODEL_VULKAN_LOAD)
#undef RUN_MODEL_VULKAN_LOAD
  return library.problem();
}

std::string load_functions(const VulkanLibrary& library, VkInstance instance,
                           VulkanInstanceFunctions& functions) {
#define RUN_MODEL_VULKAN_LOAD(name)                                       \
  set(functions.name, library.GetInstanceProcAddr(instance, "vk" #name)); \
  if (functions.name == nullptr) return "vk" #name;
  RUN_MODEL_VULKAN_INSTANCE_FUNCTIONS(RUN_MODEL_VULKAN_LOAD)
#undef RUN_MODEL_VULKAN_LOAD
  return {};
}

std::string load_functions(const VulkanInstanceFunctions& instance, VkDevice device,
                           VulkanDeviceFunctions& functions) {
#define RUN_MODEL_VULKAN_LOAD(name)                                    \
  set(functions.name, instance.GetDeviceProcAddr(device, "vk" #name)); \
  if (functions.name == nullptr) return "vk" #name;
  RUN_MODEL_VULKAN_DEVICE_FUNCTIONS(RUN_MODEL_VULKAN_LOAD)
#undef RUN_MODEL_VULKAN_LOAD
  return {};
}

std::string vulkan_result_name(VkResult result) {
  switch (result) {
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_INVALID_SHADER_NV:
      return "VK_ERROR_INVALID_SHADER_NV";
    default:
      return "Vulkan's error " + std::to_string(static_cast<int>(result));
  }
}

}  // namespace run_model
