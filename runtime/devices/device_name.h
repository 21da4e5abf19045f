// How people name devices: "opencl:0".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dlpack/dlpack.h>

namespace run_model {

// The kinds of devices that a graph may place tensors on: "cpu", "cuda", "opencl", "vulkan";
// nothing for others. It takes a number because files may hold one that is no DLDeviceType.
std::optional<std::string_view> device_type_name(std::int64_t type);
std::optional<DLDeviceType> device_type_named(std::string_view name);

// "opencl:0", or "device type 8:0" for a kind that has no name here; the CPU is just "cpu".
std::string device_name(DLDevice device);

// "opencl:1", "opencl" (its device 0), "cpu". Throws Error(kUsage) for anything else.
DLDevice parse_device_name(std::string_view text);

}  // namespace run_model
