#include "runtime/relax/input_forms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include "base/text.h"
#include "runtime/relax/ffi_abi.h"

namespace run_model {
namespace {

constexpr std::int64_t kMostInputDimensions = 32;

constexpr DLDataType kNumberType{kDLInt, 64, 1};

// What lies between two marks of `text`.
std::optional<std::string_view> enclosed(std::string_view text, std::string_view before,
                                         std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == text.npos) return std::nullopt;
  text.remove_prefix(begin + before.size());
  const std::size_t end = text.find(after);
  if (end == text.npos) return std::nullopt;
  return text.substr(0, end);
}

// "a, f(b, c)" as "a" and "f(b, c)".
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    const std::string_view item = trimmed(text.substr(begin, i - begin));
    if (!item.empty()) items.push_back(item);
    begin = i + 1;
  }
  return items;
}

// What TVM says of a parameter where a function begins:
// "ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor((rows, 12), dtype="float32"))
// ". The words are for people; here they give symbols their names, and functions that are compiled
// as a whole, whose checks are code, their forms.
std::optional<std::string_view> annotation_of(std::string_view context) {
  const std::size_t begin = context.find("annotation=");
  const std::size_t end = context.rfind(')');
  if (begin == context.npos || end == context.npos || end < begin) return std::nullopt;
  context = context.substr(0, end);
  return context.substr(begin + std::string_view("annotation=").size());
}

// The arguments in "NAME(arguments)", if it is that.
std::optional<std::string_view> arguments_in(std::string_view text, std::string_view name) {
  text = trimmed(text);
  if (!text.starts_with(name) || !text.ends_with(')')) return std::nullopt;
  text.remove_prefix(name.size());
  if (!text.starts_with('(')) return std::nullopt;
  return text.substr(1, text.size() - 2);
}

struct TensorWords {
  std::vector<std::string_view> dims;
  std::string_view dtype;
};

std::optional<TensorWords> tensor_words(std::string_view annotation) {
  const auto arguments = arguments_in(annotation, "R.Tensor");
  const auto dtype =
      arguments ? enclosed(*arguments, "dtype=\"", "\"") : std::optional<std::string_view>();
  if (!dtype) return std::nullopt;
  if (!arguments->starts_with('(')) {  // R.Tensor(dtype="float32", ndim=2), of any extents
    const std::vector<std::string_view> items = items_of(*arguments);
    const auto ndim = std::find_if(items.begin(), items.end(),
                                   [](std::string_view item) { return item.starts_with("ndim="); });
    if (ndim == items.end()) return std::nullopt;
    const auto count = whole_number<std::int64_t>(ndim->substr(std::string_view("ndim=").size()));
    if (!count || *count < 0 || *count > kMostInputDimensions) return std::nullopt;
    return TensorWords{std::vector<std::string_view>(static_cast<std::size_t>(*count)), *dtype};
  }
  const auto dims = arguments_in(items_of(*arguments).front(), "");
  if (!dims) return std::nullopt;
  return TensorWords{items_of(*dims), *dtype};
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// The items of "R.Tuple(…)", since 0.27 "T.Tuple(…)".
std::optional<std::string_view> tuple_items(std::string_view annotation) {
  const auto items = arguments_in(annotation, "R.Tuple");
  return items ? items : arguments_in(annotation, "T.Tuple");
}

// The type of a number, "R.Prim("int64")", since 0.27 "T.int64". "R.Prim(value=n)" is a symbol.
std::optional<DLDataType> number_type(std::string_view annotation) {
  std::string_view name = trimmed(annotation);
  if (const auto arguments = arguments_in(name, "R.Prim")) {
    if (arguments->starts_with("value=")) return kNumberType;
    const auto dtype = enclosed(*arguments, "\"", "\"");
    if (!dtype) return std::nullopt;
    name = *dtype;
  } else if (name.starts_with("T.")) {
    name.remove_prefix(2);
  }
  for (const std::string_view known : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
                                       "uint32", "float32", "float64"}) {
    if (name == known) return known == "bool" ? kFfiBoolType : parse_dtype(known);
  }
  return std::nullopt;
}

// What a parameter is, or an item of one that is a tuple.
struct Place {
  RelaxInput form;
  std::vector<Place> items;
  bool is_tuple = false;
};

class FormReader {
 public:
  FormReader(const RelaxExecutable& executable, const RelaxFunction& function)
      : executable_(executable), function_(function), places_(function.parameters) {}

  std::vector<RelaxInput> read() {
    if (function_.kind == RelaxFunctionKind::kBytecode) {
      read_checks();
    } else {
      read_contexts();
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      RelaxInput& form = places_[i].form;
      form.parameter = i;
      form.name = i < function_.parameter_names.size() ? function_.parameter_names[i]
                                                       : "input_" + std::to_string(i);
      add_forms(places_[i]);
    }
    return std::move(forms_);
  }

 private:
  void add_forms(Place& place) {
    if (!place.is_tuple) {
      forms_.push_back(std::move(place.form));
      return;
    }
    for (std::size_t i = 0; i < place.items.size(); ++i) {
      RelaxInput& item = place.items[i].form;
      item.parameter = place.form.parameter;
      item.name = place.form.name + "." + std::to_string(i);
      item.path = place.form.path;
      item.path.push_back(i);
      add_forms(place.items[i]);
    }
  }

  // What the first argument of a call is, while its register still holds it; null for other values.
  Place* place_of(const RelaxInstruction& call) const {
    if (call.arguments.empty()) return nullptr;
    const RelaxArgument& first = call.arguments.front();
    if (first.kind != RelaxArgumentKind::kRegister) return nullptr;
    const auto found = registers_.find(first.value);
    return found == registers_.end() ? nullptr : found->second;
  }

  std::optional<std::int64_t> integer(const RelaxInstruction& call, std::size_t index) const {
    if (index >= call.arguments.size()) return std::nullopt;
    const RelaxArgument& argument = call.arguments[index];
    if (argument.kind == RelaxArgumentKind::kImmediate) return argument.value;
    if (argument.kind != RelaxArgumentKind::kConstant) return std::nullopt;
    const auto* number =
        std::get_if<std::int64_t>(&executable_.constants[static_cast<std::size_t>(argument.value)]);
    return number != nullptr ? std::optional(*number) : std::nullopt;
  }

  template <typename T>
  const T* constant(const RelaxInstruction& call, std::size_t index) const {
    if (index >= call.arguments.size()) return nullptr;
    const RelaxArgument& argument = call.arguments[index];
    if (argument.kind != RelaxArgumentKind::kConstant) return nullptr;
    return std::get_if<T>(&executable_.constants[static_cast<std::size_t>(argument.value)]);
  }

  void read_checks() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      registers_.emplace(static_cast<std::int64_t>(i), &places_[i]);
    }
    for (std::size_t i = function_.start; i < function_.end; ++i) {
      const RelaxInstruction& instruction = executable_.instructions[i];
      // What comes after a branch is not always done.
      if (instruction.opcode != RelaxOpcode::kCall) return;
      Place* place = place_of(instruction);
      Place* item = nullptr;
      if (place != nullptr) {
        const std::string& name = executable_.functions[instruction.function].name;
        if (name == "vm.builtin.check_tensor_info") read_tensor_check(instruction, *place);
        if (name == "vm.builtin.match_shape") read_shape_match(instruction, *place);
        if (name == "vm.builtin.check_shape_info") read_shape_check(instruction, *place);
        if (name == "vm.builtin.check_prim_value_info") read_number_check(instruction, *place);
        if (name == "vm.builtin.check_tuple_info") read_tuple_check(instruction, *place);
        if (name == "vm.builtin.tuple_getitem") item = item_of(instruction, *place);
      }
      registers_.erase(instruction.target);
      if (item != nullptr) registers_.emplace(instruction.target, item);
    }
  }

  // (value, dimensions, element type, context)
  void read_tensor_check(const RelaxInstruction& call, Place& place) {
    const std::optional<std::int64_t> ndim = integer(call, 1);
    const auto* dtype = constant<DLDataType>(call, 2);
    if (!ndim || *ndim < 0 || *ndim > kMostInputDimensions || dtype == nullptr) return;
    place.form.dtype = *dtype;
    place.form.dims.resize(static_cast<std::size_t>(*ndim));
    place.form.known = true;
  }

  // (value, dimensions, context)
  void read_shape_check(const RelaxInstruction& call, Place& place) {
    const std::optional<std::int64_t> ndim = integer(call, 1);
    if (!ndim || *ndim < -1 || *ndim > kMostInputDimensions) return;
    fill_shape(place.form, *ndim);
  }

  // (value, element type, context)
  void read_number_check(const RelaxInstruction& call, Place& place) {
    if (const auto* dtype = constant<DLDataType>(call, 1)) fill_number(place.form, *dtype);
  }

  // (value, items, context)
  void read_tuple_check(const RelaxInstruction& call, Place& place) {
    const std::optional<std::int64_t> items = integer(call, 1);
    if (place.is_tuple || !items || *items < 0) return;
    const auto count = static_cast<std::size_t>(*items);
    if (count > kMostRelaxItems - items_) return;
    items_ += count;
    place.is_tuple = true;
    place.items.resize(count);
  }

  // (tuple, index)
  Place* item_of(const RelaxInstruction& call, Place& place) const {
    const std::optional<std::int64_t> index = integer(call, 1);
    if (!index || *index < 0 || static_cast<std::uint64_t>(*index) >= place.items.size()) {
      return nullptr;
    }
    return &place.items[static_cast<std::size_t>(*index)];
  }

  // (value, heap, n, n × (code, number), context)
  void read_shape_match(const RelaxInstruction& call, Place& place) {
    RelaxInput& form = place.form;
    const std::optional<std::int64_t> count = integer(call, 2);
    if (form.kind != RelaxInputKind::kTensor || !count || *count < 0 ||
        static_cast<std::uint64_t>(*count) != form.dims.size()) {
      return;
    }
    const auto* context = constant<std::string>(call, 3 + 2 * form.dims.size());
    const auto annotation = context != nullptr ? annotation_of(*context) : std::nullopt;
    const auto words = annotation ? tensor_words(*annotation) : std::nullopt;
    for (std::size_t i = 0; i < form.dims.size(); ++i) {
      const std::optional<std::int64_t> code = integer(call, 3 + 2 * i);
      const std::optional<std::int64_t> number = integer(call, 4 + 2 * i);
      if (!code || !number) continue;
      if (*code == 0) form.dims[i].number = *number;
      if (*code == 0 || *code == 2) continue;
      // Numbers of the heap that have no symbol's name are products and the like.
      const bool named = words && words->dims.size() == form.dims.size();
      form.dims[i].symbol = named && is_name(words->dims[i]) ? std::string(words->dims[i])
                                                             : "d" + std::to_string(*number);
    }
  }

  void read_contexts() {
    for (const RelaxConstant& constant : executable_.constants) {
      const auto* context = std::get_if<std::string>(&constant);
      if (context == nullptr || !context->starts_with("ErrorContext(fn=" + function_.name + ",")) {
        continue;
      }
      const auto number = enclosed(*context, "loc=param[", "]");
      const auto annotation = annotation_of(*context);
      const auto parameter = whole_number<std::size_t>(number.value_or(""));
      if (!annotation || !parameter || *parameter >= places_.size()) continue;
      fill_from(*annotation, places_[*parameter], 0);
    }
  }

  // A shape of -1 dimensions is one of any number of them.
  static void fill_shape(RelaxInput& form, std::int64_t ndim) {
    form.kind = RelaxInputKind::kShape;
    form.dtype = kNumberType;
    form.dims = {{ndim, ""}};
    form.known = true;
  }

  static void fill_number(RelaxInput& form, DLDataType dtype) {
    form.kind = RelaxInputKind::kNumber;
    form.dtype = dtype;
    form.dims.clear();
    form.known = true;
  }

  static void fill_from(std::string_view annotation, Place& place, std::size_t depth) {
    RelaxInput& form = place.form;
    if (const auto words = tensor_words(annotation)) {
      form.dtype = parse_dtype(words->dtype);
      if (same_dtype(form.dtype, {kDLUInt, 1, 1})) form.dtype = kFfiBoolType;
      form.dims.resize(words->dims.size());
      for (std::size_t i = 0; i < form.dims.size(); ++i) {
        // In tuples TVM writes T.int64(2) for 2.
        const std::string_view text =
            arguments_in(words->dims[i], "T.int64").value_or(words->dims[i]);
        if (const auto number = whole_number<std::int64_t>(text)) {
          form.dims[i].number = *number;
        } else if (is_name(text)) {
          form.dims[i].symbol = text;
        }
      }
      form.known = true;
    } else if (const auto shape = arguments_in(annotation, "R.Shape")) {
      if (shape->starts_with('[') && shape->ends_with(']')) {
        const auto numbers = items_of(shape->substr(1, shape->size() - 2));
        fill_shape(form, static_cast<std::int64_t>(numbers.size()));
      } else if (shape->starts_with("ndim=")) {
        const auto ndim =
            whole_number<std::int64_t>(shape->substr(std::string_view("ndim=").size()));
        fill_shape(form, ndim && *ndim >= 0 && *ndim <= kMostInputDimensions ? *ndim : -1);
      }
    } else if (const auto number = number_type(annotation)) {
      fill_number(form, *number);
    } else if (const auto items = tuple_items(annotation);
               items && depth < kDeepestRelaxTuple && !place.is_tuple) {
      place.is_tuple = true;
      for (const std::string_view item : items_of(*items)) {
        fill_from(item, place.items.emplace_back(), depth + 1);
      }
    }
  }

  const RelaxExecutable& executable_;
  const RelaxFunction& function_;
  std::vector<Place> places_;
  std::map<std::int64_t, Place*> registers_;
  std::vector<RelaxInput> forms_;
  std::size_t items_ = 0;  // of all tuples
};

// Puts `value` where `path` leads to below `tuple`. What no value is put to is an empty tuple.
void put_item(std::vector<Place>& tuple, std::span<const std::size_t> path, std::size_t value) {
  while (path.front() >= tuple.size()) tuple.push_back({{}, {}, true});
  Place& place = tuple[path.front()];
  if (path.size() > 1) return put_item(place.items, path.subspan(1), value);
  place.is_tuple = false;
  place.form.parameter = value;
}

FfiValue assembled(const Place& place, std::vector<FfiValue>& values) {
  if (!place.is_tuple) return std::move(values[place.form.parameter]);
  std::vector<FfiValue> items;
  for (const Place& item : place.items) items.push_back(assembled(item, values));
  return FfiValue::of_array(std::move(items));
}

}  // namespace

bool RelaxInput::is_static() const {
  return std::all_of(dims.begin(), dims.end(),
                     [](const RelaxDimension& dim) { return dim.number >= 0; });
}

bool all_static(std::span<const RelaxInput> inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const RelaxInput& input) { return input.is_static(); });
}

std::vector<RelaxInput> input_forms(const RelaxExecutable& executable,
                                    const RelaxFunction& function) {
  return FormReader(executable, function).read();
}

std::vector<FfiValue> arguments_of(const std::vector<RelaxInput>& inputs,
                                   std::vector<FfiValue> values) {
  std::vector<Place> tree;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::size_t> path{inputs[i].parameter};
    path.insert(path.end(), inputs[i].path.begin(), inputs[i].path.end());
    put_item(tree, path, i);
  }
  std::vector<FfiValue> arguments;
  for (const Place& place : tree) arguments.push_back(assembled(place, values));
  return arguments;
}

std::string misfit_of_input(const RelaxInput& input, DLDataType dtype,
                            std::span<const std::int64_t> shape) {
  const DLDataType wanted =
      same_dtype(input.dtype, kFfiBoolType) ? DLDataType{kDLUInt, 1, 1} : input.dtype;
  bool fits = same_dtype(wanted, dtype) && shape.size() == input.dims.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    fits = input.dims[i].number < 0 || input.dims[i].number == shape[i];
  }
  if (fits) return {};
  return "input " + in_quotes(input.name) + " is " + form_name(input) + ", but " +
         tensor_form_name(dtype, shape) + " was given";
}

std::string form_name(const RelaxInput& input) {
  const DLDataType dtype =
      same_dtype(input.dtype, kFfiBoolType) ? DLDataType{kDLUInt, 1, 1} : input.dtype;
  return dtype_name(dtype) + " [" +
         comma_list(input.dims,
                    [](const RelaxDimension& dim) {
                      return dim.number >= 0 ? std::to_string(dim.number)
                                             : (dim.symbol.empty() ? "?" : dim.symbol);
                    }) +
         "]";
}

}  // namespace run_model
