#include "runtime/relax/values.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace run_model {
namespace {

// The strong references are gone with bit 0 of the flags, the weak ones with bit 1.
template <typename Object>
void delete_object(void* object, int flags) {
  if ((flags & 1) != 0) delete static_cast<Object*>(static_cast<FfiObject*>(object));
}

template <typename Object>
Object* new_object(std::int32_t type) {
  auto* object = new Object;
  object->type = type;
  object->deleter = delete_object<Object>;
  return object;
}

constexpr std::uint64_t kStrongReferences = 0xFFFFFFFF;
constexpr int kDeleteAll = 3;

}  // namespace

FfiValue::FfiValue(const FfiAny& any) : FfiAny(any) {
  if (type >= kFfiObjects) object->references.fetch_add(1, std::memory_order_relaxed);
}

void FfiValue::drop() noexcept {
  if (type < kFfiObjects) return;
  const std::uint64_t before = object->references.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kStrongReferences) == 1 && object->deleter != nullptr) {
    object->deleter(object, kDeleteAll);
  }
}

FfiValue FfiValue::adopt(FfiObject* object) {
  FfiValue value;
  value.type = object->type;
  value.object = object;
  return value;
}

FfiValue FfiValue::adopt(const FfiAny& any) {
  FfiValue value;
  static_cast<FfiAny&>(value) = any;
  return value;
}

FfiValue FfiValue::of_integer(std::int64_t number) {
  FfiValue value;
  value.type = kFfiInt;
  value.integer = number;
  return value;
}

FfiValue FfiValue::of_bool(bool truth) {
  FfiValue value;
  value.type = kFfiBool;
  value.integer = truth ? 1 : 0;
  return value;
}

FfiValue FfiValue::of_real(double number) {
  FfiValue value;
  value.type = kFfiFloat;
  value.real = number;
  return value;
}

FfiValue FfiValue::of_dtype(DLDataType dtype) {
  FfiValue value;
  value.type = kFfiDataType;
  value.integer = 0;
  value.dtype = dtype;
  return value;
}

FfiValue FfiValue::of_shape(std::vector<std::int64_t> dims) {
  auto* shape = new_object<FfiShapeObject>(kFfiShape);
  shape->dims = std::move(dims);
  shape->data = shape->dims.data();
  shape->size = shape->dims.size();
  return adopt(shape);
}

FfiValue FfiValue::of_text(std::string_view text) {
  if (text.size() < sizeof(FfiAny::text)) {
    FfiValue value;
    value.type = kFfiSmallText;
    value.text_bytes = static_cast<std::uint32_t>(text.size());
    std::memcpy(value.text, text.data(), text.size());
    return value;
  }
  auto* object = new_object<FfiTextObject>(kFfiText);
  object->text = text;
  object->data = object->text.data();
  object->size = object->text.size();
  return adopt(object);
}

FfiValue FfiValue::of_array(std::vector<FfiValue> items) {
  auto* array = new_object<FfiArrayObject>(kFfiArray);
  array->items = std::move(items);
  array->all_items = array->items.size();
  for (const FfiValue& item : array->items) {
    const FfiArrayObject* inner = as_array(item);
    if (inner == nullptr) continue;
    array->all_items += inner->all_items;
    array->depth = std::max(array->depth, inner->depth + 1);
  }
  array->data = array->items.data();
  array->size = static_cast<std::int64_t>(array->items.size());
  array->capacity = array->size;
  return adopt(array);
}

FfiValue make_tensor(std::span<const std::int64_t> shape, DLDataType dtype, void* data,
                     std::shared_ptr<void> owner) {
  auto* object = new_object<FfiTensorObject>(kFfiTensor);
  const std::size_t ndim = shape.size();
  object->dims_and_strides.assign(shape.begin(), shape.end());
  object->dims_and_strides.resize(2 * ndim);
  std::int64_t stride = 1;
  for (std::size_t i = ndim; i-- > 0;) {
    object->dims_and_strides[ndim + i] = stride;
    stride *= shape[i];
  }
  object->tensor.data = data;
  object->tensor.device = {kDLCPU, 0};
  object->tensor.ndim = static_cast<std::int32_t>(ndim);
  object->tensor.dtype = dtype;
  object->tensor.shape = object->dims_and_strides.data();
  object->tensor.strides = object->dims_and_strides.data() + ndim;
  object->owner = std::move(owner);
  return FfiValue::adopt(object);
}

FfiValue make_storage(std::shared_ptr<void> owner, std::size_t bytes, std::size_t number) {
  auto* storage = new_object<FfiStorageObject>(kFfiStorage);
  storage->data = owner.get();
  storage->owner = std::move(owner);
  storage->bytes = bytes;
  storage->number = number;
  return FfiValue::adopt(storage);
}

FfiValue make_cache(FfiValue data) {
  auto* cache = new_object<FfiCacheObject>(kFfiCache);
  cache->data = std::move(data);
  return FfiValue::adopt(cache);
}

FfiValue make_paged_cache(std::shared_ptr<PagedCache> cache) {
  auto* object = new_object<FfiPagedCacheObject>(kFfiPagedCache);
  object->cache = std::move(cache);
  return FfiValue::adopt(object);
}

FfiValue make_function(FfiFunction safe_call, std::string name) {
  auto* function = new_object<FfiFunctionObject>(kFfiFunction);
  function->safe_call = safe_call;
  function->name = std::move(name);
  return FfiValue::adopt(function);
}

FfiTensorObject* as_tensor(const FfiAny& value) {
  return value.type == kFfiTensor ? static_cast<FfiTensorObject*>(value.object) : nullptr;
}
const FfiShapeObject* as_shape(const FfiAny& value) {
  return value.type == kFfiShape ? static_cast<const FfiShapeObject*>(value.object) : nullptr;
}
const FfiArrayObject* as_array(const FfiAny& value) {
  return value.type == kFfiArray ? static_cast<const FfiArrayObject*>(value.object) : nullptr;
}
FfiStorageObject* as_storage(const FfiAny& value) {
  return value.type == kFfiStorage ? static_cast<FfiStorageObject*>(value.object) : nullptr;
}
FfiFunctionObject* as_function(const FfiAny& value) {
  return value.type == kFfiFunction ? static_cast<FfiFunctionObject*>(value.object) : nullptr;
}
FfiCacheObject* as_cache(const FfiAny& value) {
  return value.type == kFfiCache ? static_cast<FfiCacheObject*>(value.object) : nullptr;
}
PagedCache* as_paged_cache(const FfiAny& value) {
  return value.type == kFfiPagedCache ? static_cast<FfiPagedCacheObject*>(value.object)->cache.get()
                                      : nullptr;
}

std::string text_of(const FfiAny& value) {
  if (value.type == kFfiSmallText) return {value.text, value.text_bytes};
  if (value.type == kFfiRawText) return static_cast<const char*>(value.pointer);
  if (value.type == kFfiText) {
    const auto* object = static_cast<const FfiTextObject*>(value.object);
    return {object->data, object->size};
  }
  return {};
}

std::string_view ffi_type_name(const FfiAny& value) {
  switch (value.type) {
    case kFfiNone:
      return "nothing";
    case kFfiInt:
      return "an integer";
    case kFfiBool:
      return "a bool";
    case kFfiFloat:
      return "a number";
    case kFfiDataType:
      return "an element type";
    case kFfiSmallText:
    case kFfiRawText:
    case kFfiText:
      return "a text";
    case kFfiFunction:
      return "a function";
    case kFfiShape:
      return "a shape";
    case kFfiTensor:
    case kFfiTensorPointer:
      return "a tensor";
    case kFfiArray:
      return "a tuple";
    case kFfiStorage:
      return "memory";
    case kFfiCache:
      return "a cache of attention";
    case kFfiPagedCache:
      return "a paged cache of attention";
    default:
      return "another object";
  }
}

}  // namespace run_model
