#include "runtime/devices/opencl/queue.h"

namespace run_model {
namespace {

// What NVIDIA's driver gives for kernels that read or write where there is nothing.
constexpr cl_int kNvidiaIllegalAccess = -9999;

DeviceFault fault_of(cl_int status) {
  switch (status) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_OUT_OF_RESOURCES:
      return DeviceFault::kOutOfMemory;
    // Context and queue are ours: they are invalid where the driver has given them up.
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
    case kNvidiaIllegalAccess:
      return DeviceFault::kLost;
    default:
      return DeviceFault::kOther;
  }
}

const char* progress_name(cl_int status) {
  if (status == CL_QUEUED) return "CL_QUEUED";
  return status == CL_SUBMITTED ? "CL_SUBMITTED" : "CL_RUNNING";
}

}  // namespace

OpenClQueue::OpenClQueue(const OpenClApi& functions, cl_platform_id platform,
                         cl_device_id device_id, std::string device_name,
                         std::uint64_t patience_nanoseconds)
    : api(functions),
      device(device_id),
      name(std::move(device_name)),
      failures_(name),
      patience_(patience_nanoseconds) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int status = CL_SUCCESS;
  context_ = api.clCreateContext(properties, 1, &device, nullptr, nullptr, &status);
  check(status, "opening the device");
  queue_ = api.clCreateCommandQueue(context_, device, 0, &status);
  if (status != CL_SUCCESS) {
    api.clReleaseContext(context_);
    fail(status, "making a queue");
  }
}

OpenClQueue::~OpenClQueue() {
  if (stuck_) return;
  api.clFinish(queue_);
  api.clReleaseCommandQueue(queue_);
  api.clReleaseContext(context_);
}

void OpenClQueue::finish() const {
  require_alive();
  if (patience_ != kEndlessPatience) await_marker();
  // It may know of failures that markers do not show.
  check_wait(api.clFinish(queue_), "running kernels");
}

// OpenCL has no wait that ends.
void OpenClQueue::await_marker() const {
  constexpr char kDoing[] = "running kernels";
  cl_event marker = nullptr;
  check_wait(api.clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &marker), kDoing);
  cl_int progress = CL_QUEUED;
  cl_int status = api.clFlush(queue_);
  const bool ended = is_true_in_time(patience_, [&] {
    if (status == CL_SUCCESS) {
      status = api.clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(progress),
                                  &progress, nullptr);
    }
    return status != CL_SUCCESS || progress <= CL_COMPLETE;
  });
  if (!ended) {
    stuck_ = true;
    failures_.fail_waiting(kDoing, progress_name(progress), patience_);
  }
  api.clReleaseEvent(marker);
  check_wait(status, kDoing);
  // What is less than CL_COMPLETE, which is 0, is what went wrong.
  check_wait(progress, kDoing);
}

void OpenClQueue::note_times() {
  if (notes_times_) return;
  finish();
  cl_int status = CL_SUCCESS;
  cl_command_queue timed =
      api.clCreateCommandQueue(context_, device, CL_QUEUE_PROFILING_ENABLE, &status);
  check(status, "making a queue that notes times");
  api.clReleaseCommandQueue(queue_);
  queue_ = timed;
  notes_times_ = true;
}

void OpenClQueue::fail(cl_int status, const std::string& what) const {
  failures_.fail(fault_of(status), what, opencl_error_name(status));
}

// CL_OUT_OF_RESOURCES is then what drivers say of kernels that a watchdog has ended or that went
// astray, and of a device that was reset.
void OpenClQueue::check_wait(cl_int status, const std::string& what) const {
  if (status == CL_SUCCESS) return;
  const bool is_lost = status == CL_OUT_OF_RESOURCES || fault_of(status) == DeviceFault::kLost;
  failures_.fail(is_lost ? DeviceFault::kLost : fault_of(status), what, opencl_error_name(status));
}

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
    if (queue_->is_stuck()) break;
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
