#include "run_model/run_model/value_range.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <run_model/error.h>
#include <run_model/tensor.h>

namespace run_model {

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
