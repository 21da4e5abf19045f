#include "runtime/relax/functions/runtime_functions.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include <run_model/tensor.h>
#include "base/text.h"
#include "runtime/relax/functions/sort_keys.h"
#include "runtime/threads/call_context.h"

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
    const FfiTensorObject* object = as_tensor(value);
    const DLTensor* tensor = object != nullptr ? &object->tensor : nullptr;
    if (value.type == kFfiTensorPointer) tensor = static_cast<const DLTensor*>(value.pointer);
    if (tensor == nullptr || tensor->device.device_type != kDLCPU) {
      fail("argument " + std::to_string(index) + " is no tensor in the host's memory");
    }
    return *tensor;
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

Tensor view_of(const DLTensor& tensor) {
  const std::span<const std::int64_t> shape = shape_of_tensor(tensor);
  return Tensor::view(data_of(tensor), {shape.begin(), shape.end()}, tensor.dtype, nullptr);
}

// Writes one number after the other into a tensor of indices: integers or, as some importers want
// them, floating-point numbers.
class IndexWriter {
 public:
  IndexWriter(const RuntimeCall& call, const DLTensor& target)
      : data_(static_cast<char*>(data_of(target))),
        bytes_(dtype_bytes(target.dtype)),
        is_real_(target.dtype.code == kDLFloat) {
    const DLDataType dtype = target.dtype;
    const bool is_integer = dtype.code == kDLInt || dtype.code == kDLUInt;
    if (dtype.lanes != 1 || (is_real_ ? bytes_ < sizeof(float) : !is_integer)) {
      call.fail("indices are not written as " + dtype_name(dtype));
    }
  }

  void write(std::int64_t at, std::int64_t index) const {
    char* to = data_ + static_cast<std::size_t>(at) * bytes_;
    if (!is_real_) {
      std::memcpy(to, &index, bytes_);  // the lowest bytes are the first
    } else if (bytes_ == sizeof(float)) {
      store(to, static_cast<float>(index));
    } else {
      store(to, static_cast<double>(index));
    }
  }

 private:
  static_assert(std::endian::native == std::endian::little);

  template <typename Real>
  static void store(char* to, Real number) {
    std::memcpy(to, &number, sizeof(number));
  }

  char* data_;
  std::size_t bytes_;
  bool is_real_;
};

void copy_element(const DLTensor& from, std::int64_t source, const DLTensor& to,
                  std::int64_t target) {
  const std::size_t bytes = dtype_bytes(from.dtype);
  std::memcpy(static_cast<char*>(data_of(to)) + static_cast<std::size_t>(target) * bytes,
              static_cast<const char*>(data_of(from)) + static_cast<std::size_t>(source) * bytes,
              bytes);
}

void check_same_form(const RuntimeCall& call, const DLTensor& a, std::int64_t count,
                     std::int64_t expected) {
  if (count == expected) return;
  call.fail("a tensor " + shape_name(shape_of_tensor(a)) + " does not fit its input");
}

std::int64_t elements_of(const DLTensor& tensor) { return element_count(shape_of_tensor(tensor)); }

// Each line in order, or the `first` so many of it, and where they were; of these, null is not
// wanted.
void write_sorted(const RuntimeCall& call, const Lines& lines, std::optional<std::int64_t> first,
                  bool ascending, const DLTensor* values, const DLTensor* indices) {
  const std::int64_t wanted = first.value_or(lines.length);
  const DLTensor& input = call.tensor(0);
  for (const DLTensor* output : {values, indices}) {
    if (output != nullptr) {
      check_same_form(call, *output, elements_of(*output), lines.count * wanted);
    }
  }
  if (values != nullptr && !same_dtype(input.dtype, values->dtype)) call.fail("its types differ");
  std::optional<IndexWriter> writer;
  if (indices != nullptr) writer.emplace(call, *indices);
  const SortKeys keys(view_of(input));
  for (std::int64_t line = 0; line < lines.count; ++line) {
    const std::int64_t start = lines.start(line, lines.length);
    const std::vector<std::int64_t> order =
        first ? keys.first(start, lines.stride, lines.length, wanted, ascending)
              : keys.order(start, lines.stride, lines.length, ascending);
    for (std::int64_t i = 0; i < wanted; ++i) {
      const std::int64_t from = order[static_cast<std::size_t>(i)];
      const std::int64_t to = lines.start(line, wanted) + i * lines.stride;
      if (values != nullptr) copy_element(input, start + from * lines.stride, *values, to);
      if (writer) writer->write(to, from);
    }
  }
}

// (input, output, axis, ascending): the values in order, or where they were.
void sort_values(const RuntimeCall& call, bool want_indices) {
  const Lines lines(call, call.tensor(0), call.integer(2));
  const DLTensor* output = &call.tensor(1);
  write_sorted(call, lines, std::nullopt, call.integer(3) != 0, want_indices ? nullptr : output,
               want_indices ? output : nullptr);
}

void sort(const RuntimeCall& call) { sort_values(call, false); }
void argsort(const RuntimeCall& call) { sort_values(call, true); }

// (input, numbers, output, axis, ascending): where the first so many of each line were, in order;
// the others stay where they are.
void argsort_first(const RuntimeCall& call) {
  const DLTensor& input = call.tensor(0);
  const DLTensor& numbers = call.tensor(1);
  const DLTensor& output = call.tensor(2);
  const Lines lines(call, input, call.integer(3));
  const bool ascending = call.integer(4) != 0;
  check_same_form(call, numbers, elements_of(numbers), lines.count);
  check_same_form(call, output, elements_of(output), elements_of(input));
  if (!same_dtype(numbers.dtype, {kDLInt, 32, 1})) call.fail("its numbers are no int32");
  const IndexWriter writer(call, output);
  const SortKeys keys(view_of(input));
  for (std::int64_t line = 0; line < lines.count; ++line) {
    std::int32_t number = 0;
    std::memcpy(&number, static_cast<const std::int32_t*>(data_of(numbers)) + line, sizeof(number));
    if (number > lines.length) {
      call.fail(std::to_string(number) + " of " + std::to_string(lines.length) +
                " are to be sorted");
    }
    const std::int64_t start = lines.start(line, lines.length);
    const std::vector<std::int64_t> order =
        keys.order(start, lines.stride, std::max(number, 0), ascending);
    for (std::int64_t i = 0; i < lines.length; ++i) {
      const bool sorted = i < number;
      writer.write(start + i * lines.stride, sorted ? order[static_cast<std::size_t>(i)] : i);
    }
  }
}

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
  write_sorted(call, lines, k, call.integer(text + 1) != 0, values, indices);
}

template <void (*function)(const RuntimeCall&)>
int run_guarded(void* /*self*/, const FfiAny* args, std::int32_t count, FfiAny* result) {
  try {
    *result = FfiAny();
    function(RuntimeCall("a sorting function", args, count));
    return 0;
  } catch (...) {
    set_last_packed_exception();
    return -1;
  }
}

// A value of releases up to 0.20 as later ones have it; nothing for what no runtime function takes.
FfiAny as_ffi(const PackedValue& value, int code) {
  FfiAny any;
  if (code == kTypeInt || code == kTypeUInt || code == kTypeBool) {
    any.type = kFfiInt;
    any.integer = value.v_int64;
  } else if (code == kTypeTensorHandle || code == kTypeNDArrayHandle) {
    any.type = kFfiTensorPointer;
    any.pointer = value.v_handle;
  } else if (code == kTypeString) {
    any.type = kFfiRawText;
    any.pointer = value.v_handle;
  }
  return any;
}

template <void (*function)(const RuntimeCall&)>
int run_packed(PackedValue* args, int* type_codes, int count, PackedValue* /*result*/,
               int* result_type_code, void* /*resource*/) {
  try {
    *result_type_code = kTypeNull;
    std::vector<FfiAny> values;
    for (int i = 0; i < count; ++i) values.push_back(as_ffi(args[i], type_codes[i]));
    function(RuntimeCall("a sorting function", values.data(), count));
    return 0;
  } catch (...) {
    set_last_packed_exception();
    return -1;
  }
}

struct RuntimeFunction {
  std::string_view name;
  FfiFunction function;
  PackedFunction packed;
};

template <void (*function)(const RuntimeCall&)>
constexpr RuntimeFunction named(std::string_view name) {
  return {name, run_guarded<function>, run_packed<function>};
}

constexpr RuntimeFunction kRuntimeFunctions[] = {
    named<sort>("tvm.contrib.sort.sort"),
    named<argsort>("tvm.contrib.sort.argsort"),
    named<argsort_first>("tvm.contrib.sort.argsort_nms"),
    named<topk>("tvm.contrib.sort.topk"),
};

RuntimeFunction find_function(std::string_view name) {
  const auto found = std::find_if(std::begin(kRuntimeFunctions), std::end(kRuntimeFunctions),
                                  [&](const RuntimeFunction& f) { return f.name == name; });
  return found == std::end(kRuntimeFunctions) ? RuntimeFunction{} : *found;
}

}  // namespace

FfiFunction find_runtime_function(std::string_view name) { return find_function(name).function; }

PackedFunction find_packed_runtime_function(std::string_view name) {
  return find_function(name).packed;
}

}  // namespace run_model
