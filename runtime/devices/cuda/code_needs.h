// Which GPUs and drivers a module's code is for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/devices/code/device_code.h"

namespace run_model::cuda {

// 86 for sm_86, 100 for sm_100: ten times the compute capability.
using Architecture = unsigned;

struct PtxVersion {
  unsigned major = 0;
  unsigned minor = 0;
  auto operator<=>(const PtxVersion&) const = default;
};

// What the code says of itself; nothing where it does not, as a fatbin does not.
std::optional<PtxVersion> ptx_version(const DeviceCode& code);
std::optional<Architecture> architecture(const DeviceCode& code);

// The newest PTX that a driver of this version (12040 for 12.4) takes; nothing for a version that
// is not known here.
std::optional<PtxVersion> newest_ptx(int driver_version);

// Why the code cannot run on a GPU of the architecture, "is for GPUs of architecture sm_90, …", or
// "". The driver may still refuse it.
std::string architecture_problem(const DeviceCode& code, Architecture gpu);

std::string version_name(PtxVersion version);

}  // namespace run_model::cuda
