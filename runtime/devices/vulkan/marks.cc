#include "runtime/devices/vulkan/marks.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <run_model/error.h>

namespace run_model {
namespace {

constexpr std::uint32_t kMarksOfPool = 512;

}  // namespace

VulkanMarks::VulkanMarks(std::shared_ptr<VulkanContext> context, VulkanQueue& queue)
    : context_(std::move(context)), queue_(queue) {}

VulkanMarks::~VulkanMarks() {
  if (context_->is_stuck()) return;
  for (VkQueryPool pool : pools_) {
    context_->vk().DestroyQueryPool(context_->handle(), pool, nullptr);
  }
}

std::uint64_t VulkanMarks::add() {
  const std::uint64_t mark = marks_.size();
  if (context_->physical().time_stamp_bits == 0) {
    queue_.wait();
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    marks_.push_back({0, std::chrono::duration<double>(now).count()});
    return mark;
  }
  const VulkanDeviceFunctions& vk = context_->vk();
  if (mark / kMarksOfPool == pools_.size()) {
    VkQueryPoolCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    create.queryType = VK_QUERY_TYPE_TIMESTAMP;
    create.queryCount = kMarksOfPool;
    VkQueryPool pool = VK_NULL_HANDLE;
    context_->check(vk.CreateQueryPool(context_->handle(), &create, nullptr, &pool),
                    "making time stamps");
    pools_.push_back(pool);
  }
  VulkanCommands& commands = queue_.open();
  VkQueryPool pool = pools_[mark / kMarksOfPool];
  const auto query = static_cast<std::uint32_t>(mark % kMarksOfPool);
  // What follows a mark must not begin before it, or its time would be another's.
  commands.barrier();
  vk.CmdResetQueryPool(commands.handle(), pool, query, 1);
  vk.CmdWriteTimestamp(commands.handle(), VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, query);
  marks_.push_back({queue_.current(), 0});
  return mark;
}

std::uint64_t VulkanMarks::ticks(std::uint64_t mark) {
  std::uint64_t value = 0;
  context_->check(context_->vk().GetQueryPoolResults(
                      context_->handle(), pools_[mark / kMarksOfPool],
                      static_cast<std::uint32_t>(mark % kMarksOfPool), 1, sizeof(value), &value,
                      sizeof(value), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                  "reading time stamps");
  return value;
}

double VulkanMarks::seconds_between(std::uint64_t first, std::uint64_t second) {
  if (first >= marks_.size() || second >= marks_.size()) {
    throw Error(ErrorKind::kInternal, "a mark of " + context_->name() + " was forgotten");
  }
  const std::uint32_t bits = context_->physical().time_stamp_bits;
  if (bits == 0) return marks_[second].seconds - marks_[first].seconds;
  queue_.wait_for(std::max(marks_[first].batch, marks_[second].batch));
  std::uint64_t passed = ticks(second) - ticks(first);
  if (bits < 64) passed &= (std::uint64_t{1} << bits) - 1;
  return static_cast<double>(passed) * context_->limits().timestampPeriod * 1e-9;
}

}  // namespace run_model
