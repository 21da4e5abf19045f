#include "run_model/run_model/runs.h"

#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <run_model/error.h>
#include <run_model/module.h>
#include <run_model/npz.h>
#include <run_model/package.h>
#include <run_model/relax_session.h>
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "run_model/run_model/written_files.h"
#include "run_model/shared/formatted.h"
#include "run_model/shared/json.h"
#include "run_model/shared/stopwatch.h"
#include "run_model/shared/thread_plan.h"

namespace run_model {
namespace {

constexpr std::int64_t kSchema = 1;
constexpr std::string_view kHint = "run_model/README.md describes the file of --calls";

std::string value_name(const RelaxValue& value) {
  switch (value.kind()) {
    case RelaxValue::Kind::kNothing:
      return "nothing";
    case RelaxValue::Kind::kTensor: {
      const Tensor tensor = value.tensor();
      return tensor_form_name(tensor.dtype(), tensor.shape());
    }
    case RelaxValue::Kind::kShape:
      return "shape " + shape_name(value.shape());
    case RelaxValue::Kind::kInteger:
      return std::to_string(value.integer());
    case RelaxValue::Kind::kBool:
      return value.integer() != 0 ? "true" : "false";
    case RelaxValue::Kind::kReal:
      return std::to_string(value.real());
    case RelaxValue::Kind::kText:
      return in_quotes(value.text());
    case RelaxValue::Kind::kTuple:
      return "(" + comma_list(value.items(), value_name) + ")";
    case RelaxValue::Kind::kState:
      return "a state";
  }
  return "";
}

// What a saved result is written as: tensors as they are, shapes and numbers as int64 or float64.
Tensor array_of(const RelaxValue& value, const JsonField& where) {
  const auto of_integers = [](const std::vector<std::int64_t>& shape,
                              const std::vector<std::int64_t>& numbers) {
    const Tensor tensor = Tensor::empty(shape, {kDLInt, 64, 1});
    std::copy(numbers.begin(), numbers.end(), tensor.elements<std::int64_t>().begin());
    return tensor;
  };
  switch (value.kind()) {
    case RelaxValue::Kind::kTensor:
      return value.tensor().clone();
    case RelaxValue::Kind::kShape:
      return of_integers({static_cast<std::int64_t>(value.shape().size())}, value.shape());
    case RelaxValue::Kind::kInteger:
    case RelaxValue::Kind::kBool:
      return of_integers({}, {value.integer()});
    case RelaxValue::Kind::kReal: {
      const Tensor tensor = Tensor::empty({}, {kDLFloat, 64, 1});
      tensor.elements<double>()[0] = value.real();
      return tensor;
    }
    default:
      where.fail("saves " + value_name(value) + ", expected a tensor, a shape or a number");
  }
}

// The calls of a file, done one by one.
class Calls {
 public:
  Calls(RelaxSession session, const std::vector<NamedTensor>& inputs,
        const std::vector<NamedArray>& parameters)
      : session_(std::move(session)) {
    for (const NamedTensor& each : inputs) {
      inputs_.insert_or_assign(each.name, RelaxValue::of_tensor(each.tensor));
    }
    for (const NamedArray& each : parameters) {
      parameters_.push_back(RelaxValue::of_tensor(each.tensor));
    }
  }

  CallReport run(const JsonField& call) {
    refuse_other_members(call, kCallMembers);
    CallReport report;
    report.function = call.member("function").string();
    std::vector<RelaxValue> arguments;
    if (const auto given = find_member(call, "arguments")) {
      for (std::size_t i = 0; i < given->array_size(); ++i) add_argument(given->at(i), arguments);
    }
    Stopwatch stopwatch;
    const RelaxValue result = session_.call(report.function, arguments);
    report.milliseconds = stopwatch.lap();
    report.value = value_name(result);
    report.result = text_or_empty(call, "result");
    if (!report.result.empty()) results_.insert_or_assign(report.result, result);
    if (const auto saved = find_member(call, "save")) {
      for (const std::string& name : saved->keys()) {
        const JsonField path = saved->member(name);
        saved_.push_back({name, array_of(item(result, path.string(), path), path)});
      }
    }
    return report;
  }

  const std::vector<NamedTensor>& saved() const { return saved_; }

 private:
  static constexpr std::string_view kCallMembers[] = {"function", "arguments", "result", "save"};

  // The item that a path as "1.0" leads to; the whole value for an empty one.
  static RelaxValue item(RelaxValue value, std::string_view path, const JsonField& where) {
    while (!path.empty()) {
      const std::size_t point = path.find('.');
      const std::string_view text = path.substr(0, point);
      path = point == path.npos ? std::string_view() : path.substr(point + 1);
      const auto index = whole_number<std::size_t>(text);
      if (!index) where.fail("has " + in_quotes(text) + ", expected the number of an item");
      if (value.kind() != RelaxValue::Kind::kTuple || *index >= value.items().size()) {
        where.fail("asks for item " + std::to_string(*index) + " of " + value_name(value));
      }
      value = value.items()[*index];
    }
    return value;
  }

  // "cache" or "step.1.0".
  RelaxValue result(const JsonField& where) const {
    const std::string& text = where.string();
    const std::size_t point = text.find('.');
    const auto found = results_.find(text.substr(0, point));
    if (found == results_.end()) {
      where.fail("names a result " + in_quotes(text.substr(0, point)) +
                 ", which no call before has");
    }
    return item(found->second, point == text.npos ? "" : std::string_view(text).substr(point + 1),
                where);
  }

  RelaxValue input(const JsonField& where) const {
    const auto found = inputs_.find(where.string());
    if (found != inputs_.end()) return found->second;
    where.fail("names an input " + in_quotes(where.string()) +
               ", which the file of --inputs does not have");
  }

  void add_argument(const JsonField& given, std::vector<RelaxValue>& arguments) const {
    const std::vector<std::string> keys = given.keys();
    if (keys.size() != 1) given.fail("has several members, expected one: what the argument is");
    const std::string& kind = keys.front();
    const JsonField value = given.member(kind);
    if (kind != "parameters") {
      arguments.push_back(argument(kind, value));
      return;
    }
    if (parameters_.empty()) {
      value.fail("asks for the model's parameters, but there is no file with them beside it "
                 "(model_params.npz for model.so)");
    }
    if (one_of(value, {"each", "tuple"}) == "tuple") {
      arguments.push_back(RelaxValue::of_tuple(parameters_));
    } else {
      arguments.insert(arguments.end(), parameters_.begin(), parameters_.end());
    }
  }

  RelaxValue argument(const std::string& kind, const JsonField& value) const {
    if (kind == "input") return input(value);
    if (kind == "result") return result(value);
    if (kind == "shape") return RelaxValue::of_shape(shape_field(value));
    if (kind == "integer") {
      return RelaxValue::of_integer(value.integer(std::numeric_limits<std::int64_t>::min(),
                                                  std::numeric_limits<std::int64_t>::max()));
    }
    if (kind == "real") return RelaxValue::of_real(value.number());
    if (kind == "bool") return RelaxValue::of_bool(value.boolean());
    if (kind == "text") return RelaxValue::of_text(value.string());
    if (kind == "nothing") return {};
    if (kind != "tuple") {
      value.fail(
          "is no kind of argument, expected input, result, parameters, shape, integer, real, "
          "bool, text, tuple or nothing");
    }
    std::vector<RelaxValue> items;
    for (std::size_t i = 0; i < value.array_size(); ++i) add_argument(value.at(i), items);
    return RelaxValue::of_tuple(items);
  }

  RelaxSession session_;
  std::map<std::string, RelaxValue> inputs_;
  std::vector<RelaxValue> parameters_;
  std::map<std::string, RelaxValue> results_;
  std::vector<NamedTensor> saved_;
};

}  // namespace

CallsReport run_calls(const Settings& settings) {
  Stopwatch stopwatch;
  const auto file = MappedFile::open(settings.calls, "file of calls");
  const JsonDocument document(as_text(file->bytes()),
                              "file of calls " + path_in_quotes(settings.calls),
                              std::string(kHint));
  const JsonField root = document.root();
  check_schema_version(root, kSchema, "the file of calls", std::string(kHint));
  static constexpr std::string_view kMembers[] = {"schema_version", "calls"};
  refuse_other_members(root, kMembers);

  const Package package = open_package(package_request(settings));
  refuse_to_replace(package, settings);
  const auto threads = start_threads(make_thread_plan(settings.threading));
  const std::vector<NamedTensor> inputs =
      settings.inputs.empty() ? std::vector<NamedTensor>() : read_npz(settings.inputs);
  Calls calls(RelaxSession(Module::open(package.files.library), threads), inputs,
              package.files.arrays);

  CallsReport report;
  report.library = package.files.library;
  report.load_milliseconds = stopwatch.lap();
  const JsonField list = root.member("calls");
  for (std::size_t i = 0; i < list.array_size(); ++i) report.calls.push_back(calls.run(list.at(i)));
  for (const NamedTensor& each : calls.saved()) report.outputs.push_back(each.name);
  if (!settings.outputs.empty()) {
    write_npz(settings.outputs, calls.saved());
    report.outputs_file = settings.outputs;
  }
  return report;
}

std::string calls_report_text(const CallsReport& report) {
  std::string text;
  for (const CallReport& call : report.calls) {
    text += call.function + ": " + call.value + formatted(", %.2f ms\n", call.milliseconds);
  }
  if (!report.outputs_file.empty()) {
    text += "written to " + path_in_quotes(report.outputs_file) + ": " +
            comma_list(report.outputs, [](const std::string& name) { return name; }) + "\n";
  }
  return text;
}

std::string calls_report_json(const CallsReport& report) {
  Json json = Json::object({{"schema_version", kReportSchema},
                            {"library", report.library.string()},
                            {"load_ms", report.load_milliseconds}});
  Json calls = Json::array();
  for (const CallReport& call : report.calls) {
    calls.add(Json::object({{"function", call.function},
                            {"result", call.result.empty() ? Json() : Json(call.result)},
                            {"value", call.value},
                            {"ms", call.milliseconds}}));
  }
  json.put("calls", std::move(calls));
  json.put("outputs", Json(report.outputs));
  json.put("outputs_file",
           report.outputs_file.empty() ? Json() : Json(report.outputs_file.string()));
  return json.text();
}

}  // namespace run_model
