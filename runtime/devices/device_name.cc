#include "runtime/devices/device_name.h"

#include <array>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

using namespace std::string_view_literals;

constexpr std::array kNames = {
    std::pair(kDLCPU, "cpu"sv),
    std::pair(kDLCUDA, "cuda"sv),
    std::pair(kDLOpenCL, "opencl"sv),
    std::pair(kDLVulkan, "vulkan"sv),
};

// More than any machine has.
constexpr int kMostDeviceIndex = 4096;

}  // namespace

std::optional<std::string_view> device_type_name(std::int64_t type) {
  for (const auto& [known, name] : kNames) {
    if (known == type) return name;
  }
  return std::nullopt;
}

std::optional<DLDeviceType> device_type_named(std::string_view name) {
  for (const auto& [type, known] : kNames) {
    if (known == name) return type;
  }
  return std::nullopt;
}

std::string device_name(DLDevice device) {
  if (device.device_type == kDLCPU) return "cpu";
  const auto name = device_type_name(device.device_type);
  return (name ? std::string(*name) : "device type " + std::to_string(device.device_type)) + ":" +
         std::to_string(device.device_id);
}

DLDevice parse_device_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto type = device_type_named(text.substr(0, colon));
  const auto index = colon == text.npos ? 0 : whole_number<int>(text.substr(colon + 1));
  if (!type || !index || *index < 0 || *index >= kMostDeviceIndex ||
      (type == kDLCPU && *index != 0)) {
    throw Error(ErrorKind::kUsage, in_quotes(text) + " is no device",
                "name one as cpu, opencl:0, vulkan:0 or cuda:0; --list-devices shows which there "
                "are");
  }
  return {*type, *index};
}

}  // namespace run_model
