// The functions that TVM registers in Python for operators whose result's shape depends on values.
#include <algorithm>
#include <compare>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <run_model/dtype.h>
#include "base/text.h"
#include "runtime/relax/functions/builtins.h"
#include "runtime/relax/functions/sort_keys.h"

namespace run_model {
namespace {

constexpr DLDataType kIndexType{kDLInt, 64, 1};

FfiValue tensor_of_indices(RelaxCall& call, const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& values) {
  FfiValue result = call.machine.allocate_tensor(shape, kIndexType);
  if (!values.empty()) {
    std::memcpy(as_tensor(result)->data(), values.data(), values.size() * sizeof(std::int64_t));
  }
  return result;
}

// (shape): its numbers as a tensor.
void shape_to_tensor(RelaxCall& call) {
  const std::span<const std::int64_t> shape = call.shape(0);
  call.result = tensor_of_indices(call, {static_cast<std::int64_t>(shape.size())},
                                  {shape.begin(), shape.end()});
}

// Whether any bit of an element is set, but for the sign of a floating-point zero.
bool is_zero(const unsigned char* element, DLDataType dtype, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    const bool top = i + 1 == bytes && (dtype.code == kDLFloat || dtype.code == kDLBfloat);
    if ((element[i] & (top ? 0x7F : 0xFF)) != 0) return false;
  }
  return true;
}

// (tensor): the places of its elements that are not zero, as [dimensions, number].
void nonzero(RelaxCall& call) {
  const FfiTensorObject& tensor = call.tensor(0);
  const auto* data = static_cast<const unsigned char*>(call.values(0));
  std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  if (shape.empty()) shape.push_back(1);
  const std::size_t bytes = dtype_bytes(tensor.tensor.dtype);
  const std::int64_t count = element_count(shape);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_zero(data + static_cast<std::size_t>(i) * bytes, tensor.tensor.dtype, bytes)) {
      places.push_back(i);
    }
  }
  std::vector<std::int64_t> indices(shape.size() * places.size());
  for (std::size_t k = 0; k < places.size(); ++k) {
    std::int64_t rest = places[k];
    for (std::size_t d = shape.size(); d-- > 0;) {
      indices[d * places.size() + k] = rest % shape[d];
      rest /= shape[d];
    }
  }
  call.result = tensor_of_indices(
      call, {static_cast<std::int64_t>(shape.size()), static_cast<std::int64_t>(places.size())},
      indices);
}

// A tensor as the rows that are told apart along an axis: row i is the i-th slice, the elements of
// which lie in `outer` runs of `inner`. Without an axis, each element is a row.
struct Rows {
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;

  Rows(std::span<const std::int64_t> shape, std::optional<std::size_t> axis) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t& part = !axis || i == *axis ? count : i < *axis ? outer : inner;
      part *= shape[i];
    }
  }

  std::int64_t start(std::int64_t run, std::int64_t row, std::int64_t rows) const {
    return (run * rows + row) * inner;
  }
};

// The distinct rows of a tensor: where each is first, how often it is there, and which of them each
// row is.
struct Distinct {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> inverse;
  std::vector<std::int64_t> counts;
};

// NumPy's order: by the elements one after the other, NaN last. It takes one NaN for the other
// where elements are told apart, but not in rows.
class RowOrder {
 public:
  RowOrder(const Tensor& tensor, const Rows& rows, bool by_rows)
      : rows_(rows), has_nan_(static_cast<std::size_t>(rows.count)) {
    SortKeys keys(tensor);
    if (by_rows) find_nan(keys);
    integers_ = std::move(keys).integers();
  }

  std::strong_ordering compare(std::int64_t a, std::int64_t b) const {
    for (std::int64_t run = 0; run < rows_.outer; ++run) {
      const std::int64_t* left = integers_.data() + rows_.start(run, a, rows_.count);
      const std::int64_t* right = integers_.data() + rows_.start(run, b, rows_.count);
      const std::strong_ordering order = std::lexicographical_compare_three_way(
          left, left + rows_.inner, right, right + rows_.inner);
      if (order != 0) return order;
    }
    return std::strong_ordering::equal;
  }

  bool same(std::int64_t a, std::int64_t b) const {
    return compare(a, b) == 0 && !has_nan_[static_cast<std::size_t>(a)];
  }

 private:
  void find_nan(const SortKeys& keys) {
    for (std::int64_t row = 0; row < rows_.count; ++row) {
      for (std::int64_t i = 0; i < rows_.outer * rows_.inner; ++i) {
        const std::int64_t at = rows_.start(i / rows_.inner, row, rows_.count) + i % rows_.inner;
        if (keys.is_nan(at)) has_nan_[static_cast<std::size_t>(row)] = true;
      }
    }
  }

  Rows rows_;
  std::vector<bool> has_nan_;
  std::vector<std::int64_t> integers_;
};

Distinct distinct_rows(const RowOrder& rows, std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return rows.compare(a, b) < 0; });
  Distinct distinct;
  distinct.inverse.resize(order.size());
  for (const std::int64_t i : order) {
    if (distinct.first.empty() || !rows.same(distinct.first.back(), i)) {
      distinct.first.push_back(i);
      distinct.counts.push_back(0);
    }
    ++distinct.counts.back();
    distinct.inverse[static_cast<std::size_t>(i)] =
        static_cast<std::int64_t>(distinct.first.size()) - 1;
  }
  return distinct;
}

// The same by where they are first.
Distinct by_place(const Distinct& sorted) {
  Distinct placed;
  std::vector<std::int64_t> rank(sorted.first.size());
  for (std::size_t i = 0; i < sorted.inverse.size(); ++i) {
    const auto which = static_cast<std::size_t>(sorted.inverse[i]);
    if (static_cast<std::size_t>(sorted.first[which]) == i) {
      rank[which] = static_cast<std::int64_t>(placed.first.size());
      placed.first.push_back(sorted.first[which]);
      placed.counts.push_back(sorted.counts[which]);
    }
    placed.inverse.push_back(rank[which]);
  }
  return placed;
}

// (tensor, sorted, with indices, with inverse, with counts[, axis]): the distinct elements, or
// slices along the axis, or a tuple with what else is wanted.
void unique(RelaxCall& call) {
  const FfiTensorObject& tensor = call.tensor(0);
  const auto* data = static_cast<const char*>(call.values(0));
  std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  std::optional<std::size_t> axis;
  if (call.args.size() > 5 && call.at(5).type != kFfiNone) {
    const auto ndim = static_cast<std::int64_t>(shape.size());
    const std::int64_t wanted = call.integer(5);
    if (wanted < -ndim || wanted >= ndim) {
      call.fail("there is no axis " + std::to_string(wanted) + " in " + shape_name(shape));
    }
    axis = static_cast<std::size_t>(wanted < 0 ? wanted + ndim : wanted);
  }
  const Rows rows(shape, axis);
  const Tensor view = Tensor::view(const_cast<char*>(data), shape, tensor.tensor.dtype, nullptr);
  Distinct distinct = distinct_rows(RowOrder(view, rows, axis.has_value()), rows.count);
  if (call.integer(1) == 0) distinct = by_place(distinct);

  const auto number = static_cast<std::int64_t>(distinct.first.size());
  if (!axis) shape.assign(1, 0);
  shape[axis.value_or(0)] = number;
  FfiValue values = call.machine.allocate_tensor(shape, tensor.tensor.dtype);
  const std::size_t bytes = dtype_bytes(tensor.tensor.dtype);
  const std::size_t run_bytes = static_cast<std::size_t>(rows.inner) * bytes;
  for (std::int64_t run = 0; run < rows.outer; ++run) {
    for (std::int64_t k = 0; k < number; ++k) {
      const std::int64_t from = distinct.first[static_cast<std::size_t>(k)];
      std::memcpy(static_cast<char*>(as_tensor(values)->data()) +
                      static_cast<std::size_t>(rows.start(run, k, number)) * bytes,
                  data + static_cast<std::size_t>(rows.start(run, from, rows.count)) * bytes,
                  run_bytes);
    }
  }
  std::vector<FfiValue> all{values};
  const std::vector<std::int64_t>* further[] = {&distinct.first, &distinct.inverse,
                                                &distinct.counts};
  for (std::size_t i = 0; i < std::size(further); ++i) {
    if (call.integer(2 + i) == 0) continue;
    const auto size = static_cast<std::int64_t>(further[i]->size());
    all.push_back(tensor_of_indices(call, {size}, *further[i]));
  }
  call.result = all.size() == 1 ? all.front() : FfiValue::of_array(std::move(all));
}

// (condition, format, values …)
void assert_op(RelaxCall& call) {
  bool holds = true;
  if (as_tensor(call.at(0)) != nullptr) {
    const FfiTensorObject& tensor = call.tensor(0);
    const auto* data = static_cast<const unsigned char*>(call.values(0));
    holds = !is_zero(data, tensor.tensor.dtype, dtype_bytes(tensor.tensor.dtype));
  } else {
    holds = call.integer(0) != 0;
  }
  if (holds) return;
  const std::string text = call.args.size() > 1 ? text_of(call.at(1)) : "";
  throw Error(ErrorKind::kModel,
              "the model's own check has failed" + (text.empty() ? "" : ": " + in_quotes(text)));
}

// Nothing: a library does not print, and what a model says while it runs is not its result.
void print_nothing(RelaxCall& call) { call.result = FfiValue(); }

constexpr NamedBuiltin kRunFunctions[] = {
    {"relax.run.shape_to_tensor", shape_to_tensor},
    {"relax.run.nonzero", nonzero},
    {"relax.run.unique", unique},
    {"relax.run.assert_op", assert_op},
    {"relax.run.print", print_nothing},
};

}  // namespace

std::span<const NamedBuiltin> run_functions() { return kRunFunctions; }

}  // namespace run_model
