#include <bit>
#include <cstdint>
#include <cstring>

#include <run_model/error.h>
#include "rpc/device_buffer.h"
#include "rpc/functions/builtin.h"
#include "runtime/float16.h"

namespace run_model::rpc {
namespace {

// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled").
class Random {
 public:
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1D;
  }

 private:
  std::uint64_t state_ = 0x9E3779B97F4A7C15;  // the same in every session
};

// Codes of TVM 0.18 that DLPack uses for other types, or not at all.
constexpr std::uint8_t kE4M3Float = 6;
constexpr std::uint8_t kE5M2Float = 7;

// Values between 1 and 10, as TVM's own function gives for floats: none is zero, denormal, infinite
// or large, and integers stay within any table that they could be indices of and that has 10 rows.
float float_of(std::uint64_t random) {
  return 1.0F + static_cast<float>(random >> 40) * (9.0F / (1 << 24));
}
std::uint64_t integer_of(std::uint64_t random) {
  return 1 + (random >> 32) * 9 / (std::uint64_t{1} << 32);
}

template <typename T, typename Make>
void fill_with(const Tensor& tensor, Random& random, Make make) {
  auto* out = static_cast<unsigned char*>(tensor.data());
  for (std::size_t left = tensor.nbytes() / sizeof(T); left > 0; --left, out += sizeof(T)) {
    const T value = static_cast<T>(make(random.next()));
    std::memcpy(out, &value, sizeof(T));
  }
}

[[noreturn]] void refuse(DLDataType dtype) {
  throw Error(ErrorKind::kMismatch, "a tensor of element type " + dtype_name(dtype) +
                                        " cannot be filled with random numbers");
}

void fill_floats(const Tensor& tensor, Random& random) {
  switch (tensor.dtype().bits) {
    case 16:
      return fill_with<std::uint16_t>(tensor, random,
                                      [](std::uint64_t r) { return float_to_half(float_of(r)); });
    case 32:
      return fill_with<float>(tensor, random, float_of);
    case 64:
      return fill_with<double>(tensor, random, float_of);
    default:
      refuse(tensor.dtype());
  }
}

void fill_integers(const Tensor& tensor, Random& random) {
  switch (tensor.dtype().bits) {
    case 1:
      return fill_with<std::uint8_t>(tensor, random, [](std::uint64_t) { return 1; });
    case 4:  // two to a byte, none of them zero or negative
      return fill_with<std::uint8_t>(
          tensor, random, [](std::uint64_t r) { return (1 + r % 7) << 4 | (1 + (r >> 32) % 7); });
    case 8:
      return fill_with<std::uint8_t>(tensor, random, integer_of);
    case 16:
      return fill_with<std::uint16_t>(tensor, random, integer_of);
    case 32:
      return fill_with<std::uint32_t>(tensor, random, integer_of);
    case 64:
      return fill_with<std::uint64_t>(tensor, random, integer_of);
    default:
      refuse(tensor.dtype());
  }
}

void fill(const Tensor& tensor, Random& random) {
  const DLDataType dtype = tensor.dtype();
  if (dtype.code == kDLFloat) return fill_floats(tensor, random);
  if (dtype.code == kDLInt || dtype.code == kDLUInt) return fill_integers(tensor, random);
  if (dtype.code == kDLBfloat && dtype.bits == 16) {
    return fill_with<std::uint16_t>(tensor, random, [](std::uint64_t r) {
      return std::bit_cast<std::uint32_t>(float_of(r)) >> 16;
    });
  }
  if ((dtype.code == kE4M3Float || dtype.code == kE5M2Float) && dtype.bits == 8) {
    // From 1 to 1.875 with three bits of mantissa, from 0.5 to 1.75 with two.
    return fill_with<std::uint8_t>(tensor, random, [](std::uint64_t r) { return 0x38 + r % 8; });
  }
  refuse(dtype);
}

}  // namespace

void add_random_fill(Registry& registry) {
  const auto random = std::make_shared<Random>();
  const auto fill_argument = [random](const Arguments& arguments) -> Value {
    arguments.check_count(1, 1);
    const TensorArgument& argument = arguments.any_tensor(0);
    if (argument.device_memory == nullptr) {
      fill(argument.tensor, *random);
      return {};
    }
    const Tensor values = Tensor::empty(argument.tensor.shape(), argument.tensor.dtype());
    fill(values, *random);
    copy_between({values}, argument);
    return {};
  };
  registry.add("tvm.contrib.random.random_fill", fill_argument);
  registry.add("tvm.contrib.random.random_fill_for_measure", fill_argument);
}

}  // namespace run_model::rpc
