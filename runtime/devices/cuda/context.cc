#include "runtime/devices/cuda/context.h"

#include <algorithm>
#include <array>
#include <utility>

namespace run_model::cuda {
namespace {

// The results after which the manual says that the process has to be ended to use CUDA again:
// ECC_UNCORRECTABLE, ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT, HARDWARE_STACK_ERROR,
// ILLEGAL_INSTRUCTION, MISALIGNED_ADDRESS, INVALID_ADDRESS_SPACE, INVALID_PC, LAUNCH_FAILED, and
// CONTAINED and UNKNOWN, of which nothing else is known.
constexpr std::array<Result, 12> kSticky = {214, 700, 702, 710, 714, 715,
                                            716, 717, 718, 719, 721, 999};
constexpr Result kLaunchTimeout = 702;

}  // namespace

GpuContext::GpuContext(const Api& api, DeviceNumber device, std::string label,
                       std::uint64_t patience_nanoseconds)
    : api_(api), device_(device), failures_(std::move(label)), patience_(patience_nanoseconds) {
  check(api_.context_retain(&context_, device_), "being opened");
  try {
    const CurrentContext current(*this);
    check(api_.stream_create(&stream_, kStreamNonBlocking), "making a stream");
  } catch (...) {
    api_.context_release(device_);
    throw;
  }
}

GpuContext::~GpuContext() {
  if (stuck_) return;
  if (api_.context_push(context_) == kSuccess) {
    api_.stream_destroy(stream_);
    Context popped = nullptr;
    api_.context_pop(&popped);
  }
  api_.context_release(device_);
}

void GpuContext::fail(Result result, const std::string& doing) {
  DeviceFault fault = DeviceFault::kOther;
  if (result == kOutOfMemory) fault = DeviceFault::kOutOfMemory;
  if (std::find(kSticky.begin(), kSticky.end(), result) != kSticky.end()) {
    fault = result == kLaunchTimeout ? DeviceFault::kTimeOut : DeviceFault::kLost;
  }
  failures_.fail(fault, doing, result_text(api_, result));
}

void GpuContext::wait() {
  constexpr char kDoing[] = "running kernels";
  require_alive();
  Result result = kNotReady;
  const bool ended = is_true_in_time(patience_, [&] {
    result = api_.stream_query(stream_);
    return result != kNotReady;
  });
  if (!ended) {
    stuck_ = true;
    failures_.fail_waiting(kDoing, result_text(api_, result), patience_);
  }
  check(result, kDoing);
}

CurrentContext::CurrentContext(GpuContext& gpu) : api_(gpu.api_) {
  gpu.require_alive();
  Context now = nullptr;
  gpu.check(api_.context_current(&now), "asking for the current context");
  if (now == gpu.context_) return;
  gpu.check(api_.context_push(gpu.context_), "making its context current");
  pushed_ = true;
}

CurrentContext::~CurrentContext() {
  Context popped = nullptr;
  if (pushed_) api_.context_pop(&popped);
}

}  // namespace run_model::cuda
