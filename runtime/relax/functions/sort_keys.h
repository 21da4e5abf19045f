// Elements of tensors in the order of their values, whatever their type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <run_model/tensor.h>

namespace run_model {

// A tensor's elements as what they are sorted by: all types as one of two, each of which holds them
// exactly, because sorting is much code.
class SortKeys {
 public:
  // Throws Error(kMismatch) for elements that are no numbers.
  explicit SortKeys(const Tensor& tensor);

  // The order in which `length` elements are sorted that are `stride` apart, as numbers among them;
  // equal ones stay in theirs. TVM's own comparison is the plain one: NaN is less or greater than
  // nothing.
  std::vector<std::int64_t> order(std::int64_t start, std::int64_t stride, std::int64_t length,
                                  bool ascending) const;

  // The first `count` of these, in time that grows little with their number.
  std::vector<std::int64_t> first(std::int64_t start, std::int64_t stride, std::int64_t length,
                                  std::int64_t count, bool ascending) const;

  // All as integers: zeros alike, and NaN the largest, alike too.
  std::vector<std::int64_t> integers() &&;

  // Whether an element is NaN.
  bool is_nan(std::int64_t element) const;

 private:
  std::vector<std::int64_t> places(std::int64_t start, std::int64_t stride, std::int64_t length,
                                   std::int64_t count, bool ascending, bool select) const;

  std::vector<double> reals_;
  std::vector<std::int64_t> integers_;  // where the others are none
};

}  // namespace run_model
