#include "runtime/devices/device_failures.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace run_model {
namespace {

using Clock = std::chrono::steady_clock;

// As short kernels take is looked without a pause; later, pauses are a small part of what went by.
void pause_after(Clock::duration waited) {
  constexpr std::chrono::microseconds kShort{100};
  constexpr std::chrono::milliseconds kLongestPause{1};
  constexpr int kPauseShare = 32;
  if (waited < kShort) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::min<Clock::duration>(waited / kPauseShare, kLongestPause));
  }
}

}  // namespace

bool is_true_in_time(std::uint64_t nanoseconds, const std::function<bool()>& is_true) {
  const Clock::time_point start = Clock::now();
  while (!is_true()) {
    const Clock::duration waited = Clock::now() - start;
    if (waited > std::chrono::nanoseconds(nanoseconds)) return false;
    pause_after(waited);
  }
  return true;
}

void DeviceFailures::fail(DeviceFault fault, const std::string& doing, const std::string& said) {
  require_alive();
  const std::string name = "device " + device_;
  const std::string at = " while " + doing + " (" + said + ")";
  switch (fault) {
    case DeviceFault::kOutOfMemory:
      throw Error(ErrorKind::kModel, name + " ran out of memory" + at,
                  "end other programs that use it, or take a smaller model or batch");
    case DeviceFault::kLost:
      loss_.emplace(ErrorKind::kModel, name + " was lost" + at,
                    "its driver has reset it or it was taken away, which the kernel's log (dmesg) "
                    "says more about: start the program again");
      throw Error(*loss_);
    case DeviceFault::kTimeOut:
      loss_.emplace(ErrorKind::kModel, name + " did not end in time" + at,
                    "a GPU that also draws the screen may not compute for seconds: take another "
                    "one or a smaller model, and start the program again");
      throw Error(*loss_);
    case DeviceFault::kOther:
      break;
  }
  throw Error(ErrorKind::kModel, name + " failed" + at);
}

void DeviceFailures::fail_waiting(const std::string& doing, const std::string& said,
                                  std::uint64_t nanoseconds) {
  fail(DeviceFault::kTimeOut, doing,
       said + " after " + std::to_string(nanoseconds / 1'000'000'000) + " seconds");
}

}  // namespace run_model
