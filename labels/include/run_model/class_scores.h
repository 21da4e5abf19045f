// The output of a classifier as numbers, whatever its element type and shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <run_model/tensor.h>

namespace run_model {

// Integer outputs stand for scale * (stored - zero_point). Floats are taken as they are.
struct Quantization {
  double scale = 1.0;
  std::int64_t zero_point = 0;
};

// The number of classes of an output of shape [N], [1, N], [1, N, 1, 1] and so on: at most one
// dimension is not 1. Throws Error(kMismatch) for another shape, such as a batch of several
// pictures, and for an output without any element.
std::size_t class_count(const std::vector<std::int64_t>& shape);

// One score for each class, from float16, float32, float64, or integers of 8 to 64 bits. Throws
// Error(kMismatch) for another shape or type, Error(kModel) when one of them is NaN or infinite.
std::vector<double> class_scores(const Tensor& output, const Quantization& quantization = {});

// Whether the scores are probabilities already: none outside [0, 1], and a sum of 1 ± 1e-3.
bool is_distribution(std::span<const double> scores);

}  // namespace run_model
