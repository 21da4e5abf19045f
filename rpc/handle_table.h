// What a client holds handles of. A handle is a number that is never given out twice, so that a
// stale or invented one is noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include <run_model/rpc/function.h>
#include <run_model/tensor.h>

namespace run_model::rpc {

using Handle = std::uint64_t;

// What handles are of; clients free memory by another request than all else.
enum class HandleKind { kFunction, kModule, kObject, kArray, kMemory };

// All functions throw Error(kMismatch) for a handle that is unknown or of another kind.
class HandleTable {
 public:
  explicit HandleTable(std::size_t most) : most_(most) {}

  // Throw Error(kMismatch) when the client holds `most` handles already.
  Handle add(FunctionPointer function);
  Handle add(std::shared_ptr<RemoteModule> module);
  Handle add(std::shared_ptr<RemoteObject> object);
  Handle add_array(Tensor array);                           // a tensor that a function has returned
  Handle add_memory(Tensor memory);                         // memory that the client has allocated
  Handle add_memory(std::shared_ptr<DeviceBuffer> memory);  // the same on a GPU

  const FunctionPointer& function(Handle handle) const;
  const std::shared_ptr<RemoteModule>& module(Handle handle) const;
  const std::shared_ptr<RemoteObject>& object(Handle handle) const;
  // The memory behind a tensor that the client passes, be it allocated or returned.
  const Tensor& memory(Handle handle) const;
  const std::shared_ptr<DeviceBuffer>& device_memory(Handle handle) const;

  // Forgets what has to be of that kind; of any but memory where none is said.
  void free(Handle handle, std::optional<HandleKind> kind);

 private:
  struct Array {
    Tensor tensor;
  };
  struct Memory {
    Tensor tensor;
    std::shared_ptr<DeviceBuffer> device{};  // null for the CPU's
  };
  // In the order of HandleKind.
  using Entry = std::variant<FunctionPointer, std::shared_ptr<RemoteModule>,
                             std::shared_ptr<RemoteObject>, Array, Memory>;

  Handle add_entry(Entry entry);
  const Entry& entry(Handle handle) const;
  template <typename T>
  const T& entry_of(Handle handle) const;

  std::size_t most_;
  Handle next_ = 1;
  std::unordered_map<Handle, Entry> entries_;
};

}  // namespace run_model::rpc
