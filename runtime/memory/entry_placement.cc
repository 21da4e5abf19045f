#include "runtime/memory/entry_placement.h"

#include <algorithm>
#include <map>
#include <utility>

namespace run_model {
namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t alignment) {
  return (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
}

}  // namespace

DeviceMemory::~DeviceMemory() {
  const std::lock_guard lock(device_->mutex());
  // The newest first: NVIDIA's OpenCL crashes where a part is released after one that it lies in.
  for (; !parts_.empty(); parts_.pop_back()) device_->device().free(parts_.back());
  for (void* block : blocks_) device_->device().free(block);
}

void* DeviceMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(device_->mutex());
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back(device_->device().allocate(bytes));
  bytes_ += bytes;
  return blocks_.back();
}

void* DeviceMemory::part(void* memory, std::size_t offset, std::size_t bytes) {
  const std::lock_guard lock(device_->mutex());
  parts_.reserve(parts_.size() + 1);
  parts_.push_back(device_->device().part(memory, offset, bytes));
  return parts_.back();
}

EntryPlacement::EntryPlacement(std::shared_ptr<OpenDevice> device, const Graph& graph,
                               const MemoryPlan& plan, const ParamBinding& params)
    : type_(device->id().device_type),
      memory_(std::move(device)),
      handles_(graph.entries.size(), nullptr) {
  place_params(graph, plan, params);
  param_bytes_ = memory_.bytes();
  place_activations(graph, plan);
}

bool EntryPlacement::fits_in_one_piece(std::size_t bytes) const {
  const std::uint64_t most = memory_.device().device().info().largest_buffer_bytes;
  return most == 0 || bytes <= most;
}

// Several parameters a block, as many as fit.
void EntryPlacement::place_params(const Graph& graph, const MemoryPlan& plan,
                                  const ParamBinding& params) {
  Device& device = memory_.device().device();
  const std::size_t alignment = device.part_alignment();
  std::vector<const BoundParam*> here;
  for (const BoundParam& param : params.params) {
    if (graph.entries[param.entry].device == type_) here.push_back(&param);
  }
  for (std::size_t begin = 0; begin < here.size();) {
    std::size_t bytes = 0;
    std::size_t end = begin;
    for (; end < here.size(); ++end) {
      const std::size_t more = rounded_up(graph.entries[here[end]->entry].bytes, alignment);
      if (end > begin && !fits_in_one_piece(bytes + more)) break;
      bytes += more;
    }
    void* block = memory_.allocate(bytes);
    std::size_t offset = 0;
    for (; begin < end; ++begin) {
      const std::size_t entry = here[begin]->entry;
      const std::size_t size = graph.entries[entry].bytes;
      void* handle = memory_.part(block, offset, size);
      for (std::size_t i = 0; i < handles_.size(); ++i) {
        if (plan.root[i] == plan.root[entry]) handles_[i] = handle;
      }
      const std::lock_guard lock(memory_.device().mutex());
      device.upload(handle, 0, here[begin]->data, size);
      offset += rounded_up(size, alignment);
    }
  }
}

void EntryPlacement::place_activations(const Graph& graph, const MemoryPlan& plan) {
  const auto planned = plan.device_bytes.find(type_);
  if (planned == plan.device_bytes.end()) return;
  // A tensor without elements takes a byte all the same, which may be beyond the plan's end.
  const std::size_t bytes = planned->second + memory_.device().device().part_alignment();
  const bool together = fits_in_one_piece(bytes);
  void* block = nullptr;
  if (together) block = memory_.allocate(bytes);
  // Entries that are the same place have the same handle, the largest of them its size.
  std::map<std::size_t, std::size_t> sizes;  // by root
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    if (graph.entries[i].device != type_ || plan.offset[i] == MemoryPlan::kNotPlaced) continue;
    std::size_t& size = sizes[plan.root[i]];
    size = std::max(size, graph.entries[i].bytes);
  }
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    if (graph.entries[i].device != type_ || plan.offset[i] == MemoryPlan::kNotPlaced) continue;
    const std::size_t root = plan.root[i];
    if (handles_[root] == nullptr) {
      handles_[root] = together ? memory_.part(block, plan.offset[root], sizes[root])
                                : memory_.allocate(sizes[root]);
    }
    handles_[i] = handles_[root];
  }
}

}  // namespace run_model
