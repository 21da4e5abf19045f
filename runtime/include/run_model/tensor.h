// A dense, row-major tensor in CPU memory with shared ownership of its bytes.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <run_model/dtype.h>

namespace run_model {

// TVM up to 0.9 aligned its storage to 128 bytes and later releases to 64; compiled code relies on
// the figure of its own release, so 128 suits all of them.
inline constexpr std::size_t kTensorAlignment = 128;

bool is_aligned(const void* data, std::size_t alignment = kTensorAlignment);

// Copies of a Tensor share the same bytes (like a shared_ptr); clone() makes an independent one.
// What needs bytes of a tensor that has none (not defined()) throws Error(kMismatch).
class Tensor {
 public:
  Tensor() = default;

  // Uninitialised storage aligned to kTensorAlignment. Throws Error(kFormat) for an impossible
  // shape, std::bad_alloc when there is no memory.
  static Tensor empty(std::vector<std::int64_t> shape, DLDataType dtype);

  // A view of memory that `owner` keeps alive (null: the caller keeps it alive longer than any
  // copy).
  static Tensor view(void* data, std::vector<std::int64_t> shape, DLDataType dtype,
                     std::shared_ptr<void> owner);

  // Takes over a tensor of another framework; its deleter is called when the last copy goes. It
  // must be on the CPU and dense in row-major order, else Error(kMismatch), and the caller keeps
  // it.
  static Tensor from_dlpack(DLManagedTensor* managed);

  // Hands the bytes to another framework without a copy. The receiver calls the deleter.
  DLManagedTensor* to_dlpack() const;

  // False for a default-constructed Tensor, and a view of null.
  bool defined() const { return data_ != nullptr; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  DLDataType dtype() const { return dtype_; }
  std::int64_t size() const { return element_count(shape_); }
  std::size_t nbytes() const { return tensor_bytes(shape_, dtype_); }
  bool aligned(std::size_t alignment = kTensorAlignment) const {
    return is_aligned(data_, alignment);
  }

  void* data() const { return data_; }

  // The elements as T. Throws Error(kMismatch) when T is not this tensor's element type in C++
  // (float16 and bfloat16 are read as uint16_t, bool as uint8_t).
  template <typename T>
  std::span<T> elements() const {
    check_elements(TypeOf<T>::code, sizeof(T));
    return {static_cast<T*>(data_), static_cast<std::size_t>(size())};
  }

  Tensor clone() const;

  // The same bytes under another shape with as many elements, else Error(kMismatch).
  Tensor reshape(std::vector<std::int64_t> shape) const;

  // The C struct that compiled functions take. Valid as long as this Tensor object is.
  DLTensor dl_tensor() const;

 private:
  template <typename T>
  struct TypeOf {
    static constexpr std::uint8_t code = std::is_floating_point_v<T> ? kDLFloat
                                         : std::is_signed_v<T>       ? kDLInt
                                                                     : kDLUInt;
  };
  void check_elements(std::uint8_t code, std::size_t bytes) const;

  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
  std::vector<std::int64_t> shape_;
  DLDataType dtype_{kDLFloat, 32, 1};
};

// The elements of any type as doubles, for statistics and comparisons. In row-major order; bool as
// 0 and 1. Exact but for integers beyond 2^53. Throws Error(kMismatch) for an element type that is
// none of float16, bfloat16, float32, float64, bool, and integers of 8 to 64 bits.
std::vector<double> to_doubles(const Tensor& tensor);

}  // namespace run_model
