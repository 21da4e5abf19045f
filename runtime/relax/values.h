// Values of the Relax virtual machine: numbers, and objects that are counted as tvm-ffi counts
// them, because compiled code may keep and drop references.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/relax/ffi_abi.h"

namespace run_model {

class PagedCache;
class RelaxMachine;
struct RelaxCall;

// An FfiAny that holds a reference. Nothing more, so that compiled code may see an array of them as
// one of FfiAny.
class FfiValue : public FfiAny {
 public:
  FfiValue() = default;
  // Takes one more reference to what `any` points to.
  explicit FfiValue(const FfiAny& any);
  FfiValue(const FfiValue& other) : FfiValue(static_cast<const FfiAny&>(other)) {}
  FfiValue(FfiValue&& other) noexcept : FfiAny(other) { other.forget(); }
  FfiValue& operator=(FfiValue other) noexcept {
    std::swap(static_cast<FfiAny&>(*this), static_cast<FfiAny&>(other));
    return *this;
  }
  ~FfiValue() { drop(); }

  // Takes over the reference that an object is made with, or that compiled code hands out.
  static FfiValue adopt(FfiObject* object);
  static FfiValue adopt(const FfiAny& any);
  static FfiValue of_integer(std::int64_t number);
  static FfiValue of_bool(bool truth);
  static FfiValue of_real(double number);
  static FfiValue of_dtype(DLDataType dtype);
  static FfiValue of_shape(std::vector<std::int64_t> dims);
  static FfiValue of_text(std::string_view text);
  static FfiValue of_array(std::vector<FfiValue> items);

  // Gives the reference away.
  FfiAny release() {
    const FfiAny any = *this;
    forget();
    return any;
  }

 private:
  void forget() { static_cast<FfiAny&>(*this) = FfiAny(); }
  void drop() noexcept;
};
static_assert(sizeof(FfiValue) == sizeof(FfiAny));

struct FfiShapeObject : FfiObject {
  const std::int64_t* data = nullptr;
  std::size_t size = 0;
  std::vector<std::int64_t> dims;
};

struct FfiTextObject : FfiObject {
  const char* data = nullptr;
  std::size_t size = 0;
  std::string text;
};

struct FfiArrayObject : FfiObject {
  void* data = nullptr;
  std::int64_t size = 0;
  std::int64_t capacity = 0;
  void (*data_deleter)(void*) = nullptr;
  std::vector<FfiValue> items;
  std::size_t all_items = 0;  // with those of the arrays among them, each as often as it is there
  std::size_t depth = 1;
};

// Memory that tensors lie in, kept by whoever made it.
struct FfiStorageObject : FfiObject {
  std::shared_ptr<void> owner;
  void* data = nullptr;  // null while a model is traced
  std::size_t bytes = 0;
  std::size_t number = 0;  // of a traced model's storages
};

// Keys or values of attention that a model keeps between its runs.
struct FfiCacheObject : FfiObject {
  FfiValue data;                // a tensor, whose first dimension is for rows,
  std::int64_t filled = 0;      // so many of which count
  std::int64_t window_end = 0;  // where a window's next row goes
};

// The same in pages, of several sequences (paged_cache.cc).
struct FfiPagedCacheObject : FfiObject {
  std::shared_ptr<PagedCache> cache;
};

struct FfiTensorObject : FfiObject {
  static constexpr std::size_t kNotTraced = static_cast<std::size_t>(-1);

  DLTensor tensor{};  // at byte 24, where tvm-ffi's own code looks for it
  std::vector<std::int64_t> dims_and_strides;
  std::shared_ptr<void> owner;
  std::size_t traced = kNotTraced;  // which of a tracer's tensors it stands for: it has no values

  bool has_values() const { return traced == kNotTraced; }
  std::span<const std::int64_t> shape() const {
    return {tensor.shape, static_cast<std::size_t>(tensor.ndim)};
  }
  void* data() const { return static_cast<char*>(tensor.data) + tensor.byte_offset; }
};

struct FfiFunctionObject : FfiObject {
  // What tvm-ffi's own code looks at.
  FfiFunction safe_call = nullptr;
  void* cpp_call = nullptr;

  std::string name;
  FfiFunction compiled = nullptr;              // a function of the library, or
  void (*builtin)(RelaxCall& call) = nullptr;  // one of the virtual machine, or
  RelaxMachine* machine = nullptr;             // a function of the executable,
  std::size_t index = 0;                       // by its number, or
  FfiValue bound;                              // another function, which is called with
  std::vector<FfiValue> last_arguments;        // these after those that are given
};

// An uncounted tensor of `shape` on `data`, which `owner` keeps alive; with its strides.
FfiValue make_tensor(std::span<const std::int64_t> shape, DLDataType dtype, void* data,
                     std::shared_ptr<void> owner);
FfiValue make_storage(std::shared_ptr<void> owner, std::size_t bytes, std::size_t number);
// An empty cache in the memory of a tensor.
FfiValue make_cache(FfiValue data);
FfiValue make_paged_cache(std::shared_ptr<PagedCache> cache);
// `safe_call` is what compiled code calls.
FfiValue make_function(FfiFunction safe_call, std::string name);

// What a value is, or null where it is something else.
FfiTensorObject* as_tensor(const FfiAny& value);
const FfiShapeObject* as_shape(const FfiAny& value);
const FfiArrayObject* as_array(const FfiAny& value);
FfiStorageObject* as_storage(const FfiAny& value);
FfiFunctionObject* as_function(const FfiAny& value);
FfiCacheObject* as_cache(const FfiAny& value);
PagedCache* as_paged_cache(const FfiAny& value);

// The text of a value of any form; empty where it is none.
std::string text_of(const FfiAny& value);

// "a tensor", "a shape": what a value is, for messages.
std::string_view ffi_type_name(const FfiAny& value);

}  // namespace run_model
