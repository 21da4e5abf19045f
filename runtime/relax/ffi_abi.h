// The calling convention of compiled functions since TVM 0.21: tvm-ffi's C ABI.
// Layouts and numbers read from tvm-ffi's c_api.h (0.1.0 … 0.1.15); the same on 32-bit machines.
#pragma once

#include <dlpack/dlpack.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace run_model {

// What a value is. From kFfiObjects on it points to an object that counts its references.
enum FfiType : std::int32_t {
  kFfiNone = 0,
  kFfiInt = 1,
  kFfiBool = 2,
  kFfiFloat = 3,
  kFfiPointer = 4,
  kFfiDataType = 5,
  kFfiDevice = 6,
  kFfiTensorPointer = 7,  // DLTensor*
  kFfiRawText = 8,        // const char*
  kFfiSmallText = 11,     // up to 7 bytes in the value itself
  // Of this runtime: what a function would give that a tracer only notes down.
  kFfiUntraced = 63,
  kFfiObjects = 64,
  kFfiText = 65,
  kFfiFunction = 68,
  kFfiShape = 69,
  kFfiTensor = 70,
  kFfiArray = 71,
  // Of this runtime; numbers of TVM's own classes are given out at run time, and no compiled code
  // looks at them.
  kFfiStorage = 1000,
  kFfiCache = 1001,
  kFfiPagedCache = 1002,
};

// The head of every object.
struct FfiObject {
  std::atomic<std::uint64_t> references{(std::uint64_t{1} << 32) | 1};  // weak above strong
  std::int32_t type = kFfiNone;
  std::uint32_t reserved = 0;
  union {
    void (*deleter)(void* object, int flags) = nullptr;
    std::int64_t deleter_bytes;
  };
};
static_assert(sizeof(FfiObject) == 24);

struct FfiAny {
  std::int32_t type = kFfiNone;
  std::uint32_t text_bytes = 0;  // of kFfiSmallText
  union {
    std::int64_t integer = 0;
    double real;
    void* pointer;
    FfiObject* object;
    DLDataType dtype;
    DLDevice device;
    char text[8];
  };
};
static_assert(sizeof(FfiAny) == 16);

struct FfiBytes {
  const char* data = nullptr;
  std::size_t size = 0;
};

// The beginning of an error object.
struct FfiErrorObject : FfiObject {
  FfiBytes kind;
  FfiBytes message;
};

// What there is to know about a type, without its fields and methods. `ancestors` are the types
// that it is derived from, the first of all first.
struct FfiTypeInfo {
  std::int32_t type = kFfiNone;
  std::int32_t depth = 0;
  FfiBytes name;
  const FfiTypeInfo* const* ancestors = nullptr;
  std::uint64_t name_hash = 0;
  std::int32_t num_fields = 0;
  std::int32_t num_methods = 0;
  const void* fields = nullptr;
  const void* methods = nullptr;
  const void* metadata = nullptr;
};

// `self` is the function object that is called, null for functions called by their address.
// Returns 0 on success; otherwise last_packed_error() has the reason.
using FfiFunction = int (*)(void* self, const FfiAny* args, std::int32_t num_args, FfiAny* result);

// How TVM since 0.22 says bool: an element type of its own, where older releases have an unsigned
// integer of one bit, which is run_model's.
inline constexpr DLDataType kFfiBoolType{6, 8, 1};
inline constexpr DLDataType kPlainBoolType{kDLUInt, 1, 1};

}  // namespace run_model
