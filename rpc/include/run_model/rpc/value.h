// Arguments and results of remote calls: what TVM's packed functions take, as this server holds it.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <run_model/tensor.h>

namespace run_model::rpc {

class Function;
class RemoteModule;
class RemoteObject;

// Bytes with shared ownership, so that a result can point into a mapped file.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> data;

  static Bytes copy_of(std::span<const std::byte> data);
};

// A tensor that the client passes: a view of memory that it has allocated here. `tensor` begins at
// the first element, byte_offset bytes behind the start of the memory; compiled functions are told
// both.
struct TensorArgument {
  Tensor tensor;
  std::uint64_t byte_offset = 0;
};

// A tensor that is given to the client, which gets a handle that keeps it alive.
struct ArrayResult {
  Tensor tensor;
};

// A number that means something to the client only, as in its user's own callbacks.
struct OpaqueHandle {
  std::uint64_t value = 0;
};

// A device by DLPack's numbers. Not a DLDevice: a client's number need not be one that its
// enumeration may hold.
struct Device {
  std::int32_t type = kDLCPU;
  std::int32_t number = 0;
};

struct Bool {
  bool value = false;
};

// Null is std::monostate.
using Value =
    std::variant<std::monostate, std::int64_t, double, Bool, std::string, Bytes, DLDataType, Device,
                 OpaqueHandle, TensorArgument, ArrayResult, std::shared_ptr<const Function>,
                 std::shared_ptr<RemoteModule>, std::shared_ptr<RemoteObject>>;

// The name that error messages use for what `value` holds: "an integer", "a tensor" …
std::string kind_name(const Value& value);

}  // namespace run_model::rpc
