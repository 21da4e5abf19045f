#include "rpc/device_attributes.h"

#include <optional>
#include <string>

#include "base/system_file.h"
#include "runtime/cpu/topology.h"

namespace run_model::rpc {
namespace {

constexpr std::int64_t kBytesPerKilobyte = 1024;

Value or_null(const std::optional<std::uint64_t>& number) {
  if (!number) return {};
  return static_cast<std::int64_t>(*number);
}

Value memory(const char* key) {
  const std::string text = read_system_file("/proc/meminfo");
  const std::string kilobytes(field(text, key));
  if (kilobytes.empty()) return {};
  return std::strtoll(kilobytes.c_str(), nullptr, 10) * kBytesPerKilobyte;
}

// x86 CPUs have a name of their own, Arm boards one in the device tree.
Value device_name() {
  std::string cpu(field(read_system_file("/proc/cpuinfo"), "model name"));
  if (!cpu.empty()) return cpu;
  std::string board = read_system_file("/proc/device-tree/model");
  while (!board.empty() && (board.back() == '\0' || board.back() == '\n')) board.pop_back();
  if (!board.empty()) return board;
  return {};
}

// The kernel writes "512K".
Value l2_cache_bytes() {
  const auto kilobytes = read_number("/sys/devices/system/cpu/cpu0/cache/index2/size");
  if (!kilobytes) return {};
  return static_cast<std::int64_t>(*kilobytes) * kBytesPerKilobyte;
}

}  // namespace

Value cpu_attribute(DeviceAttribute attribute) {
  switch (attribute) {
    case DeviceAttribute::kExists:
      return std::int64_t{1};
    case DeviceAttribute::kDeviceName:
      return device_name();
    case DeviceAttribute::kMaxClockRate:
      return or_null(read_number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"));
    case DeviceAttribute::kMultiProcessorCount:
      return static_cast<std::int64_t>(allowed_cpus().size());
    case DeviceAttribute::kL2CacheBytes:
      return l2_cache_bytes();
    case DeviceAttribute::kTotalMemory:
      return memory("MemTotal");
    case DeviceAttribute::kAvailableMemory:
      return memory("MemAvailable");
    default:
      return {};
  }
}

}  // namespace run_model::rpc
