// Values of tensors: filled in for runs whose result does not matter, summed up, and told apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <run_model/tensor.h>

namespace run_model {

inline constexpr std::uint64_t kFnvStart = 0xcbf29ce484222325U;

// FNV-1a with 64 bits (RFC 9923); `hash` goes on from earlier bytes.
inline std::uint64_t fnv_1a(std::string_view bytes, std::uint64_t hash = kFnvStart) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

enum class FillMode { kZeros, kOnes, kRandom };

// "zeros", "ones" or "random", as tvmc spells them. Throws Error(kUsage).
FillMode parse_fill_mode(const std::string& name);

// Random values depend on the seed and the input's name only, and are the same on every machine.
// With z the numbers of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", 2014), begun at seed + FNV-1a-64(name), one for each element in row-major order:
//   float32, float64     (z >> 40) / 2^24: 0 to 1, 1 excluded
//   float16, bfloat16    (z >> 53) / 2^11, (z >> 56) / 2^8: likewise, exact in the type
//   int8, uint8          z >> 56 as a byte: the type's whole range
//   bool, wider integers z >> 63: 0 or 1, since these mostly are indices, lengths and masks, and
//                        larger ones could point beyond a table's end
// Throws Error(kMismatch) for an element type that is none of these.
void fill_tensor(const Tensor& tensor, FillMode mode, std::uint64_t seed, std::string_view name);

// The generator: moves `state` on and gives the next number.
std::uint64_t split_mix_64(std::uint64_t& state);

struct ValueRange {
  double min = 0.0;
  double max = 0.0;
  double mean = 0.0;
};

// All zero for a tensor without elements. Throws Error(kModel) when a value is NaN or infinite;
// `what` begins the sentence ("the model's output_0"). Throws Error(kMismatch) as to_doubles does.
ValueRange finite_range(const Tensor& tensor, const std::string& what);

}  // namespace run_model
