// Points in a GPU's stream: CUDA's events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/devices/cuda/context.h"

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

}  // namespace run_model::cuda
