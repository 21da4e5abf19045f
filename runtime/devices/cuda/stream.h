// What a GPU's stream gives beside copies and launches: points in it, which are CUDA's events, and
// work noted once, which is a CUDA graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/devices/cuda/context.h"
#include "runtime/devices/device.h"

namespace run_model::cuda {

// The context is current at every call.
class Marks {
 public:
  explicit Marks(GpuContext& gpu) : gpu_(gpu) {}

  std::uint64_t mark();
  double seconds_between(std::uint64_t first, std::uint64_t second);
  // Events are kept for the next marks.
  void forget();
  void destroy() noexcept;

 private:
  Event event(std::uint64_t mark) const;

  GpuContext& gpu_;
  std::uint64_t forgotten_ = 0;  // the number of the first mark that is known
  std::size_t in_use_ = 0;
  std::vector<Event> events_;
};

// See Device::record: null where the driver is too old. The context is current.
std::unique_ptr<DeviceRecording> record(const std::shared_ptr<GpuContext>& gpu,
                                        const std::function<void()>& work);

}  // namespace run_model::cuda
