#include "run_model/run_model/tensor_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include <run_model/error.h>
#include <run_model/tensor.h>
#include "base/text.h"
#include "runtime/float16.h"

namespace run_model {
namespace {

constexpr int key_of(int code, int bits) { return code << 8 | bits; }

// The bits of the element that stands for `number`.
std::uint64_t random_bits(DLDataType type, std::uint64_t number) {
  const auto share = [&](int bits) {
    return static_cast<double>(number >> (64 - bits)) / static_cast<double>(1U << bits);
  };
  switch (key_of(type.code, type.bits)) {
    case key_of(kDLFloat, 64):
      return std::bit_cast<std::uint64_t>(share(24));
    case key_of(kDLFloat, 32):
      return std::bit_cast<std::uint32_t>(static_cast<float>(share(24)));
    case key_of(kDLFloat, 16):
      return float_to_half(static_cast<float>(share(11)));
    case key_of(kDLBfloat, 16):
      return std::bit_cast<std::uint32_t>(static_cast<float>(share(8))) >> 16;
    case key_of(kDLInt, 8):
    case key_of(kDLUInt, 8):
      return number >> 56;
    default:
      return number >> 63;
  }
}

std::uint64_t one_bits(DLDataType type) {
  switch (key_of(type.code, type.bits)) {
    case key_of(kDLFloat, 64):
      return std::bit_cast<std::uint64_t>(1.0);
    case key_of(kDLFloat, 32):
      return std::bit_cast<std::uint32_t>(1.0F);
    case key_of(kDLFloat, 16):
      return float_to_half(1.0F);
    case key_of(kDLBfloat, 16):
      return std::bit_cast<std::uint32_t>(1.0F) >> 16;
    default:
      return 1;
  }
}

bool can_fill(DLDataType type) {
  if (type.lanes != 1) return false;
  switch (type.code) {
    case kDLFloat:
      return type.bits == 16 || type.bits == 32 || type.bits == 64;
    case kDLBfloat:
      return type.bits == 16;
    case kDLUInt:
      if (type.bits == 1) return true;
      [[fallthrough]];
    case kDLInt:
      return type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
    default:
      return false;
  }
}

}  // namespace

FillMode parse_fill_mode(const std::string& name) {
  if (name == "zeros") return FillMode::kZeros;
  if (name == "ones") return FillMode::kOnes;
  if (name == "random") return FillMode::kRandom;
  throw Error(ErrorKind::kUsage,
              "--fill-mode is " + in_quotes(name) + ", expected zeros, ones or random");
}

std::uint64_t split_mix_64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

void fill_tensor(const Tensor& tensor, FillMode mode, std::uint64_t seed, std::string_view name) {
  const DLDataType type = tensor.dtype();
  if (!can_fill(type)) {
    throw Error(
        ErrorKind::kMismatch,
        "the input " + in_quotes(name) + " is of " + dtype_name(type) + ", which cannot be filled",
        "give its values with --inputs");
  }
  auto* bytes = static_cast<std::byte*>(tensor.data());
  if (mode == FillMode::kZeros) {
    if (tensor.nbytes() > 0) std::memset(bytes, 0, tensor.nbytes());
    return;
  }
  const std::size_t width = dtype_bytes(type);
  std::uint64_t state = seed + fnv_1a(name);
  for (std::size_t offset = 0; offset < tensor.nbytes(); offset += width) {
    const std::uint64_t bits =
        mode == FillMode::kOnes ? one_bits(type) : random_bits(type, split_mix_64(state));
    // The low bytes come first on all supported machines.
    std::memcpy(bytes + offset, &bits, width);
  }
}

ValueRange finite_range(const Tensor& tensor, const std::string& what) {
  const std::vector<double> values = to_doubles(tensor);
  const auto bad = std::count_if(values.begin(), values.end(),
                                 [](double value) { return !std::isfinite(value); });
  if (bad > 0) {
    throw Error(ErrorKind::kModel,
                what + " holds NaN or infinity in " + std::to_string(bad) + " of " +
                    std::to_string(values.size()) + " values",
                "check that the preprocessing and the parameters are the model's own");
  }
  if (values.empty()) return {};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {*least, *greatest, sum / static_cast<double>(values.size())};
}

}  // namespace run_model
