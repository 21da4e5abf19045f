#include "run_model/run_model/compare/arrays.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <run_model/npy.h>
#include <run_model/npz.h>
#include <run_model/tensor.h>
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

std::vector<NamedTensor> read_arrays(const std::filesystem::path& path) {
  constexpr std::string_view kNpyMagic = "\x93NUMPY";
  const std::vector<std::byte> start = read_file_start(path, kNpyMagic.size());
  if (as_text(start) == kNpyMagic) return {{"array", read_npy(path)}};
  return read_npz(path);
}

std::string form(const Tensor& tensor) { return tensor_form_name(tensor.dtype(), tensor.shape()); }

// Integers of 64 bits do not all fit in a double, and two that differ must not become equal.
double integer_difference(const Tensor& first, const Tensor& second, std::size_t index) {
  std::uint64_t a = 0, b = 0;
  std::memcpy(&a, static_cast<const std::byte*>(first.data()) + 8 * index, 8);
  std::memcpy(&b, static_cast<const std::byte*>(second.data()) + 8 * index, 8);
  const bool less = first.dtype().code == kDLInt
                        ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b)
                        : a < b;
  return static_cast<double>(less ? b - a : a - b);
}

void compare_elements(const Tensor& first, const Tensor& second, double atol, double rtol,
                      ArrayComparison& result) {
  const std::vector<double> a = to_doubles(first);
  const std::vector<double> b = to_doubles(second);
  const bool wide = first.dtype().bits == 64 && first.dtype().code != kDLFloat;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      ++result.not_finite;
      ++result.beyond;
      continue;
    }
    const double difference = wide ? integer_difference(first, second, i) : std::fabs(b[i] - a[i]);
    const double size = std::fabs(a[i]);
    result.max_absolute = std::max(result.max_absolute, difference);
    if (size > 0) result.max_relative = std::max(result.max_relative, difference / size);
    if (difference > atol + rtol * size) ++result.beyond;
  }
}

ArrayComparison result_for(const std::string& name, const std::string& first_form,
                           const std::string& second_form, ArrayVerdict verdict) {
  ArrayComparison result;
  result.name = name;
  result.first_form = first_form;
  result.second_form = second_form;
  result.verdict = verdict;
  return result;
}

ArrayComparison compare(const NamedTensor& first, const NamedTensor& second, double atol,
                        double rtol) {
  const Tensor& a = first.tensor;
  const Tensor& b = second.tensor;
  ArrayComparison result = result_for(first.name, form(a), form(b), ArrayVerdict::kEqual);
  if (a.shape() != b.shape() || !same_dtype(a.dtype(), b.dtype())) {
    result.verdict = ArrayVerdict::kAnotherForm;
    return result;
  }
  result.elements = static_cast<std::size_t>(a.size());
  compare_elements(a, b, atol, rtol, result);
  const bool equal = a.nbytes() == 0 || std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
  result.verdict = result.beyond > 0 ? ArrayVerdict::kBeyond
                   : equal           ? ArrayVerdict::kEqual
                                     : ArrayVerdict::kWithin;
  return result;
}

const NamedTensor* find(const std::vector<NamedTensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace

std::string_view array_verdict_name(ArrayVerdict verdict) {
  switch (verdict) {
    case ArrayVerdict::kEqual:
      return "equal";
    case ArrayVerdict::kWithin:
      return "within tolerance";
    case ArrayVerdict::kBeyond:
      return "beyond tolerance";
    case ArrayVerdict::kAnotherForm:
      return "another form";
    case ArrayVerdict::kOnlyInFirst:
      return "only in the first";
    case ArrayVerdict::kOnlyInSecond:
      break;
  }
  return "only in the second";
}

bool is_difference(ArrayVerdict verdict) {
  return verdict != ArrayVerdict::kEqual && verdict != ArrayVerdict::kWithin;
}

std::vector<ArrayComparison> compare_array_files(const std::filesystem::path& first,
                                                 const std::filesystem::path& second, double atol,
                                                 double rtol) {
  const std::vector<NamedTensor> a = read_arrays(first);
  const std::vector<NamedTensor> b = read_arrays(second);
  std::vector<ArrayComparison> results;
  for (const NamedTensor& array : a) {
    if (const NamedTensor* other = find(b, array.name)) {
      results.push_back(compare(array, *other, atol, rtol));
    } else {
      results.push_back(result_for(array.name, form(array.tensor), "", ArrayVerdict::kOnlyInFirst));
    }
  }
  for (const NamedTensor& array : b) {
    if (find(a, array.name) == nullptr) {
      results.push_back(
          result_for(array.name, "", form(array.tensor), ArrayVerdict::kOnlyInSecond));
    }
  }
  return results;
}

}  // namespace run_model
