// Makes a buffer of no bytes, about which the validation layer has to say something.
#include <dlfcn.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <type_traits>

int main() {
  void* const library = dlopen("libvulkan.so.1", RTLD_NOW);
  if (library == nullptr) return 1;
  const auto get =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  VkInstance instance = VK_NULL_HANDLE;
  const auto function = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(get(instance, name));
  };
  PFN_vkCreateInstance create_instance = nullptr;
  function(create_instance, "vkCreateInstance");
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  if (create_instance(&info, nullptr, &instance) != VK_SUCCESS) return 1;
  PFN_vkEnumeratePhysicalDevices enumerate = nullptr;
  function(enumerate, "vkEnumeratePhysicalDevices");
  std::uint32_t count = 1;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  enumerate(instance, &count, &physical);
  if (count == 0) return 1;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo device_info{};
  device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  device_info.queueCreateInfoCount = 1;
  device_info.pQueueCreateInfos = &queue;
  PFN_vkCreateDevice create_device = nullptr;
  function(create_device, "vkCreateDevice");
  VkDevice device = VK_NULL_HANDLE;
  if (create_device(physical, &device_info, nullptr, &device) != VK_SUCCESS) return 1;
  PFN_vkCreateBuffer create_buffer = nullptr;
  function(create_buffer, "vkCreateBuffer");
  VkBufferCreateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  create_buffer(device, &buffer_info, nullptr, &buffer);
}
