// A GPU as it is in use: its primary context, one stream, and what becomes of failures.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/devices/cuda/api.h"
#include "runtime/devices/device_failures.h"

namespace run_model::cuda {

class GpuContext {
 public:
  // `label` is what sentences call the device: "cuda:0 (NVIDIA H100 80GB HBM3)".
  GpuContext(const Api& api, DeviceNumber device, std::string label,
             std::uint64_t patience_nanoseconds);
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;
  ~GpuContext();

  const Api& api() const { return api_; }
  Stream stream() const { return stream_; }
  Context context() const { return context_; }
  const std::string& label() const { return failures_.device(); }

  // Throws Error(kModel) that names the device. After what CUDA calls a sticky error nothing can be
  // done with the context: the device is lost.
  void check(Result result, const char* doing) {
    if (result != kSuccess) [[unlikely]]
      fail(result, doing);
  }
  [[noreturn]] void fail(Result result, const std::string& doing);

  void require_alive() const { failures_.require_alive(); }

  // Until the stream is empty, or longer than patience allows: the device is lost then. To be
  // called before what waits for the stream by itself, for how long nobody can say.
  void wait();

 private:
  const Api& api_;
  DeviceNumber device_;
  DeviceFailures failures_;
  const std::uint64_t patience_;  // nanoseconds
  // The stream did not end in time: the driver would wait for it, and it uses what is freed.
  bool stuck_ = false;
  Context context_ = nullptr;
  Stream stream_ = nullptr;

  friend class CurrentContext;
};

// Makes the context the thread's current one for as long as this lives; an application with CUDA
// code of its own finds the one that it had.
class CurrentContext {
 public:
  explicit CurrentContext(GpuContext& gpu);
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext();

 private:
  const Api& api_;
  bool pushed_ = false;
};

}  // namespace run_model::cuda
