// The elements of a tensor of any type as doubles, for statistics and comparisons.
#pragma once

#include <vector>

#include <run_model/tensor.h>

namespace run_model {

// In row-major order; bool as 0 and 1. Exact but for integers beyond 2^53. Throws Error(kMismatch)
// for an element type that is none of float16, bfloat16, float32, float64, bool, and integers of 8
// to 64 bits.
std::vector<double> to_doubles(const Tensor& tensor);

}  // namespace run_model
