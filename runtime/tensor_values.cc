#include "runtime/tensor_values.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <run_model/error.h>
#include "runtime/float16.h"

namespace run_model {
namespace {

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

std::vector<double> to_doubles(const Tensor& tensor) {
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
