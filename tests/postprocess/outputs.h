// Outputs of networks that there are not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <run_model/postprocess.h>

namespace run_model {

inline NetworkOutput output(const std::string& name, std::vector<std::int64_t> shape,
                            const std::vector<float>& values) {
  NetworkOutput result;
  result.name = name;
  result.tensor = Tensor::empty(std::move(shape), DLDataType{kDLFloat, 32, 1});
  std::copy(values.begin(), values.end(), result.tensor.elements<float>().begin());
  return result;
}

}  // namespace run_model
