#include "run_model/run_model/runs.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include <run_model/npy.h>
#include <run_model/npz.h>
#include "base/text.h"
#include "run_model/run_model/measured_run.h"
#include "run_model/run_model/written_files.h"
#include "run_model/shared/loaded_package.h"

namespace run_model {
namespace {

// The names of dimensions that may be any number, and the numbers of the others.
std::vector<std::string> named_dimensions(const TensorInfo& input) {
  std::vector<std::string> names = input.symbols;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) names[i] = std::to_string(input.shape[i]);
  }
  return names;
}

// By the ending, as numpy.load does by the content.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path,
                                      const std::vector<TensorInfo>& inputs) {
  if (path.extension() != ".npy") return read_npz(path);
  if (inputs.size() != 1) {
    throw Error(ErrorKind::kMismatch,
                path_in_quotes(path) + " is one array, but the model has " +
                    std::to_string(inputs.size()) + " inputs",
                "give an .npz file with an array of each input's name");
  }
  return {{inputs.front().name, read_npy(path)}};
}

// What an .npz file has.
std::vector<TensorInfo> forms_in(const std::filesystem::path& path) {
  std::vector<TensorInfo> forms;
  if (path.extension() == ".npy") return forms;
  for (const NamedTensor& named : read_npz(path)) {
    forms.push_back({named.name, named.tensor.shape(), named.tensor.dtype(), {}});
  }
  return forms;
}

void check_tensor(const Tensor& tensor, const TensorInfo& input, const std::string& file) {
  // Shapes that are not fixed are the executor's to judge.
  const bool same_shape = !input.symbols.empty() || tensor.shape() == input.shape;
  if (same_shape && same_dtype(tensor.dtype(), input.dtype)) return;
  throw Error(ErrorKind::kMismatch, file + " gives the input " + in_quotes(input.name) + " as " +
                                        tensor_form_name(tensor.dtype(), tensor.shape()) +
                                        ", but the model takes " +
                                        tensor_form_name(input.dtype, input.shape));
}

std::string missing_inputs(const std::vector<TensorInfo>& inputs,
                           const std::vector<NamedTensor>& tensors) {
  std::string missing;
  for (const TensorInfo& input : inputs) {
    const bool there = std::any_of(tensors.begin(), tensors.end(), [&](const NamedTensor& tensor) {
      return tensor.name == input.name;
    });
    if (!there) missing += (missing.empty() ? "" : ", ") + in_quotes(input.name);
  }
  return missing;
}

void set_inputs_from_file(GraphExecutor& executor, const Settings& settings) {
  const std::string file = path_in_quotes(settings.inputs);
  const std::vector<NamedTensor> tensors = read_tensors(settings.inputs, executor.inputs());
  for (const NamedTensor& named : tensors) {
    const std::size_t index = executor.input_index(named.name);
    check_tensor(named.tensor, executor.inputs()[index], file);
    executor.set_input(index, named.tensor);
  }
  const std::string missing = missing_inputs(executor.inputs(), tensors);
  if (!missing.empty() && !settings.fill_mode) {
    throw Error(ErrorKind::kMismatch, file + " lacks the model's input " + missing);
  }
}

// What is filled in has some shape, and the measurement means that one.
void warn_of_symbols(const GraphExecutor& executor) {
  for (const TensorInfo& input : executor.inputs()) {
    if (input.symbols.empty()) continue;
    LOG(WARNING) << "the model takes the input " << in_quotes(input.name) << " as "
                 << dtype_name(input.dtype) << " [" << comma_list(named_dimensions(input))
                 << "]: it is run on " << shape_name(input.shape)
                 << "; --inputs gives it another shape";
  }
}

void set_inputs(GraphExecutor& executor, const Settings& settings) {
  if (settings.inputs.empty()) warn_of_symbols(executor);
  if (settings.fill_mode) {
    for (std::size_t i = 0; i < executor.inputs().size(); ++i) {
      fill_tensor(executor.input(i), *settings.fill_mode, settings.seed, executor.inputs()[i].name);
    }
  }
  if (!settings.inputs.empty()) set_inputs_from_file(executor, settings);
}

}  // namespace

TensorsReport run_tensors(const Settings& settings) {
  LoadOptions load = load_options(settings);
  if (!settings.inputs.empty()) load.given_inputs = [&] { return forms_in(settings.inputs); };
  LoadedPackage loaded = load_package(package_request(settings), settings.threading, load);
  refuse_to_replace(loaded.package, settings);
  GraphExecutor& executor = loaded.executor;
  set_inputs(executor, settings);

  TensorsReport report;
  report.run = begin_report(loaded);
  report.inputs = executor.inputs();
  run_and_measure(loaded, settings, report.run);
  report.outputs_file = settings.outputs;
  for (std::size_t i = 0; i < executor.outputs().size(); ++i) {
    const Tensor output = executor.output(i);
    TensorInfo info = executor.outputs()[i];
    info.shape = output.shape();  // which only the run may tell
    report.outputs.push_back({info, finite_range(output, "the model's " + info.name)});
  }
  return report;
}

}  // namespace run_model
