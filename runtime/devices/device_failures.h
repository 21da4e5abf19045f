// What becomes of a driver's failures: the same sentences whichever driver it is, and none of a
// lost device's later answers.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <run_model/error.h>

namespace run_model {

enum class DeviceFault {
  kOutOfMemory,  // may be over at the next call
  kLost,         // reset, taken away, or given up by its driver
  kTimeOut,      // ended by a watchdog, or waited for in vain; lost too
  kOther,
};

// How long a queue may take for what it was given until the device counts as hanging. What is
// computed by the CPU (`software`) takes as long as it takes; a GPU's own watchdog, if there is
// one, acts within seconds.
inline constexpr std::uint64_t kEndlessPatience = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t patience_nanoseconds_with(bool software) {
  return software ? kEndlessPatience : 300'000'000'000;
}

// For drivers whose own waits have no end: asks again and again, for so long. False where the last
// answer was false.
bool is_true_in_time(std::uint64_t nanoseconds, const std::function<bool()>& is_true);

// Called under the lock that the device is called under.
class DeviceFailures {
 public:
  // `device` is how sentences call it: "opencl:0 (NVIDIA …)".
  explicit DeviceFailures(std::string device) : device_(std::move(device)) {}

  const std::string& device() const { return device_; }

  // Throws Error(kModel) that names the device, what it did ("allocating 3 bytes") and what the
  // driver said. Once the device is lost it is that sentence whatever comes later.
  [[noreturn]] void fail(DeviceFault fault, const std::string& doing, const std::string& said);

  // The same for a queue of which the driver says no more than `said` after so long.
  [[noreturn]] void fail_waiting(const std::string& doing, const std::string& said,
                                 std::uint64_t nanoseconds);

  // Throws it where the device is lost: nothing that it would say can be relied on.
  void require_alive() const {
    if (loss_) [[unlikely]]
      throw Error(*loss_);
  }

 private:
  std::string device_;
  std::optional<Error> loss_;
};

}  // namespace run_model
