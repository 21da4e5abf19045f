#include "runtime/relax/input_forms.h"

#include <algorithm>
#include <charconv>
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

// A check that TVM puts at the beginning of a function says what it is about:
// "ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor((rows, 12), dtype="float32"))
// ". The words are for people; here they give symbols their names, and functions that are compiled
// as a whole, whose checks are code, their forms.
struct Annotation {
  std::vector<std::string> dims;
  std::string dtype;
};

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

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

std::optional<Annotation> parse_annotation(std::string_view context) {
  const auto dims = enclosed(context, "annotation=R.Tensor((", ")");
  const auto dtype = enclosed(context, "dtype=\"", "\"");
  if (!dims || !dtype) return std::nullopt;
  Annotation annotation;
  annotation.dtype = *dtype;
  std::string_view rest = *dims;
  while (!without_spaces(rest).empty()) {
    const std::size_t comma = rest.find(',');
    annotation.dims.emplace_back(without_spaces(rest.substr(0, comma)));
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return annotation;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

class FormReader {
 public:
  FormReader(const RelaxExecutable& executable, const RelaxFunction& function)
      : executable_(executable), function_(function) {}

  std::vector<RelaxInput> read() {
    forms_.resize(function_.parameters);
    for (std::size_t i = 0; i < forms_.size(); ++i) {
      forms_[i].name = i < function_.parameter_names.size() ? function_.parameter_names[i]
                                                            : "input_" + std::to_string(i);
    }
    if (function_.kind == RelaxFunctionKind::kBytecode) {
      read_checks();
    } else {
      read_contexts();
    }
    return std::move(forms_);
  }

 private:
  // The parameter that the first argument of a call is, while its register still holds it.
  std::optional<std::size_t> parameter_of(const RelaxInstruction& call) const {
    if (call.arguments.empty()) return std::nullopt;
    const RelaxArgument& first = call.arguments.front();
    if (first.kind != RelaxArgumentKind::kRegister || first.value < 0 ||
        static_cast<std::uint64_t>(first.value) >= function_.parameters) {
      return std::nullopt;
    }
    return static_cast<std::size_t>(first.value);
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
    for (std::size_t i = function_.start; i < function_.end; ++i) {
      const RelaxInstruction& instruction = executable_.instructions[i];
      // What comes after a branch is not always done.
      if (instruction.opcode != RelaxOpcode::kCall) return;
      const std::string& name = executable_.functions[instruction.function].name;
      const std::optional<std::size_t> parameter = parameter_of(instruction);
      if (parameter && name == "vm.builtin.check_tensor_info") {
        read_tensor_check(instruction, *parameter);
      } else if (parameter && name == "vm.builtin.match_shape") {
        read_shape_match(instruction, *parameter);
      }
      // A parameter's register that is given another value is not the parameter any more.
      if (instruction.target >= 0 &&
          static_cast<std::uint64_t>(instruction.target) < function_.parameters) {
        return;
      }
    }
  }

  // (value, dimensions, element type, context)
  void read_tensor_check(const RelaxInstruction& call, std::size_t parameter) {
    const std::optional<std::int64_t> ndim = integer(call, 1);
    const auto* dtype = constant<DLDataType>(call, 2);
    if (!ndim || *ndim < 0 || *ndim > kMostInputDimensions || dtype == nullptr) return;
    RelaxInput& form = forms_[parameter];
    form.dtype = *dtype;
    form.dims.resize(static_cast<std::size_t>(*ndim));
    form.known = true;
  }

  // (value, heap, n, n × (code, number), context)
  void read_shape_match(const RelaxInstruction& call, std::size_t parameter) {
    RelaxInput& form = forms_[parameter];
    const std::optional<std::int64_t> count = integer(call, 2);
    if (!count || *count < 0 || static_cast<std::uint64_t>(*count) != form.dims.size()) return;
    const auto* context = constant<std::string>(call, 3 + 2 * form.dims.size());
    const auto annotation = context != nullptr ? parse_annotation(*context) : std::nullopt;
    for (std::size_t i = 0; i < form.dims.size(); ++i) {
      const std::optional<std::int64_t> code = integer(call, 3 + 2 * i);
      const std::optional<std::int64_t> number = integer(call, 4 + 2 * i);
      if (!code || !number) continue;
      if (*code == 0) form.dims[i].number = *number;
      if (*code == 0 || *code == 2) continue;
      // Numbers of the heap that have no symbol's name are products and the like.
      const bool named = annotation && annotation->dims.size() == form.dims.size();
      form.dims[i].symbol = named && is_name(annotation->dims[i]) ? annotation->dims[i]
                                                                  : "d" + std::to_string(*number);
    }
  }

  void read_contexts() {
    for (const RelaxConstant& constant : executable_.constants) {
      const auto* context = std::get_if<std::string>(&constant);
      if (context == nullptr || !context->starts_with("ErrorContext(fn=" + function_.name + ",")) {
        continue;
      }
      const auto place = enclosed(*context, "loc=param[", "]");
      const auto annotation = parse_annotation(*context);
      std::size_t parameter = 0;
      if (!place || !annotation ||
          std::from_chars(place->data(), place->data() + place->size(), parameter).ec !=
              std::errc() ||
          parameter >= forms_.size()) {
        continue;
      }
      fill_from(*annotation, parameter);
    }
  }

  void fill_from(const Annotation& annotation, std::size_t parameter) {
    RelaxInput& form = forms_[parameter];
    form.dtype = parse_dtype(annotation.dtype);
    if (same_dtype(form.dtype, {kDLUInt, 1, 1})) form.dtype = kFfiBoolType;
    form.dims.resize(annotation.dims.size());
    for (std::size_t i = 0; i < form.dims.size(); ++i) {
      const std::string& text = annotation.dims[i];
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc() && end == text.data() + text.size()) {
        form.dims[i].number = number;
      } else if (is_name(text)) {
        form.dims[i].symbol = text;
      }
    }
    form.known = true;
  }

  const RelaxExecutable& executable_;
  const RelaxFunction& function_;
  std::vector<RelaxInput> forms_;
};

}  // namespace

bool RelaxInput::is_static() const {
  return std::all_of(dims.begin(), dims.end(),
                     [](const RelaxDimension& dim) { return dim.number >= 0; });
}

std::vector<RelaxInput> input_forms(const RelaxExecutable& executable,
                                    const RelaxFunction& function) {
  return FormReader(executable, function).read();
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
