#include <run_model/tensor.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>

#include <run_model/error.h>
#include "runtime/dlpack_form.h"
#include "runtime/float16.h"

namespace run_model {
namespace {

struct AlignedDelete {
  void operator()(void* data) const { ::operator delete(data, std::align_val_t{kTensorAlignment}); }
};

// What a DLManagedTensor made by to_dlpack owns.
struct DlpackContext {
  Tensor tensor;
  DLManagedTensor managed{};
};

// A tensor that was default-constructed has the shape of a number, and no memory for it.
void require_memory(const Tensor& tensor) {
  if (!tensor.defined() && tensor.nbytes() > 0) {
    throw Error(ErrorKind::kMismatch, "an empty tensor was given, which has no elements");
  }
}

template <typename T, typename Convert>
std::vector<double> convert(const Tensor& tensor, Convert to_number) {
  const auto* first = static_cast<const T*>(tensor.data());
  std::vector<double> values(static_cast<std::size_t>(tensor.size()));
  std::transform(first, first + values.size(), values.begin(), to_number);
  return values;
}

template <typename T>
std::vector<double> convert(const Tensor& tensor) {
  return convert<T>(tensor, [](T value) { return static_cast<double>(value); });
}

// bfloat16 is the upper half of a float32.
double bfloat16_to_double(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr int key_of(int code, int bits) { return code << 8 | bits; }

}  // namespace

bool is_aligned(const void* data, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

Tensor Tensor::empty(std::vector<std::int64_t> shape, DLDataType dtype) {
  std::size_t bytes = tensor_bytes(shape, dtype);
  void* data = ::operator new(bytes == 0 ? 1 : bytes, std::align_val_t{kTensorAlignment});
  return view(data, std::move(shape), dtype, std::shared_ptr<void>(data, AlignedDelete{}));
}

Tensor Tensor::view(void* data, std::vector<std::int64_t> shape, DLDataType dtype,
                    std::shared_ptr<void> owner) {
  tensor_bytes(shape, dtype);  // throws for a shape that cannot be
  Tensor tensor;
  tensor.owner_ = std::move(owner);
  tensor.data_ = data;
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = dtype;
  return tensor;
}

Tensor Tensor::from_dlpack(DLManagedTensor* managed) {
  const DLTensor& source = managed->dl_tensor;
  if (source.device.device_type != kDLCPU) {
    throw Error(ErrorKind::kMismatch, "a tensor on device type " +
                                          std::to_string(source.device.device_type) +
                                          " was given, expected one in CPU memory");
  }
  std::vector<std::int64_t> shape = dense_shape(source);
  // From here on nothing but the shared_ptr's own allocation can fail, and it calls the deleter
  // then.
  std::shared_ptr<void> owner(managed, [](DLManagedTensor* m) {
    if (m->deleter != nullptr) m->deleter(m);
  });
  return view(static_cast<char*>(source.data) + source.byte_offset, std::move(shape), source.dtype,
              std::move(owner));
}

DLManagedTensor* Tensor::to_dlpack() const {
  require_memory(*this);
  auto* context = new DlpackContext{*this};
  context->managed.dl_tensor = context->tensor.dl_tensor();
  context->managed.manager_ctx = context;
  context->managed.deleter = [](DLManagedTensor* managed) {
    delete static_cast<DlpackContext*>(managed->manager_ctx);
  };
  return &context->managed;
}

Tensor Tensor::clone() const {
  require_memory(*this);
  Tensor copy = empty(shape_, dtype_);
  if (nbytes() > 0) std::memcpy(copy.data_, data_, nbytes());
  return copy;
}

Tensor Tensor::reshape(std::vector<std::int64_t> shape) const {
  if (element_count(shape) != size()) {
    throw Error(ErrorKind::kMismatch, "a tensor of shape " + shape_name(shape_) +
                                          " cannot take the shape " + shape_name(shape));
  }
  return view(data_, std::move(shape), dtype_, owner_);
}

DLTensor Tensor::dl_tensor() const {
  DLTensor tensor{};
  tensor.data = data_;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int>(shape_.size());
  tensor.dtype = dtype_;
  tensor.shape = const_cast<std::int64_t*>(shape_.data());
  return tensor;
}

void Tensor::check_elements(std::uint8_t code, std::size_t bytes) const {
  require_memory(*this);
  bool raw = code == kDLUInt && (dtype_.code == kDLBfloat || dtype_.code == kDLFloat) && bytes == 2;
  if (dtype_.lanes != 1 || bytes != dtype_bytes(dtype_) || (dtype_.code != code && !raw)) {
    throw Error(ErrorKind::kMismatch, "the tensor's elements are " + dtype_name(dtype_) +
                                          ", not the type that they were asked for as");
  }
}

std::vector<double> to_doubles(const Tensor& tensor) {
  require_memory(tensor);
  const DLDataType type = tensor.dtype();
  switch (type.lanes == 1 ? key_of(type.code, type.bits) : -1) {
    case key_of(kDLFloat, 16):
      return convert<std::uint16_t>(tensor, half_to_float);
    case key_of(kDLBfloat, 16):
      return convert<std::uint16_t>(tensor, bfloat16_to_double);
    case key_of(kDLFloat, 32):
      return convert<float>(tensor);
    case key_of(kDLFloat, 64):
      return convert<double>(tensor);
    case key_of(kDLInt, 8):
      return convert<std::int8_t>(tensor);
    case key_of(kDLInt, 16):
      return convert<std::int16_t>(tensor);
    case key_of(kDLInt, 32):
      return convert<std::int32_t>(tensor);
    case key_of(kDLInt, 64):
      return convert<std::int64_t>(tensor);
    case key_of(kDLUInt, 1):
      return convert<std::uint8_t>(tensor,
                                   [](std::uint8_t value) { return value != 0 ? 1.0 : 0.0; });
    case key_of(kDLUInt, 8):
      return convert<std::uint8_t>(tensor);
    case key_of(kDLUInt, 16):
      return convert<std::uint16_t>(tensor);
    case key_of(kDLUInt, 32):
      return convert<std::uint32_t>(tensor);
    case key_of(kDLUInt, 64):
      return convert<std::uint64_t>(tensor);
    default:
      throw Error(ErrorKind::kMismatch,
                  "a tensor of " + dtype_name(type) + " cannot be read as numbers");
  }
}

}  // namespace run_model
