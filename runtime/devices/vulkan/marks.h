// Points in time of a Vulkan queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/devices/vulkan/queue.h"

namespace run_model {

class VulkanMarks {
 public:
  VulkanMarks(std::shared_ptr<VulkanContext> context, VulkanQueue& queue);
  ~VulkanMarks();
  VulkanMarks(const VulkanMarks&) = delete;
  VulkanMarks& operator=(const VulkanMarks&) = delete;

  std::uint64_t add();
  double seconds_between(std::uint64_t first, std::uint64_t second);
  void forget() { marks_.clear(); }

 private:
  struct Mark {
    VulkanQueue::Batch batch = 0;
    double seconds = 0;  // by the CPU's clock, where the queue has none
  };

  std::uint64_t ticks(std::uint64_t mark);

  std::shared_ptr<VulkanContext> context_;
  VulkanQueue& queue_;
  std::vector<VkQueryPool> pools_;
  std::vector<Mark> marks_;
};

}  // namespace run_model
