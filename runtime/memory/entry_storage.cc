#include "runtime/memory/entry_storage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include <run_model/dtype.h>
#include <run_model/error.h>

namespace run_model {
namespace {

// In bytes; more than a 32-bit program can address on many boards.
std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// What Linux calls a huge page where pages have 4 KiB.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Zeroed pages that are only taken from the system when they are written to first. Whole huge pages
// are asked for as such: one fault in place of 512 in the first run, and fewer misses of the TLB
// in all others. What is left at the end is of small ones, so that it takes no more memory, but
// where it nearly fills one.
std::shared_ptr<char> allocate_pages(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes > physical_memory()) {
    throw Error(ErrorKind::kIncompatible, "the model's tensors need " + std::to_string(bytes) +
                                              " bytes of memory, this machine has " +
                                              std::to_string(physical_memory()));
  }
  const std::size_t huge = (bytes + kHugePage / 4) / kHugePage * kHugePage;
  const std::size_t reserved = huge == 0 ? bytes : std::max(bytes, huge) + kHugePage;
  void* data = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw Error(ErrorKind::kIncompatible, "the system refused " + std::to_string(bytes) +
                                              " bytes of memory for the model's tensors");
  }
  char* first = static_cast<char*>(data);
  if (huge != 0) {
    first += (kHugePage - reinterpret_cast<std::uintptr_t>(data) % kHugePage) % kHugePage;
    madvise(first, huge, MADV_HUGEPAGE);  // a wish, which may be refused
  }
  return {first, [data, reserved](char*) { munmap(data, reserved); }};
}

DeviceAlignments alignments_of(const GraphDevices& devices) {
  DeviceAlignments alignments;
  for (const auto& device : devices) {
    alignments[device->id().device_type] = device->device().part_alignment();
  }
  return alignments;
}

std::vector<bool> entries_of(const ParamBinding& params, std::size_t entries) {
  std::vector<bool> is_param(entries, false);
  for (const BoundParam& param : params.params) is_param[param.entry] = true;
  return is_param;
}

}  // namespace

EntryStorage::EntryStorage(const Graph& graph, const StoragePlan& storages,
                           const ParamBinding& params, MemoryPlanning planning,
                           const TensorConvention& convention, const GraphDevices& devices)
    : graph_(graph),
      plan_(plan_memory(graph, storages, entries_of(params, graph.entries.size()), planning,
                        alignments_of(devices))),
      block_(allocate_pages(plan_.bytes)),
      devices_(graph.entries.size(), nullptr),
      arguments_(graph.entries.size()),
      owners_(graph.entries.size(), block_),
      read_only_(graph.entries.size(), false),
      flat_size_(graph.entries.size()) {
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const GraphEntry& entry = graph.entries[i];
    const bool placed = plan_.offset[i] != MemoryPlan::kNotPlaced;
    DLTensor& tensor = arguments_[i];
    tensor.data = placed ? block_.get() + plan_.offset[i] : nullptr;
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(entry.shape.size());
    tensor.dtype = entry.dtype;
    tensor.shape = const_cast<std::int64_t*>(entry.shape.data());
    if (same_dtype(entry.dtype, {kDLUInt, 1, 1})) tensor.dtype = convention.bool_type;
  }
  if (convention.strides) add_strides();
  for (const auto& device : devices) place_on(device, params);
  for (const BoundParam& param : params.params) {
    if (devices_[param.entry] != nullptr) continue;
    move(param.entry, const_cast<void*>(param.data), std::const_pointer_cast<void>(param.owner));
    read_only_[param.entry] = !param.writable;
  }
}

void EntryStorage::place_on(const std::shared_ptr<OpenDevice>& device, const ParamBinding& params) {
  placements_.push_back(std::make_unique<EntryPlacement>(device, graph_, plan_, params));
  const std::vector<void*>& handles = placements_.back()->handles();
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (handles[i] == nullptr) continue;
    devices_[i] = device.get();
    arguments_[i].data = handles[i];
    arguments_[i].device = device->id();
    owners_[i] = nullptr;
  }
}

void EntryStorage::add_strides() {
  strides_.reserve(arguments_.size());
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    std::vector<std::int64_t>& strides = strides_.emplace_back(graph_.entries[i].shape.size(), 1);
    for (std::size_t d = strides.size(); d-- > 1;) {
      strides[d - 1] = strides[d] * graph_.entries[i].shape[d];
    }
    arguments_[i].strides = strides.data();
  }
}

DLTensor* EntryStorage::argument(std::size_t entry, bool flatten) {
  DLTensor& tensor = arguments_[entry];
  if (flatten) {
    flat_size_[entry] = element_count(graph_.entries[entry].shape);
    tensor.ndim = 1;
    tensor.shape = &flat_size_[entry];
  }
  return &tensor;
}

Tensor EntryStorage::tensor(std::size_t entry) const {
  const GraphEntry& description = graph_.entries[entry];
  if (devices_[entry] != nullptr) {
    Tensor copied = Tensor::empty(description.shape, description.dtype);
    download(entry, copied.data());
    return copied;
  }
  return Tensor::view(arguments_[entry].data, description.shape, description.dtype, owners_[entry]);
}

void EntryStorage::copy(std::size_t from, std::size_t to) {
  const std::size_t bytes = graph_.entries[to].bytes;
  OpenDevice* source = devices_[from];
  OpenDevice* target = devices_[to];
  if (source == nullptr && target == nullptr) {
    std::memmove(data(to), data(from), bytes);
  } else if (source == nullptr) {
    upload(to, data(from));
  } else if (target == nullptr) {
    download(from, data(to));
  } else if (source == target) {
    const std::lock_guard lock(source->mutex());
    source->device().copy(data(from), 0, data(to), 0, bytes);
  } else {
    const Tensor between = tensor(from);
    upload(to, between.data());
  }
}

Tensor EntryStorage::host_memory(std::size_t entry) const {
  const GraphEntry& description = graph_.entries[entry];
  OpenDevice& device = *devices_[entry];
  const std::lock_guard lock(device.mutex());
  std::shared_ptr<void> memory = device.device().allocate_host(description.bytes);
  std::memset(memory.get(), 0, description.bytes);
  return Tensor::view(memory.get(), description.shape, description.dtype, memory);
}

void EntryStorage::upload(std::size_t entry, const void* from) {
  OpenDevice& device = *devices_[entry];
  const std::lock_guard lock(device.mutex());
  device.device().upload(data(entry), 0, from, graph_.entries[entry].bytes);
}

void EntryStorage::download(std::size_t entry, void* to) const {
  OpenDevice& device = *devices_[entry];
  const std::lock_guard lock(device.mutex());
  device.device().download(data(entry), 0, to, graph_.entries[entry].bytes);
}

void EntryStorage::place_at(std::size_t entry, void* handle) { move(entry, handle, nullptr); }

void EntryStorage::place_home(std::size_t entry) {
  for (const auto& placement : placements_) {
    if (&placement->device() == devices_[entry]) place_at(entry, placement->handles()[entry]);
  }
}

void EntryStorage::move_to(std::size_t entry, const Tensor& tensor) {
  move(entry, tensor.data(), std::make_shared<Tensor>(tensor));
  read_only_[entry] = false;
}

void EntryStorage::move_home(std::size_t entry) {
  move(entry, block_.get() + plan_.offset[entry], block_);
}

void EntryStorage::make_writable(std::size_t entry) {
  if (read_only_[entry]) move_to(entry, tensor(entry).clone());
}

void EntryStorage::move(std::size_t entry, void* data, const std::shared_ptr<void>& owner) {
  const std::size_t root = plan_.root[entry];
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (plan_.root[i] != root) continue;
    // On a device nothing shares memory but what is the same place.
    const std::size_t distance =
        devices_[entry] != nullptr ? 0 : plan_.offset[i] - plan_.offset[entry];
    arguments_[i].data = static_cast<char*>(data) + distance;
    owners_[i] = owner;
  }
}

}  // namespace run_model
