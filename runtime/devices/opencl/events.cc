#include "runtime/devices/opencl/kernel.h"

namespace run_model {

Device::Mark OpenClEvents::mark() {
  if (!noting_) queue_->note_times();
  noting_ = true;
  return events_.size();
}

double OpenClEvents::seconds_between(Device::Mark first, Device::Mark second) const {
  if (second <= first || second > events_.size()) return 0;
  queue_->finish();
  const cl_ulong begin = time_of(first, CL_PROFILING_COMMAND_START);
  const cl_ulong end = time_of(second - 1, CL_PROFILING_COMMAND_END);
  return end > begin ? static_cast<double>(end - begin) * 1e-9 : 0;
}

void OpenClEvents::forget() {
  for (cl_event event : events_) {
    if (event != nullptr) queue_->api.clReleaseEvent(event);
  }
  events_.clear();
  noting_ = false;
}

cl_event* OpenClEvents::next() {
  if (!noting_) return nullptr;
  events_.push_back(nullptr);
  return &events_.back();
}

cl_ulong OpenClEvents::time_of(Device::Mark command, cl_profiling_info what) const {
  cl_ulong nanoseconds = 0;
  queue_->check(queue_->api.clGetEventProfilingInfo(events_[command], what, sizeof(nanoseconds),
                                                    &nanoseconds, nullptr),
                "asking for the time of a command");
  return nanoseconds;
}

}  // namespace run_model
