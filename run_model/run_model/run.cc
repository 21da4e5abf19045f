#include "run_model/run_model/run.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <run_model/class_scores.h>
#include <run_model/decode.h>
#include <run_model/error.h>
#include <run_model/labels.h>
#include <run_model/npy.h>
#include <run_model/npz.h>
#include <run_model/top_k.h>
#include "base/text.h"
#include "run_model/run_model/measured_run.h"
#include "run_model/run_model/preprocessing_choice.h"
#include "run_model/shared/loaded_package.h"
#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

const Metadata* metadata_of(const Package& package) {
  return package.metadata ? &*package.metadata : nullptr;
}

std::size_t choose_input(const GraphExecutor& executor, const std::string& name) {
  if (!name.empty()) return executor.input_index(name);
  if (executor.inputs().size() == 1) return 0;
  std::string names;
  for (const TensorInfo& input : executor.inputs()) {
    names += (names.empty() ? "" : ", ") + in_quotes(input.name);
  }
  if (names.empty()) throw Error(ErrorKind::kMismatch, "the model takes no input at all");
  throw Error(ErrorKind::kUsage, "the model has several inputs: " + names,
              "give all of them with --inputs");
}

void fill_other_inputs(GraphExecutor& executor, std::size_t picture, const Settings& settings) {
  for (std::size_t i = 0; i < executor.inputs().size(); ++i) {
    if (i == picture) continue;
    const std::string& name = executor.inputs()[i].name;
    if (!settings.fill_mode) {
      throw Error(ErrorKind::kMismatch,
                  "nothing sets the model's input " + in_quotes(name) + " beside the picture",
                  "--fill-mode zeros fills the others, and --inputs gives all of them");
    }
    fill_tensor(executor.input(i), *settings.fill_mode, settings.seed, name);
  }
}

// The first output with as many classes as there are labels; without any, the first one's misfit is
// the error.
std::size_t choose_output(const GraphExecutor& executor, std::size_t labels,
                          const std::filesystem::path& labels_path) {
  const std::vector<TensorInfo>& outputs = executor.outputs();
  if (outputs.empty()) throw Error(ErrorKind::kMismatch, "the model has no output");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    try {
      if (class_count(outputs[i].shape) == labels) return i;
    } catch (const Error&) {
      // This output is no list of classes; another one may be.
    }
  }
  check_label_count(labels, class_count(outputs.front().shape), labels_path);
  return 0;
}

Quantization quantization_of(const Package& package, const TensorInfo& output, std::size_t index) {
  Quantization quantization;
  if (package.metadata && index < package.metadata->outputs.size()) {
    const MetadataTensor& described = package.metadata->outputs[index];
    quantization = {described.scale, described.zero_point};
  }
  if (output.dtype.code != kDLFloat && quantization.scale == 1.0) {
    LOG(WARNING) << "the model's output is of " << dtype_name(output.dtype)
                 << " and no metadata gives its scale: the classes are in the right order, but "
                    "their probabilities may not be right";
  }
  return quantization;
}

std::vector<RankedClass> rank(const std::vector<double>& scores,
                              const std::vector<std::string>& labels, int count) {
  std::vector<RankedClass> ranked;
  for (const Prediction& best : top_k(scores, static_cast<std::size_t>(count))) {
    ranked.push_back({best.index, labels[best.index], best.probability});
  }
  return ranked;
}

}  // namespace

PictureReport run_picture(const Settings& settings) {
  const std::filesystem::path labels_path = settings.labels;
  const std::vector<std::string> labels = read_labels(labels_path);
  LoadedPackage loaded =
      load_package(package_request(settings), settings.threading,
                   {settings.print_memory, settings.plan_memory, settings.function});
  GraphExecutor& executor = loaded.executor;
  const Package& package = loaded.package;

  PictureReport report;
  report.run = begin_report(loaded);
  const std::size_t input = choose_input(executor, settings.input_name);
  report.input.info = executor.inputs()[input];
  const std::size_t output = choose_output(executor, labels.size(), labels_path);
  report.output.info = executor.outputs()[output];
  const PreprocessingChoice choice =
      choose_preprocessing(settings.preprocessing, metadata_of(package), report.input.info);
  report.preprocessing = choice.preprocessing;
  report.layout = choice.layout;

  Stopwatch stopwatch;
  const Picture picture =
      load_picture(settings.image.string(), settings.preprocessing.jpeg_decoder);
  report.run.timing.decode = stopwatch.lap();
  const Tensor input_tensor = executor.input(input);
  preprocess_into(picture.image, choice.preprocessing, choice.layout, input_tensor, &report.sides);
  report.run.timing.preprocess = report.run.timing.decode + stopwatch.lap();
  report.image = settings.image;
  report.format = picture.format;
  report.image_channels = picture.channels;
  report.image_orientation = picture.orientation;
  report.input.range = finite_range(input_tensor, "the preprocessed picture");
  if (!settings.dump_input.empty()) write_npy(settings.dump_input, input_tensor);
  fill_other_inputs(executor, input, settings);

  run_and_measure(loaded, settings, report.run);
  const Tensor result = executor.output(output);
  const std::vector<double> scores =
      class_scores(result, quantization_of(package, report.output.info, output));
  report.output.range = finite_range(result, "the model's output");
  report.output_is_distribution = is_distribution(scores);
  report.top = rank(scores, labels, settings.topk);
  return report;
}

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
  LoadedPackage loaded =
      load_package(package_request(settings), settings.threading,
                   {settings.print_memory, settings.plan_memory, settings.function});
  GraphExecutor& executor = loaded.executor;
  set_inputs(executor, settings);

  TensorsReport report;
  report.run = begin_report(loaded);
  report.inputs = executor.inputs();
  run_and_measure(loaded, settings, report.run);
  report.outputs_file = settings.outputs;
  for (std::size_t i = 0; i < executor.outputs().size(); ++i) {
    const TensorInfo& info = executor.outputs()[i];
    report.outputs.push_back({info, finite_range(executor.output(i), "the model's " + info.name)});
  }
  return report;
}

}  // namespace run_model
