// What compiled code says when it launches a kernel, read and checked before the device sees it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <run_model/packed_function.h>
#include "runtime/devices/code/device_code.h"
#include "runtime/devices/device.h"

namespace run_model {

// Takes the arguments of calls of one kernel apart: the kernel's own, then one number for each
// launch tag.
class LaunchReader {
 public:
  // Throws Error(kIncompatible) for a launch tag that is not known.
  explicit LaunchReader(const KernelInfo& kernel);

  // Throws Error(kModel) naming the kernel where number or types of the arguments are not the
  // kernel's, or a number does not fit into its type.
  LaunchSize read(std::span<const PackedValue> values, const int* type_codes) const;

  std::size_t num_arguments() const { return kernel_.argument_types.size(); }

 private:
  void check_argument(std::size_t index, const PackedValue& value, int type_code) const;
  [[noreturn]] void fail(const std::string& problem) const;

  const KernelInfo& kernel_;
  struct Tag {
    enum class Kind { kGroups, kThreads, kShared } kind;
    std::size_t dimension;
  };
  std::vector<Tag> tags_;
};

// Throws Error(kIncompatible), naming kernel and device, where the launch goes beyond what the
// device can do. `device` is how messages call it: "opencl:0 (NVIDIA …)".
void check_launch(const KernelInfo& kernel, const LaunchSize& size, const DeviceInfo& info,
                  const std::string& device);

// The same where groups have more threads than the device has registers for with this kernel, as
// compiled: `most_threads` of a group, 0 where the driver does not say.
void check_registers(const KernelInfo& kernel, const LaunchSize& size, std::uint64_t most_threads,
                     const std::string& device);

// A scalar as the kernel takes it, in the byte order of this machine.
struct ScalarBytes {
  std::array<std::byte, 8> bytes{};
  std::size_t size = 0;
};
// `type` is an int, uint, bool or float type of 1 to 64 bits, as LaunchReader has checked.
ScalarBytes scalar_bytes(const PackedValue& value, DLDataType type);

}  // namespace run_model
