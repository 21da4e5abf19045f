// The functions of libvulkan.so.1 that are in use, found when the program runs: of the library, of
// an instance and of a device, each in a table of its own.
#pragma once

#include <string>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace run_model {

#define RUN_MODEL_VULKAN_LIBRARY_FUNCTIONS(X) \
  X(CreateInstance)                           \
  X(EnumerateInstanceVersion)

#define RUN_MODEL_VULKAN_INSTANCE_FUNCTIONS(X) \
  X(CreateDevice)                              \
  X(DestroyInstance)                           \
  X(EnumerateDeviceExtensionProperties)        \
  X(EnumeratePhysicalDevices)                  \
  X(GetDeviceProcAddr)                         \
  X(GetPhysicalDeviceFeatures2)                \
  X(GetPhysicalDeviceMemoryProperties)         \
  X(GetPhysicalDeviceProperties)               \
  X(GetPhysicalDeviceProperties2)              \
  X(GetPhysicalDeviceQueueFamilyProperties)

#define RUN_MODEL_VULKAN_DEVICE_FUNCTIONS(X) \
  X(AllocateCommandBuffers)                  \
  X(AllocateDescriptorSets)                  \
  X(AllocateMemory)                          \
  X(BeginCommandBuffer)                      \
  X(BindBufferMemory)                        \
  X(CmdBindDescriptorSets)                   \
  X(CmdBindPipeline)                         \
  X(CmdCopyBuffer)                           \
  X(CmdDispatch)                             \
  X(CmdFillBuffer)                           \
  X(CmdPipelineBarrier)                      \
  X(CmdPushConstants)                        \
  X(CmdResetQueryPool)                       \
  X(CmdWriteTimestamp)                       \
  X(CreateBuffer)                            \
  X(CreateCommandPool)                       \
  X(CreateComputePipelines)                  \
  X(CreateDescriptorPool)                    \
  X(CreateDescriptorSetLayout)               \
  X(CreateFence)                             \
  X(CreatePipelineCache)                     \
  X(CreatePipelineLayout)                    \
  X(CreateQueryPool)                         \
  X(CreateShaderModule)                      \
  X(DestroyBuffer)                           \
  X(DestroyCommandPool)                      \
  X(DestroyDescriptorPool)                   \
  X(DestroyDescriptorSetLayout)              \
  X(DestroyDevice)                           \
  X(DestroyFence)                            \
  X(DestroyPipeline)                         \
  X(DestroyPipelineCache)                    \
  X(DestroyPipelineLayout)                   \
  X(DestroyQueryPool)                        \
  X(DestroyShaderModule)                     \
  X(DeviceWaitIdle)                          \
  X(EndCommandBuffer)                        \
  X(FreeMemory)                              \
  X(GetBufferMemoryRequirements)             \
  X(GetDeviceQueue)                          \
  X(GetFenceStatus)                          \
  X(GetPipelineCacheData)                    \
  X(GetQueryPoolResults)                     \
  X(MapMemory)                               \
  X(QueueSubmit)                             \
  X(ResetCommandPool)                        \
  X(ResetDescriptorPool)                     \
  X(ResetFences)                             \
  X(UpdateDescriptorSets)                    \
  X(WaitForFences)

#define RUN_MODEL_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;

struct VulkanLibrary {
  RUN_MODEL_VULKAN_LIBRARY_FUNCTIONS(RUN_MODEL_VULKAN_MEMBER)
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
};
struct VulkanInstanceFunctions {
  RUN_MODEL_VULKAN_INSTANCE_FUNCTIONS(RUN_MODEL_VULKAN_MEMBER)
};
struct VulkanDeviceFunctions {
  RUN_MODEL_VULKAN_DEVICE_FUNCTIONS(RUN_MODEL_VULKAN_MEMBER)
};

#undef RUN_MODEL_VULKAN_MEMBER

// Returns why the library cannot be used, or an empty text.
std::string load_library(VulkanLibrary& functions, const char* file);
// The name of the first function that is not there, or an empty text.
std::string load_functions(const VulkanLibrary& library, VkInstance instance,
                           VulkanInstanceFunctions& functions);
std::string load_functions(const VulkanInstanceFunctions& instance, VkDevice device,
                           VulkanDeviceFunctions& functions);

// "VK_ERROR_DEVICE_LOST", or the number of a result that has no name here.
std::string vulkan_result_name(VkResult result);

}  // namespace run_model
