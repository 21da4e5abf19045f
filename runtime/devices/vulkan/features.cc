#include "runtime/devices/vulkan/features.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

// Table 24 of the Vulkan specification 1.3 (appendix A): the newest SPIR-V of a version.
std::uint32_t newest_spirv_minor(std::uint32_t vulkan) {
  if (vulkan >= VK_API_VERSION_1_3) return 6;
  return vulkan >= VK_API_VERSION_1_2 ? 5 : 3;
}

// SPIR-V extensions that compiled code may name, and the version of Vulkan that has them built in,
// or before that version the extension of Vulkan.
struct KnownExtension {
  std::string_view name;
  std::uint32_t version;
  std::string_view vulkan_extension;
};
constexpr std::array kKnownExtensions{
    KnownExtension{"SPV_KHR_storage_buffer_storage_class", VK_API_VERSION_1_1, ""},
    KnownExtension{"SPV_KHR_variable_pointers", VK_API_VERSION_1_1, ""},
    KnownExtension{"SPV_KHR_16bit_storage", VK_API_VERSION_1_1, ""},
    KnownExtension{"SPV_KHR_8bit_storage", VK_API_VERSION_1_2, "VK_KHR_8bit_storage"},
    KnownExtension{"SPV_KHR_vulkan_memory_model", VK_API_VERSION_1_2, "VK_KHR_vulkan_memory_model"},
    KnownExtension{"SPV_KHR_no_integer_wrap_decoration", VK_API_VERSION_1_2, ""},
    KnownExtension{"SPV_KHR_float_controls", VK_API_VERSION_1_2, ""},
    KnownExtension{"SPV_KHR_non_semantic_info", VK_API_VERSION_1_3, ""},
    KnownExtension{"SPV_KHR_integer_dot_product", VK_API_VERSION_1_3,
                   "VK_KHR_shader_integer_dot_product"},
};

std::string kilobytes(std::uint64_t bytes) { return std::to_string(bytes / 1024) + " KiB"; }

std::string of_kernel(const KernelInfo& kernel) { return "kernel " + in_quotes(kernel.name); }

}  // namespace

VulkanFeatures::VulkanFeatures(const VulkanPhysicalDevice& device) : device_(device) {
  const VulkanInstanceFunctions& vk = device.instance->functions;
  std::uint32_t count = 0;
  std::vector<VkExtensionProperties> offered;
  if (vk.EnumerateDeviceExtensionProperties(device.handle, nullptr, &count, nullptr) ==
      VK_SUCCESS) {
    offered.resize(count);
    vk.EnumerateDeviceExtensionProperties(device.handle, nullptr, &count, offered.data());
    offered.resize(count);
  }
  void** next = &basic_.pNext;
  const auto add = [&](auto& features, VkStructureType type, std::uint32_t version,
                       const char* extension) {
    if (device.version < version) {
      const bool has = std::ranges::any_of(offered, [&](const VkExtensionProperties& one) {
        return std::strcmp(one.extensionName, extension) == 0;
      });
      if (!has) return;
      extensions_.push_back(extension);
    }
    features.sType = type;
    *next = &features;
    next = &features.pNext;
  };
  basic_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  add(storage16_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, VK_API_VERSION_1_1, "");
  add(pointers_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES, VK_API_VERSION_1_1,
      "");
  add(storage8_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, VK_API_VERSION_1_2,
      "VK_KHR_8bit_storage");
  add(small_numbers_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
      VK_API_VERSION_1_2, "VK_KHR_shader_float16_int8");
  add(memory_model_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
      VK_API_VERSION_1_2, "VK_KHR_vulkan_memory_model");
  add(dot_products_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
      VK_API_VERSION_1_3, "VK_KHR_shader_integer_dot_product");
  vk.GetPhysicalDeviceFeatures2(device.handle, &basic_);
  // Of the rest nothing is in use, and checks of buffer bounds would cost time.
  VkPhysicalDeviceFeatures used{};
  used.shaderFloat64 = basic_.features.shaderFloat64;
  used.shaderInt64 = basic_.features.shaderInt64;
  used.shaderInt16 = basic_.features.shaderInt16;
  basic_.features = used;
}

// By the numbers of section 3.2.30 of the SPIR-V specification.
std::string VulkanFeatures::missing_for(std::uint32_t capability) const {
  constexpr std::uint32_t kFirstOfSubgroups = 61;
  constexpr VkSubgroupFeatureFlags kOfSubgroups[] = {
      VK_SUBGROUP_FEATURE_BASIC_BIT,      VK_SUBGROUP_FEATURE_VOTE_BIT,
      VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, VK_SUBGROUP_FEATURE_BALLOT_BIT,
      VK_SUBGROUP_FEATURE_SHUFFLE_BIT,    VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT,
      VK_SUBGROUP_FEATURE_CLUSTERED_BIT,  VK_SUBGROUP_FEATURE_QUAD_BIT};
  if (capability - kFirstOfSubgroups < std::size(kOfSubgroups)) {
    const bool has =
        (device_.subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
        (device_.subgroups.supportedOperations & kOfSubgroups[capability - kFirstOfSubgroups]) != 0;
    return has ? "" : "operations of this kind within a subgroup";
  }
  const struct {
    std::uint32_t first, last;
    VkBool32 has;
    const char* what;
  } all[] = {
      {0, 1, VK_TRUE, ""},  // Matrix, Shader
      {9, 9, small_numbers_.shaderFloat16, "16-bit floating-point numbers"},
      {10, 10, basic_.features.shaderFloat64, "64-bit floating-point numbers"},
      {11, 11, basic_.features.shaderInt64, "64-bit integers"},
      {22, 22, basic_.features.shaderInt16, "16-bit integers"},
      {39, 39, small_numbers_.shaderInt8, "8-bit integers"},
      {4433, 4433, storage16_.storageBuffer16BitAccess, "16-bit numbers in buffers"},
      {4434, 4434, storage16_.uniformAndStorageBuffer16BitAccess, "16-bit numbers in buffers"},
      {4435, 4435, storage16_.storagePushConstant16, "16-bit push constants"},
      {4441, 4441, pointers_.variablePointersStorageBuffer, "variable pointers"},
      {4442, 4442, pointers_.variablePointers, "variable pointers"},
      {4448, 4448, storage8_.storageBuffer8BitAccess, "8-bit numbers in buffers"},
      {4449, 4449, storage8_.uniformAndStorageBuffer8BitAccess, "8-bit numbers in buffers"},
      {4450, 4450, storage8_.storagePushConstant8, "8-bit push constants"},
      {5345, 5345, memory_model_.vulkanMemoryModel, "Vulkan's memory model"},
      {5346, 5346, memory_model_.vulkanMemoryModelDeviceScope, "the memory model's device scope"},
      {6016, 6019, dot_products_.shaderIntegerDotProduct, "dot products of integers"},
  };
  for (const auto& known : all) {
    if (capability < known.first || capability > known.last) continue;
    return known.has != 0 ? "" : known.what;
  }
  return "SPIR-V's capability " + std::to_string(capability);
}

void VulkanFeatures::check(const ShaderFacts& shader, const ShaderCode& code,
                           const KernelInfo& kernel) const {
  const auto refuse = [&](const std::string& what, const char* hint) {
    throw Error(
        ErrorKind::kIncompatible,
        of_kernel(kernel) + " needs " + what + ", which " + device_.info.name + " does not have",
        hint);
  };
  constexpr const char* kOther = "compile the network for this GPU, or run it on another";
  if (shader.minor > newest_spirv_minor(device_.version)) {
    refuse("SPIR-V 1." + std::to_string(shader.minor), "install a newer Vulkan driver");
  }
  for (const std::uint32_t capability : shader.capabilities) {
    const std::string missing = missing_for(capability);
    if (!missing.empty()) refuse(missing, kOther);
  }
  for (const std::string& name : shader.extensions) {
    const auto known = std::ranges::find(kKnownExtensions, name, &KnownExtension::name);
    const bool has = known != kKnownExtensions.end() &&
                     (device_.version >= known->version ||
                      std::ranges::find(extensions_, known->vulkan_extension) != extensions_.end());
    if (!has) refuse("SPIR-V's extension " + in_quotes(name), kOther);
  }
  check_interface(shader, code, kernel);
  check_group(shader, kernel);
}

// Descriptor set 0 has the handles in their order; scalars take eight bytes each of the push
// constants, or of a uniform buffer behind the handles.
void VulkanFeatures::check_interface(const ShaderFacts& shader, const ShaderCode& code,
                                     const KernelInfo& kernel) const {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kMismatch, of_kernel(kernel) + " " + what, "compile the network again");
  };
  std::uint32_t handles = 0;
  std::vector<std::uint32_t> scalar_bytes;
  for (const DLDataType& type : kernel.argument_types) {
    if (type.code == kDLOpaqueHandle) {
      if (!scalar_bytes.empty()) refuse("takes a buffer after a scalar");
      ++handles;
      continue;
    }
    if (type.lanes != 1 || (type.bits != 32 && type.bits != 64) ||
        (type.code != kDLInt && type.code != kDLUInt && type.code != kDLFloat)) {
      refuse("takes a scalar of " + std::to_string(type.bits) +
             " bits, where Vulkan's code has 32 or 64");
    }
    scalar_bytes.push_back(type.bits / 8U);
  }
  const bool in_buffer = (code.flags & 1) != 0;
  for (const auto& [number, binding] : shader.bindings) {
    const bool is_scalars = in_buffer && number == handles;
    if ((number >= handles && !is_scalars) || binding.uniform != is_scalars) {
      refuse("has a " + std::string(binding.uniform ? "uniform" : "storage") +
             " buffer at binding " + std::to_string(number) + ", and it takes " +
             std::to_string(handles) + " buffers");
    }
  }
  if (shader.has_push_constants && in_buffer) refuse("has both push constants and their buffer");
  for (const ShaderScalar& scalar : shader.scalars) {
    const std::size_t index = scalar.offset / 8;
    if (scalar.offset % 8 != 0 || index >= scalar_bytes.size() ||
        scalar_bytes[index] != scalar.bytes) {
      refuse("reads a scalar of " + std::to_string(scalar.bytes) + " bytes at byte " +
             std::to_string(scalar.offset) + ", where it is given none");
    }
  }
  const VkPhysicalDeviceLimits& limits = device_.properties.limits;
  const std::uint64_t bytes = 8 * scalar_bytes.size();
  const std::uint64_t most = in_buffer ? limits.maxUniformBufferRange : limits.maxPushConstantsSize;
  if (bytes > most) {
    throw Error(ErrorKind::kIncompatible, of_kernel(kernel) + " takes " + std::to_string(bytes) +
                                              " bytes of scalars, and " + device_.info.name +
                                              " has room for " + std::to_string(most));
  }
  const std::uint32_t most_buffers =
      std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers);
  if (handles > most_buffers) {
    throw Error(ErrorKind::kIncompatible, of_kernel(kernel) + " takes " + std::to_string(handles) +
                                              " buffers, and " + device_.info.name + " allows " +
                                              std::to_string(most_buffers));
  }
}

void VulkanFeatures::check_group(const ShaderFacts& shader, const KernelInfo& kernel) const {
  const DeviceInfo& info = device_.info;
  const auto [x, y, z] = shader.threads;
  const bool fits = x <= info.group_size[0] && y <= info.group_size[1] && z <= info.group_size[2] &&
                    std::uint64_t{x} * y <= info.threads_per_group &&
                    std::uint64_t{x} * y * z <= info.threads_per_group;
  constexpr const char* kHint = "compile the network for this GPU";
  if (!fits) {
    throw Error(ErrorKind::kIncompatible,
                of_kernel(kernel) + " has groups of " + std::to_string(x) + " × " +
                    std::to_string(y) + " × " + std::to_string(z) + " threads, and " + info.name +
                    " allows " + std::to_string(info.group_size[0]) + " × " +
                    std::to_string(info.group_size[1]) + " × " +
                    std::to_string(info.group_size[2]) + ", " +
                    std::to_string(info.threads_per_group) + " in all",
                kHint);
  }
  if (shader.shared_bytes > info.shared_memory_bytes) {
    throw Error(ErrorKind::kIncompatible,
                of_kernel(kernel) + " shares " + kilobytes(shader.shared_bytes) +
                    " among the threads of a group, and " + info.name + " has " +
                    kilobytes(info.shared_memory_bytes),
                kHint);
  }
}

}  // namespace run_model
