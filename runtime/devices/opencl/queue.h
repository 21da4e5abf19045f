// The context and the queue of an OpenCL device, the times of its commands, and what goes wrong.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "runtime/devices/device.h"
#include "runtime/devices/device_failures.h"
#include "runtime/devices/opencl/api.h"

namespace run_model {

// Shared by all that needs them to be released: memory may outlive the Device.
class OpenClQueue {
 public:
  OpenClQueue(const OpenClApi& functions, cl_platform_id platform, cl_device_id device,
              std::string name, std::uint64_t patience_nanoseconds);
  ~OpenClQueue();
  OpenClQueue(const OpenClQueue&) = delete;
  OpenClQueue& operator=(const OpenClQueue&) = delete;

  const OpenClApi& api;
  cl_device_id device;
  const std::string name;  // of the device: "opencl:0 (…)"

  cl_context context() const { return context_; }
  cl_command_queue queue() const { return queue_; }

  // From now on commands note their times; waits for those that are under way.
  void note_times();

  // Throw Error(kModel) naming the device. Lost devices stay lost.
  void check(cl_int status, const std::string& what) const {
    if (status != CL_SUCCESS) [[unlikely]]
      fail(status, what);
  }
  [[noreturn]] void fail(cl_int status, const std::string& what) const;
  // The same of calls that wait for kernels: it is they that failed.
  void check_wait(cl_int status, const std::string& what) const;
  void require_alive() const { failures_.require_alive(); }

  // Until everything asked for is done, or longer than patience allows: the device is lost then.
  void finish() const;

  // Before calls of the driver that wait by themselves, for how long nobody can say.
  void prepare_to_block() const {
    if (patience_ != kEndlessPatience) finish();
  }

  // Whether the queue did not end in time: nothing that it may use can be freed any more, and the
  // driver might wait for it.
  bool is_stuck() const { return stuck_; }

 private:
  void await_marker() const;

  mutable DeviceFailures failures_;
  const std::uint64_t patience_;  // nanoseconds
  mutable std::atomic<bool> stuck_{false};
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  bool notes_times_ = false;
};

// The events of the commands since times are noted. A mark is how many there were.
class OpenClEvents {
 public:
  explicit OpenClEvents(std::shared_ptr<OpenClQueue> queue) : queue_(std::move(queue)) {}
  ~OpenClEvents() { forget(); }
  OpenClEvents(const OpenClEvents&) = delete;
  OpenClEvents& operator=(const OpenClEvents&) = delete;

  Device::Mark mark();
  // From the start of the first command between the marks to the end of the last; 0 without any.
  double seconds_between(Device::Mark first, Device::Mark second) const;
  void forget();

  // Where a command is to leave its event; null while times are not noted.
  cl_event* next();

 private:
  cl_ulong time_of(Device::Mark command, cl_profiling_info what) const;

  std::shared_ptr<OpenClQueue> queue_;
  std::vector<cl_event> events_;
  bool noting_ = false;
};

// What a handle of device memory points to: compiled code takes it for an address, and asserts that
// it is a multiple of 64.
struct alignas(64) OpenClBuffer {
  cl_mem memory;
  std::size_t bytes;
};

}  // namespace run_model
