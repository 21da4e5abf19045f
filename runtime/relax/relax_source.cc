#include "runtime/relax/relax_source.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/executor/model_loader.h"
#include "runtime/relax/relax_model.h"

namespace run_model {
namespace {

// N of "p_N".
std::optional<std::size_t> number_of_array(const std::string& name) {
  if (!name.starts_with("p_")) return std::nullopt;
  return whole_number<std::size_t>(std::string_view(name).substr(2));
}

}  // namespace

RelaxSource::RelaxSource(std::shared_ptr<Module> library, const std::string& function,
                         const std::vector<NamedArray>& arrays,
                         const std::function<std::vector<TensorInfo>()>& given_inputs)
    : module_(std::move(library)),
      library_(*as_model_library(*module_)),
      executable_(library_.relax_executable()),
      source_("library " + path_in_quotes(module_->path())),
      function_(choose_function(*executable_, function, source_)),
      inputs_(input_forms(*executable_, function_)) {
  take_arrays(arrays);
  std::vector<TensorInfo> given;
  const bool known = std::all_of(inputs_.begin(), inputs_.end(),
                                 [](const RelaxInput& input) { return input.known; });
  if (!known && given_inputs) given = given_inputs();
  for (RelaxInput& input : inputs_) {
    if (input.known) continue;
    const auto found = std::find_if(given.begin(), given.end(), [&](const TensorInfo& info) {
      return info.name == input.name;
    });
    if (found != given.end()) {
      take_form(input, found->dtype, std::vector<RelaxDimension>(found->shape.size()));
      continue;
    }
    throw Error(ErrorKind::kIncompatible,
                source_ + ": function " + in_quotes(function_.name) + " takes " +
                    in_quotes(input.name) + ", and nothing tells of what type and shape",
                "give it in --inputs; if it is a parameter, put the file with the parameters "
                "(model_params.npz for model.so) beside the library; caches that one function "
                "makes for another are handed on by --calls FILE");
  }
}

void RelaxSource::take_form(RelaxInput& input, DLDataType dtype,
                            std::vector<RelaxDimension> dims) const {
  const bool is_bool = same_dtype(dtype, kPlainBoolType) && executable_->bool_is_a_type;
  input.dtype = is_bool ? kFfiBoolType : dtype;
  input.dims = std::move(dims);
  input.known = true;
}

void RelaxSource::take_arrays(const std::vector<NamedArray>& arrays) {
  arrays_.resize(inputs_.size());
  for (const NamedArray& array : arrays) {
    auto found = std::find_if(inputs_.begin(), inputs_.end(),
                              [&](const RelaxInput& input) { return input.name == array.name; });
    const std::optional<std::size_t> number = number_of_array(array.name);
    if (found == inputs_.end() && number && arrays.size() <= inputs_.size() &&
        *number < arrays.size()) {
      found = inputs_.end() - static_cast<std::ptrdiff_t>(arrays.size() - *number);
    }
    if (found == inputs_.end()) {
      throw Error(ErrorKind::kMismatch,
                  "there is a parameter " + in_quotes(array.name) + ", but function " +
                      in_quotes(function_.name) + " of " + source_ + " takes " +
                      comma_list(inputs_, [](const auto& i) { return in_quotes(i.name); }));
    }
    const std::vector<std::int64_t>& shape = array.tensor.shape();
    const DLDataType dtype = array.tensor.dtype();
    if (!found->known) {
      std::vector<RelaxDimension> dims;
      for (const std::int64_t dim : shape) dims.push_back({dim, ""});
      take_form(*found, dtype, std::move(dims));
    }
    const std::string problem = misfit_of_input(*found, dtype, shape);
    if (!problem.empty()) throw Error(ErrorKind::kMismatch, "the parameters' file: " + problem);
    Tensor& kept = arrays_[static_cast<std::size_t>(found - inputs_.begin())];
    kept = array.tensor.aligned() ? array.tensor : array.tensor.clone();
  }
}

std::vector<std::vector<std::int64_t>> RelaxSource::least_shapes() const {
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    std::vector<std::int64_t>& shape = shapes.emplace_back();
    if (arrays_[i].defined()) {
      shape = arrays_[i].shape();
      continue;
    }
    for (const RelaxDimension& dim : inputs_[i].dims) {
      shape.push_back(dim.number < 0 ? 1 : dim.number);
    }
  }
  return shapes;
}

std::string RelaxSource::misfit(const std::vector<std::vector<std::int64_t>>& shapes) const {
  std::map<std::string, std::pair<std::int64_t, std::size_t>> symbols;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    for (std::size_t d = 0; d < inputs_[i].dims.size(); ++d) {
      const std::string& symbol = inputs_[i].dims[d].symbol;
      if (symbol.empty()) continue;
      const auto [known, is_new] = symbols.try_emplace(symbol, shapes[i][d], i);
      const auto [number, first] = known->second;
      if (number == shapes[i][d]) continue;
      return "the inputs " + in_quotes(inputs_[first].name) + " " + shape_name(shapes[first]) +
             " and " + in_quotes(inputs_[i].name) + " " + shape_name(shapes[i]) +
             " contradict each other: " + symbol + " of " + form_name(inputs_[i]) + " is " +
             std::to_string(number) + " in the one and " + std::to_string(shapes[i][d]) +
             " in the other";
    }
  }
  return {};
}

LoadedModel RelaxSource::model_for(const std::vector<std::vector<std::int64_t>>& shapes) {
  LoadedModel model{module_, {}, {}, {}, {}, {}, {}};
  model.convention.strides = true;
  if (executable_->bool_is_a_type) model.convention.bool_type = kFfiBoolType;
  model.relax = shared_from_this();
  std::vector<Param> constants;
  try {
    RelaxTrace trace = trace_function(*executable_, function_, inputs_, shapes, library_);
    model.graph = std::move(trace.graph);
    constants = std::move(trace.constants);
  } catch (const NotTraceable&) {
    // Other shapes may lead to functions that are.
    if (interpreter_ == nullptr) {
      interpreter_ = std::make_shared<RelaxInterpreter>(*executable_, function_, inputs_, library_);
    }
    model.graph = graph_of_call(function_, inputs_, shapes);
    model.interpreter = interpreter_;
  } catch (const Error& error) {
    // What an input has before the others are given, or before anything is, need not fit them.
    if (all_static(inputs_) || error.kind() == ErrorKind::kIncompatible) throw;
    model.graph = graph_of_call(function_, inputs_, shapes);
    model.failure = std::current_exception();
  }
  model.plan = plan_storage(model.graph, source_);
  bind_constants(model, constants);
  bind_arrays(model);
  return model;
}

// They are the same for all shapes: those that have to be copied are copied once.
void RelaxSource::bind_constants(LoadedModel& model, const std::vector<Param>& constants) {
  std::vector<Param> unbound;
  for (const Param& constant : constants) {
    if (!constants_.contains(constant.name)) unbound.push_back(constant);
  }
  ParamBinding fresh = bind_params(model.graph, unbound, executable_->file, source_);
  for (std::size_t i = 0; i < unbound.size(); ++i) {
    constants_.emplace(unbound[i].name, fresh.params[i]);
  }
  constant_bytes_in_place_ += fresh.bytes_in_place;
  constant_bytes_copied_ += fresh.bytes_copied;
  model.params.bytes_in_place = constant_bytes_in_place_;
  model.params.bytes_copied = constant_bytes_copied_;
  for (const std::size_t node : model.graph.inputs) {
    const auto found = constants_.find(model.graph.nodes[node].name);
    if (found == constants_.end()) continue;
    BoundParam param = found->second;
    param.entry = model.graph.nodes[node].first_output;
    model.params.params.push_back(std::move(param));
  }
}

void RelaxSource::bind_arrays(LoadedModel& model) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (!arrays_[i].defined()) continue;
    const std::size_t entry = model.graph.nodes[model.graph.inputs[i]].first_output;
    auto owner = std::make_shared<Tensor>(arrays_[i]);
    model.params.bytes_copied += arrays_[i].nbytes();
    model.params.params.push_back({entry, owner->data(), owner, true});
  }
}

}  // namespace run_model
