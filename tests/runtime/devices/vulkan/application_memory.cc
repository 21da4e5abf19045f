#include "tests/runtime/devices/application_memory.h"

#include <cstring>
#include <stdexcept>

#include "runtime/devices/vulkan/functions.h"

namespace run_model {
namespace {

// Of Vulkan's loader, as an application that links it calls them.
const VulkanLibrary& library() {
  static const VulkanLibrary functions = [] {
    VulkanLibrary found;
    if (!load_library(found, "libvulkan.so.1").empty()) throw std::runtime_error("no libvulkan");
    return found;
  }();
  return functions;
}

void require(VkResult result) {
  if (result != VK_SUCCESS) throw std::runtime_error("no memory of the application");
}

}  // namespace

void prepare_tested_driver() {}

struct ApplicationMemory::Made {
  VkDevice device = VK_NULL_HANDLE;
  VulkanDeviceFunctions vk;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  char* mapped = nullptr;
};

ApplicationMemory::ApplicationMemory(std::size_t bytes)
    : handles_(DeviceTensor::handles(kTestedDevice)), made_(std::make_unique<Made>()) {
  auto* const instance = static_cast<VkInstance>(handles_.vulkan_instance);
  VulkanInstanceFunctions functions;
  load_functions(library(), instance, functions);
  made_->device = static_cast<VkDevice>(handles_.vulkan_device);
  load_functions(functions, made_->device, made_->vk);
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = bytes;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  require(made_->vk.CreateBuffer(made_->device, &create, nullptr, &made_->buffer));
  VkMemoryRequirements required{};
  made_->vk.GetBufferMemoryRequirements(made_->device, made_->buffer, &required);
  VkPhysicalDeviceMemoryProperties kinds{};
  functions.GetPhysicalDeviceMemoryProperties(
      static_cast<VkPhysicalDevice>(handles_.vulkan_physical_device), &kinds);
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = required.size;
  constexpr VkMemoryPropertyFlags kWanted =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (std::uint32_t i = 0; i < kinds.memoryTypeCount; ++i) {
    if ((required.memoryTypeBits >> i & 1) != 0 &&
        (kinds.memoryTypes[i].propertyFlags & kWanted) == kWanted) {
      allocate.memoryTypeIndex = i;
    }
  }
  require(made_->vk.AllocateMemory(made_->device, &allocate, nullptr, &made_->memory));
  require(made_->vk.BindBufferMemory(made_->device, made_->buffer, made_->memory, 0));
  void* mapped = nullptr;
  require(made_->vk.MapMemory(made_->device, made_->memory, 0, VK_WHOLE_SIZE, 0, &mapped));
  made_->mapped = static_cast<char*>(mapped);
}

ApplicationMemory::~ApplicationMemory() {
  made_->vk.DestroyBuffer(made_->device, made_->buffer, nullptr);
  made_->vk.FreeMemory(made_->device, made_->memory, nullptr);
}

void* ApplicationMemory::data() const { return static_cast<void*>(made_->buffer); }

void ApplicationMemory::write(std::size_t offset, const std::vector<float>& values) {
  std::memcpy(made_->mapped + offset, values.data(), 4 * values.size());
}

std::vector<float> ApplicationMemory::read(std::size_t offset, std::size_t count) const {
  std::vector<float> values(count);
  std::memcpy(values.data(), made_->mapped + offset, 4 * count);
  return values;
}

}  // namespace run_model
