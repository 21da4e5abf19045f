#include "rpc/handle_table.h"

#include <array>
#include <utility>

#include <run_model/error.h>

namespace run_model::rpc {
namespace {

// In the order of HandleKind.
constexpr std::array<const char*, 5> kKinds = {"a function", "a module", "an object", "a tensor",
                                               "allocated memory"};

std::string number(Handle handle) { return std::to_string(handle); }

}  // namespace

Handle HandleTable::add_entry(Entry entry) {
  if (entries_.size() >= most_) {
    throw Error(ErrorKind::kMismatch,
                "the session holds " + std::to_string(most_) + " handles, as many as it may",
                "free functions, modules and tensors that are not needed any more");
  }
  entries_.emplace(next_, std::move(entry));
  return next_++;
}

Handle HandleTable::add(FunctionPointer function) { return add_entry(std::move(function)); }
Handle HandleTable::add(std::shared_ptr<RemoteModule> module) {
  return add_entry(std::move(module));
}
Handle HandleTable::add(std::shared_ptr<RemoteObject> object) {
  return add_entry(std::move(object));
}
Handle HandleTable::add_array(Tensor array) { return add_entry(Array{std::move(array)}); }
Handle HandleTable::add_memory(Tensor memory) { return add_entry(Memory{std::move(memory)}); }
Handle HandleTable::add_memory(std::shared_ptr<DeviceBuffer> memory) {
  return add_entry(Memory{{}, std::move(memory)});
}

const HandleTable::Entry& HandleTable::entry(Handle handle) const {
  const auto found = entries_.find(handle);
  if (found == entries_.end()) {
    throw Error(ErrorKind::kMismatch, "the session has no handle " + number(handle) +
                                          ": it was never given out or was freed");
  }
  return found->second;
}

template <typename T>
const T& HandleTable::entry_of(Handle handle) const {
  const Entry& found = entry(handle);
  if (const T* value = std::get_if<T>(&found)) return *value;
  throw Error(ErrorKind::kMismatch, "handle " + number(handle) + " is " + kKinds.at(found.index()) +
                                        ", expected " + kKinds.at(Entry(T()).index()));
}

const FunctionPointer& HandleTable::function(Handle handle) const {
  return entry_of<FunctionPointer>(handle);
}

const std::shared_ptr<RemoteModule>& HandleTable::module(Handle handle) const {
  return entry_of<std::shared_ptr<RemoteModule>>(handle);
}

const std::shared_ptr<RemoteObject>& HandleTable::object(Handle handle) const {
  return entry_of<std::shared_ptr<RemoteObject>>(handle);
}

const Tensor& HandleTable::memory(Handle handle) const {
  const Entry& found = entry(handle);
  if (const auto* array = std::get_if<Array>(&found)) return array->tensor;
  const Memory& memory = entry_of<Memory>(handle);
  if (memory.device != nullptr) {
    throw Error(ErrorKind::kMismatch,
                "handle " + number(handle) + " is memory of a GPU, expected the CPU's");
  }
  return memory.tensor;
}

const std::shared_ptr<DeviceBuffer>& HandleTable::device_memory(Handle handle) const {
  const Memory& memory = entry_of<Memory>(handle);
  if (memory.device == nullptr) {
    throw Error(ErrorKind::kMismatch,
                "handle " + number(handle) + " is memory of the CPU, expected a GPU's");
  }
  return memory.device;
}

void HandleTable::free(Handle handle, std::optional<HandleKind> kind) {
  const Entry& found = entry(handle);
  const auto index = static_cast<HandleKind>(found.index());
  if (kind ? index != *kind : index == HandleKind::kMemory) {
    throw Error(ErrorKind::kMismatch,
                "handle " + number(handle) + " is " + kKinds.at(found.index()) +
                    ", but was to be freed as " +
                    (kind ? kKinds.at(static_cast<std::size_t>(*kind)) : "something else"));
  }
  // What it refers to may free others on its way out: the table is in order before.
  const auto node = entries_.extract(handle);
}

}  // namespace run_model::rpc
