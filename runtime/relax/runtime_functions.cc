#include "runtime/relax/runtime_functions.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include "base/text.h"
#include "runtime/call_context.h"
#include "runtime/float16.h"

namespace run_model {
namespace {

// The arguments of a runtime function, which compiled code gives too: nothing of them is taken on
// trust but that a tensor has the memory that it says.
class RuntimeCall {
 public:
  RuntimeCall(std::string_view name, const FfiAny* args, std::int32_t count)
      : name_(name), args_(args, static_cast<std::size_t>(count)) {}

  const DLTensor& tensor(std::size_t index) const {
    const FfiAny& value = at(index);
    if (value.type == kFfiTensorPointer) return *static_cast<const DLTensor*>(value.pointer);
    if (const FfiTensorObject* object = as_tensor(value)) return object->tensor;
    fail("argument " + std::to_string(index) + " is no tensor");
  }

  std::int64_t integer(std::size_t index) const {
    const FfiAny& value = at(index);
    if (value.type == kFfiInt || value.type == kFfiBool) return value.integer;
    fail("argument " + std::to_string(index) + " is no integer");
  }

  bool has(std::size_t index) const { return index < args_.size(); }

  // The same as text: "float32" is how older releases give an element type.
  std::string text(std::size_t index) const { return text_of(at(index)); }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::kModel, in_quotes(name_) + ": " + problem);
  }

 private:
  const FfiAny& at(std::size_t index) const {
    if (index >= args_.size()) fail("an argument is missing");
    return args_[index];
  }

  std::string_view name_;
  std::span<const FfiAny> args_;
};

std::span<const std::int64_t> shape_of_tensor(const DLTensor& tensor) {
  return {tensor.shape, static_cast<std::size_t>(tensor.ndim)};
}

void* data_of(const DLTensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

// The lines of a tensor along an axis: line i begins at start(i), and its elements are `stride`
// apart.
struct Lines {
  std::int64_t count = 0;
  std::int64_t length = 0;
  std::int64_t stride = 1;

  Lines(const RuntimeCall& call, const DLTensor& tensor, std::int64_t axis) {
    const std::span<const std::int64_t> shape = shape_of_tensor(tensor);
    if (axis < 0) axis += tensor.ndim;
    if (axis < 0 || axis >= tensor.ndim) {
      call.fail("there is no axis " + std::to_string(axis) + " in " + shape_name(shape));
    }
    length = shape[static_cast<std::size_t>(axis)];
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (i > static_cast<std::size_t>(axis)) stride *= shape[i];
    }
    count = length == 0 ? 0 : element_count(shape) / length;
  }

  std::int64_t start(std::int64_t line, std::int64_t line_length) const {
    return line / stride * stride * line_length + line % stride;
  }
};

// A half-precision number is compared as the number that it is.
struct Half {
  std::uint16_t bits;
};

// The elements of a line as what they are sorted by: all types as one of two, each of which holds
// them exactly, because sorting is much code. What is to be descending is turned round.
struct Keys {
  std::vector<double> reals;
  std::vector<std::int64_t> integers;

  template <typename T>
  void add(T value, bool ascending) {
    if constexpr (std::is_same_v<T, Half>) {
      add(half_to_float(value.bits), ascending);
    } else if constexpr (std::is_integral_v<T> && sizeof(T) == sizeof(std::int64_t)) {
      constexpr std::uint64_t kSign = std::is_signed_v<T> ? 0 : std::uint64_t{1} << 63;
      const auto key = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) ^ kSign);
      integers.push_back(ascending ? key : ~key);
    } else {
      reals.push_back(ascending ? static_cast<double>(value) : -static_cast<double>(value));
    }
  }
};

template <typename Key>
void sort_by(const std::vector<Key>& keys, std::vector<std::int64_t>& order) {
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
  });
}

// The order in which a line's elements are sorted; equal ones, and NaN among themselves, stay in
// theirs. TVM's own comparison is the plain one: NaN is less or greater than nothing.
template <typename T>
void sort_line(const T* first, std::int64_t stride, std::vector<std::int64_t>& order,
               bool ascending) {
  Keys keys;
  const auto length = static_cast<std::int64_t>(order.size());
  for (std::int64_t i = 0; i < length; ++i) keys.add(first[i * stride], ascending);
  if (keys.integers.empty()) {
    sort_by(keys.reals, order);
  } else {
    sort_by(keys.integers, order);
  }
}

template <typename Function>
void for_element_type(const RuntimeCall& call, DLDataType dtype, Function&& function) {
  const std::size_t bytes = dtype_bytes(dtype);
  if (dtype.lanes == 1 && dtype.code == kDLFloat) {
    if (bytes == 8) return function(double{});
    if (bytes == 4) return function(float{});
    if (bytes == 2) return function(Half{});
  }
  if (dtype.lanes == 1 && dtype.code == kDLInt) {
    if (bytes == 8) return function(std::int64_t{});
    if (bytes == 4) return function(std::int32_t{});
    if (bytes == 2) return function(std::int16_t{});
    if (bytes == 1) return function(std::int8_t{});
  }
  if (dtype.lanes == 1 && (dtype.code == kDLUInt || same_dtype(dtype, kFfiBoolType))) {
    if (bytes == 8) return function(std::uint64_t{});
    if (bytes == 4) return function(std::uint32_t{});
    if (bytes == 2) return function(std::uint16_t{});
    if (bytes == 1) return function(std::uint8_t{});
  }
  call.fail("tensors of " + dtype_name(dtype) + " are not sorted");
}

// Indices are written as integers or, as some importers want them, as numbers.
void write_index(const RuntimeCall& call, const DLTensor& target, std::int64_t at,
                 std::int64_t index) {
  for_element_type(call, target.dtype, [&]<typename T>(T) {
    if constexpr (std::is_same_v<T, Half>) {
      call.fail("indices are no half-precision numbers");
    } else {
      static_cast<T*>(data_of(target))[at] = static_cast<T>(index);
    }
  });
}

void check_same_form(const RuntimeCall& call, const DLTensor& a, std::int64_t count,
                     std::int64_t expected) {
  if (count == expected) return;
  call.fail("a tensor " + shape_name(shape_of_tensor(a)) + " does not fit its input");
}

std::int64_t elements_of(const DLTensor& tensor) { return element_count(shape_of_tensor(tensor)); }

// (input, output, axis, ascending): the values in order, or where they were.
void sort_values(const RuntimeCall& call, bool want_indices) {
  const DLTensor& input = call.tensor(0);
  const DLTensor& output = call.tensor(1);
  const Lines lines(call, input, call.integer(2));
  const bool ascending = call.integer(3) != 0;
  check_same_form(call, output, elements_of(output), elements_of(input));
  if (!want_indices && !same_dtype(input.dtype, output.dtype)) call.fail("its types differ");
  std::vector<std::int64_t> order(static_cast<std::size_t>(lines.length));
  for_element_type(call, input.dtype, [&]<typename T>(T) {
    for (std::int64_t line = 0; line < lines.count; ++line) {
      const std::int64_t start = lines.start(line, lines.length);
      const T* first = static_cast<const T*>(data_of(input)) + start;
      sort_line(first, lines.stride, order, ascending);
      for (std::int64_t i = 0; i < lines.length; ++i) {
        const std::int64_t from = order[static_cast<std::size_t>(i)];
        const std::int64_t to = start + i * lines.stride;
        if (want_indices) {
          write_index(call, output, to, from);
        } else {
          static_cast<T*>(data_of(output))[to] = first[from * lines.stride];
        }
      }
    }
  });
}

void sort(const RuntimeCall& call) { sort_values(call, false); }
void argsort(const RuntimeCall& call) { sort_values(call, true); }

// (input, values and/or indices, k, axis, "both" | "values" | "indices", ascending)
void topk(const RuntimeCall& call) {
  const DLTensor& input = call.tensor(0);
  // How many outputs there are shows by where the text is.
  std::size_t text = 4;
  while (text <= 5 && (!call.has(text) || call.text(text).empty())) ++text;
  if (!call.has(text)) call.fail("nothing says what is wanted");
  const std::string wanted = call.text(text);
  const bool both = wanted == "both";
  if ((!both && wanted != "values" && wanted != "indices") || text != (both ? 5 : 4)) {
    call.fail("does not know what " + in_quotes(wanted) + " is");
  }
  const DLTensor* values = wanted == "indices" ? nullptr : &call.tensor(1);
  const DLTensor* indices = wanted == "values" ? nullptr : &call.tensor(both ? 2 : 1);
  const std::int64_t axis = call.integer(text - 1);
  const Lines lines(call, input, axis);
  std::int64_t k = call.integer(text - 2);
  if (k < 1 || k > lines.length) k = lines.length;
  const bool ascending = call.integer(text + 1) != 0;
  for (const DLTensor* output : {values, indices}) {
    if (output == nullptr) continue;
    check_same_form(call, *output, elements_of(*output), lines.count * k);
  }
  if (values != nullptr && !same_dtype(input.dtype, values->dtype)) call.fail("its types differ");
  std::vector<std::int64_t> order(static_cast<std::size_t>(lines.length));
  for_element_type(call, input.dtype, [&]<typename T>(T) {
    for (std::int64_t line = 0; line < lines.count; ++line) {
      const T* first = static_cast<const T*>(data_of(input)) + lines.start(line, lines.length);
      sort_line(first, lines.stride, order, ascending);
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t from = order[static_cast<std::size_t>(i)];
        const std::int64_t to = lines.start(line, k) + i * lines.stride;
        if (values != nullptr) static_cast<T*>(data_of(*values))[to] = first[from * lines.stride];
        if (indices != nullptr) write_index(call, *indices, to, from);
      }
    }
  });
}

template <void (*function)(const RuntimeCall&)>
int run_guarded(void* /*self*/, const FfiAny* args, std::int32_t count, FfiAny* result) {
  try {
    *result = FfiAny();
    function(RuntimeCall("a sorting function", args, count));
    return 0;
  } catch (const std::exception& error) {
    set_last_packed_error(error.what());
    return -1;
  }
}

struct RuntimeFunction {
  std::string_view name;
  FfiFunction function;
};

constexpr RuntimeFunction kRuntimeFunctions[] = {
    {"tvm.contrib.sort.sort", run_guarded<sort>},
    {"tvm.contrib.sort.argsort", run_guarded<argsort>},
    {"tvm.contrib.sort.topk", run_guarded<topk>},
};

}  // namespace

FfiFunction find_runtime_function(std::string_view name) {
  const auto found = std::find_if(std::begin(kRuntimeFunctions), std::end(kRuntimeFunctions),
                                  [&](const RuntimeFunction& f) { return f.name == name; });
  return found == std::end(kRuntimeFunctions) ? nullptr : found->function;
}

}  // namespace run_model
