#include "rpc/device_attributes.h"

#include <optional>
#include <string>
#include <string_view>

#include "base/system_file.h"
#include "rpc/device_buffer.h"
#include "runtime/cpu/caches.h"
#include "runtime/cpu/topology.h"
#include "runtime/devices/drivers.h"

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

Value l2_cache_bytes() {
  for (const CpuCache& cache : cpu_caches(0)) {
    if (cache.level == 2 && cache.holds_data() && cache.bytes > 0) {
      return static_cast<std::int64_t>(cache.bytes);
    }
  }
  return {};
}

// Zero is what drivers do not tell.
Value or_null(std::uint64_t number) {
  if (number == 0) return {};
  return static_cast<std::int64_t>(number);
}

Value or_null(const std::string& text) {
  if (text.empty()) return {};
  return text;
}

// "8.0" of "sm_80", as CUDA calls it.
std::string compute_version(const std::string& architecture) {
  constexpr std::string_view kPrefix = "sm_";
  if (!architecture.starts_with(kPrefix) || architecture.size() < kPrefix.size() + 2) return "";
  const std::string number = architecture.substr(kPrefix.size());
  return number.substr(0, number.size() - 1) + "." + number.back();
}

Value attribute_of(const DeviceInfo& info, DeviceAttribute attribute) {
  switch (attribute) {
    case DeviceAttribute::kMaxThreadsPerBlock:
      return or_null(info.threads_per_group);
    case DeviceAttribute::kWarpSize:
      return or_null(std::uint64_t{info.subgroup_size});
    case DeviceAttribute::kMaxSharedMemoryPerBlock:
      return or_null(info.shared_memory_bytes);
    case DeviceAttribute::kComputeVersion:
      return or_null(compute_version(info.architecture));
    case DeviceAttribute::kDeviceName:
      return or_null(info.name);
    case DeviceAttribute::kMaxClockRate:
      return or_null(std::uint64_t{info.clock_khz});
    case DeviceAttribute::kMultiProcessorCount:
      return or_null(std::uint64_t{info.compute_units});
    case DeviceAttribute::kMaxThreadDimensions:
      // Clients read it as JSON.
      return "[" + std::to_string(info.group_size[0]) + ", " + std::to_string(info.group_size[1]) +
             ", " + std::to_string(info.group_size[2]) + "]";
    case DeviceAttribute::kDriverVersion:
      return or_null(info.driver);
    case DeviceAttribute::kTotalMemory:
      return or_null(info.memory_bytes);
    default:
      return {};
  }
}

}  // namespace

Value gpu_attribute(const Device& device, DeviceAttribute attribute) {
  DeviceDriver* driver = driver_for(dl_device(device).device_type);
  const bool exists = driver != nullptr && driver->absence().reason.empty() && device.number >= 0 &&
                      static_cast<std::size_t>(device.number) < driver->count();
  if (attribute == DeviceAttribute::kExists) return std::int64_t{exists ? 1 : 0};
  if (!exists) session_device(device);  // says what is missing
  return attribute_of(driver->info(static_cast<std::size_t>(device.number)), attribute);
}

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
