// A tensor's values in three numbers.
#pragma once

#include <cstddef>
#include <string>

#include <run_model/tensor.h>

namespace run_model {

struct ValueRange {
  double min = 0.0;
  double max = 0.0;
  double mean = 0.0;
};

// All zero for a tensor without elements. Throws Error(kModel) when a value is NaN or infinite;
// `what` begins the sentence ("the model's output_0"). Throws Error(kMismatch) as to_doubles does.
ValueRange finite_range(const Tensor& tensor, const std::string& what);

}  // namespace run_model
