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

class DeviceBuffer;
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
  // Null for the CPU's memory. On a GPU `tensor` says shape and element type only: its address is
  // none that the CPU can use.
  std::shared_ptr<DeviceBuffer> device_memory{};
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

using Values = std::span<const Value>;

// The arguments of one call, taken out with a check: each of these throws Error(kMismatch) naming
// the function, the position (from 0) and what was found where the argument is missing or of
// another kind.
class Arguments {
 public:
  Arguments(const std::string& function, Values values) : function_(function), values_(values) {}

  std::size_t size() const { return values_.size(); }
  Values values() const { return values_; }
  const Value& operator[](std::size_t i) const;

  // Throws Error(kMismatch) unless there are at least `least` and at most `most` arguments.
  void check_count(std::size_t least, std::size_t most) const;

  bool is_null(std::size_t i) const;
  bool is_text(std::size_t i) const;
  std::int64_t integer(std::size_t i) const;  // integers and bools
  // As integer(), and refuses what lies outside of [least, most].
  std::int64_t integer_within(std::size_t i, std::int64_t least, std::int64_t most) const;
  double real(std::size_t i) const;  // floats and integers
  const std::string& text(std::size_t i) const;
  // Bytes, or the characters of a text.
  std::span<const std::byte> bytes(std::size_t i) const;
  const TensorArgument& tensor(std::size_t i) const;  // of the CPU
  const TensorArgument& any_tensor(std::size_t i) const;
  const std::shared_ptr<RemoteModule>& module(std::size_t i) const;
  // A device, and one that is refused unless it is the CPU.
  Device device(std::size_t i) const;
  Device cpu(std::size_t i) const;

  [[noreturn]] void fail(std::size_t i, const std::string& expected) const;

 private:
  const std::string& function_;
  Values values_;
};

}  // namespace run_model::rpc
