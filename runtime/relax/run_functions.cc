// The functions that TVM registers in Python for operators whose result's shape depends on values.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <run_model/dtype.h>
#include "base/text.h"
#include "runtime/relax/builtins.h"

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

// The distinct elements of a tensor: where each is first, how often it is there, and which of them
// each element is.
struct Distinct {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> inverse;
};

template <typename T>
Distinct distinct_elements(const T* values, std::int64_t count, bool sorted) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return values[a] < values[b]; });
  Distinct distinct;
  distinct.inverse.resize(order.size());
  for (const std::int64_t i : order) {
    if (distinct.first.empty() || values[distinct.first.back()] != values[i]) {
      distinct.first.push_back(i);
      distinct.counts.push_back(0);
    }
    ++distinct.counts.back();
    distinct.inverse[static_cast<std::size_t>(i)] =
        static_cast<std::int64_t>(distinct.first.size()) - 1;
  }
  if (!sorted) {  // by where they are first
    std::vector<std::int64_t> by_place(distinct.first.size());
    std::iota(by_place.begin(), by_place.end(), std::int64_t{0});
    std::sort(by_place.begin(), by_place.end(), [&](std::int64_t a, std::int64_t b) {
      return distinct.first[static_cast<std::size_t>(a)] <
             distinct.first[static_cast<std::size_t>(b)];
    });
    Distinct placed = distinct;
    std::vector<std::int64_t> rank(by_place.size());
    for (std::size_t k = 0; k < by_place.size(); ++k) {
      const auto from = static_cast<std::size_t>(by_place[k]);
      placed.first[k] = distinct.first[from];
      placed.counts[k] = distinct.counts[from];
      rank[from] = static_cast<std::int64_t>(k);
    }
    for (std::int64_t& which : placed.inverse) which = rank[static_cast<std::size_t>(which)];
    return placed;
  }
  return distinct;
}

Distinct distinct_of(const RelaxCall& call, const FfiTensorObject& tensor, const void* data,
                     bool sorted) {
  const DLDataType dtype = tensor.tensor.dtype;
  const std::int64_t count = element_count(tensor.shape());
  const auto with = [&]<typename T>(T) {
    return distinct_elements(static_cast<const T*>(data), count, sorted);
  };
  if (same_dtype(dtype, {kDLFloat, 32, 1})) return with(float{});
  if (same_dtype(dtype, {kDLFloat, 64, 1})) return with(double{});
  if (same_dtype(dtype, {kDLInt, 64, 1})) return with(std::int64_t{});
  if (same_dtype(dtype, {kDLInt, 32, 1})) return with(std::int32_t{});
  if (same_dtype(dtype, {kDLInt, 8, 1})) return with(std::int8_t{});
  if (same_dtype(dtype, {kDLUInt, 8, 1})) return with(std::uint8_t{});
  throw Error(ErrorKind::kIncompatible, in_quotes(call.name) + " is given a tensor of " +
                                            dtype_name(dtype) +
                                            ", which run_model does not tell apart");
}

// (tensor, sorted, with indices, with inverse, with counts[, axis]): the distinct elements, or a
// tuple with what else is wanted.
void unique(RelaxCall& call) {
  const FfiTensorObject& tensor = call.tensor(0);
  const void* data = call.values(0);
  if (call.args.size() > 5 && call.at(5).type != kFfiNone) {
    throw Error(ErrorKind::kIncompatible,
                in_quotes(call.name) + " along an axis is not supported by run_model");
  }
  const Distinct distinct = distinct_of(call, tensor, data, call.integer(1) != 0);
  const auto number = static_cast<std::int64_t>(distinct.first.size());
  const std::size_t bytes = dtype_bytes(tensor.tensor.dtype);
  FfiValue values = call.machine.allocate_tensor(std::span(&number, 1), tensor.tensor.dtype);
  for (std::size_t k = 0; k < distinct.first.size(); ++k) {
    std::memcpy(
        static_cast<char*>(as_tensor(values)->data()) + k * bytes,
        static_cast<const char*>(data) + static_cast<std::size_t>(distinct.first[k]) * bytes,
        bytes);
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

struct RunFunction {
  std::string_view name;
  RelaxBuiltin function;
};

constexpr RunFunction kRunFunctions[] = {
    {"relax.run.shape_to_tensor", shape_to_tensor},
    {"relax.run.nonzero", nonzero},
    {"relax.run.unique", unique},
    {"relax.run.assert_op", assert_op},
    {"relax.run.print", print_nothing},
};

}  // namespace

RelaxBuiltin find_run_function(std::string_view name) {
  const auto found = std::find_if(std::begin(kRunFunctions), std::end(kRunFunctions),
                                  [&](const RunFunction& f) { return f.name == name; });
  return found == std::end(kRunFunctions) ? nullptr : found->function;
}

}  // namespace run_model
