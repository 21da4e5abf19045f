#include "runtime/relax/functions/sort_keys.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <run_model/dtype.h>
#include "runtime/relax/ffi_abi.h"

namespace run_model {
namespace {

template <typename Key>
struct Ranked {
  Key key;
  std::int64_t place;
};

// Of two numbers the larger one becomes the smaller one.
double reversed(double key) { return -key; }
std::int64_t reversed(std::int64_t key) { return ~key; }

// Whether `select`ed or all in order, NaN lies where TVM's functions leave it: they take the same
// steps with the same comparison (TVM's contrib/sort.cc).
template <typename Key>
std::vector<std::int64_t> places_in_order(const Key* keys, std::int64_t stride, std::int64_t length,
                                          std::int64_t count, bool ascending, bool select) {
  const auto ranked = [&](std::int64_t place) {
    const Key key = keys[place * stride];
    return Ranked<Key>{ascending ? key : reversed(key), place};
  };
  const auto comes_first = [](const Ranked<Key>& a, const Ranked<Key>& b) {
    return a.key == b.key ? a.place < b.place : a.key < b.key;
  };
  std::vector<Ranked<Key>> kept;
  kept.reserve(static_cast<std::size_t>(count) + 1);
  for (std::int64_t place = 0; place < count; ++place) kept.push_back(ranked(place));
  if (select) std::make_heap(kept.begin(), kept.end(), comes_first);
  for (std::int64_t place = count; select && place < length; ++place) {
    const Ranked<Key> next = ranked(place);
    if (kept.empty() || !comes_first(next, kept.front())) continue;
    kept.push_back(next);
    std::push_heap(kept.begin(), kept.end(), comes_first);
    std::pop_heap(kept.begin(), kept.end(), comes_first);
    kept.pop_back();
  }
  std::stable_sort(kept.begin(), kept.end(), comes_first);
  std::vector<std::int64_t> places;
  places.reserve(kept.size());
  for (const Ranked<Key>& each : kept) places.push_back(each.place);
  return places;
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
  return places(start, stride, length, length, ascending, false);
}

std::vector<std::int64_t> SortKeys::first(std::int64_t start, std::int64_t stride,
                                          std::int64_t length, std::int64_t count,
                                          bool ascending) const {
  return places(start, stride, length, std::min(count, length), ascending, true);
}

std::vector<std::int64_t> SortKeys::places(std::int64_t start, std::int64_t stride,
                                           std::int64_t length, std::int64_t count, bool ascending,
                                           bool select) const {
  return integers_.empty()
             ? places_in_order(reals_.data() + start, stride, length, count, ascending, select)
             : places_in_order(integers_.data() + start, stride, length, count, ascending, select);
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
