#include <run_model/tensor.h>

#include <cstring>
#include <new>

#include <run_model/error.h>

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

bool is_dense(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    // The stride of a dimension of one element is never used.
    if (tensor.shape[i] > 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

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
  if (source.ndim < 0 || (source.ndim > 0 && source.shape == nullptr)) {
    throw Error(ErrorKind::kMismatch, "a DLPack tensor without a shape was given");
  }
  if (!is_dense(source)) {
    throw Error(ErrorKind::kMismatch, "a strided tensor was given, expected a dense row-major one",
                "make it contiguous first");
  }
  std::vector<std::int64_t> shape(source.shape, source.shape + source.ndim);
  tensor_bytes(shape, source.dtype);
  // From here on nothing but the shared_ptr's own allocation can fail, and it calls the deleter
  // then.
  std::shared_ptr<void> owner(managed, [](DLManagedTensor* m) {
    if (m->deleter != nullptr) m->deleter(m);
  });
  return view(static_cast<char*>(source.data) + source.byte_offset, std::move(shape), source.dtype,
              std::move(owner));
}

DLManagedTensor* Tensor::to_dlpack() const {
  auto* context = new DlpackContext{*this};
  context->managed.dl_tensor = context->tensor.dl_tensor();
  context->managed.manager_ctx = context;
  context->managed.deleter = [](DLManagedTensor* managed) {
    delete static_cast<DlpackContext*>(managed->manager_ctx);
  };
  return &context->managed;
}

Tensor Tensor::clone() const {
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

void Tensor::check_element_type(std::uint8_t code, std::size_t bytes) const {
  bool raw = code == kDLUInt && (dtype_.code == kDLBfloat || dtype_.code == kDLFloat) && bytes == 2;
  if (dtype_.lanes != 1 || bytes != dtype_bytes(dtype_) || (dtype_.code != code && !raw)) {
    throw Error(ErrorKind::kMismatch, "the tensor's elements are " + dtype_name(dtype_) +
                                          ", not the type that they were asked for as");
  }
}

}  // namespace run_model
