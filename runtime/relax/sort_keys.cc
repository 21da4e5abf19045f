#include "runtime/relax/sort_keys.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include <run_model/dtype.h>
#include "runtime/relax/ffi_abi.h"

namespace run_model {
namespace {

template <typename Key>
void sort_by(const Key* keys, std::int64_t stride, bool ascending,
             std::vector<std::int64_t>& order) {
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return ascending ? keys[a * stride] < keys[b * stride] : keys[b * stride] < keys[a * stride];
  });
}

}  // namespace

SortKeys::SortKeys(const Tensor& tensor) {
  const DLDataType dtype = tensor.dtype();
  if (dtype.bits != 64 || dtype.lanes != 1 || dtype.code == kDLFloat) {
    const bool is_bool = same_dtype(dtype, kFfiBoolType);
    reals_ = to_doubles(
        is_bool ? Tensor::view(tensor.data(), tensor.shape(), kPlainBoolType, nullptr) : tensor);
    return;
  }
  integers_.resize(static_cast<std::size_t>(tensor.size()));
  if (!integers_.empty()) std::memcpy(integers_.data(), tensor.data(), tensor.nbytes());
  if (dtype.code != kDLUInt) return;
  for (std::int64_t& key : integers_) key ^= std::numeric_limits<std::int64_t>::min();
}

std::vector<std::int64_t> SortKeys::order(std::int64_t start, std::int64_t stride,
                                          std::int64_t length, bool ascending) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(length));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (integers_.empty()) {
    sort_by(reals_.data() + start, stride, ascending, order);
  } else {
    sort_by(integers_.data() + start, stride, ascending, order);
  }
  return order;
}

std::vector<std::int64_t> SortKeys::integers() && {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  for (const double real : reals_) {
    const auto bits = std::bit_cast<std::int64_t>(real == 0 ? 0.0 : real);
    integers_.push_back(std::isnan(real) ? kLargest : bits < 0 ? bits ^ kLargest : bits);
  }
  return std::move(integers_);
}

bool SortKeys::is_nan(std::int64_t element) const {
  return integers_.empty() && std::isnan(reals_[static_cast<std::size_t>(element)]);
}

}  // namespace run_model
