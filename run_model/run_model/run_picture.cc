#include "run_model/run_model/run_picture.h"

#include <glog/logging.h>

#include <string>
#include <vector>

#include <run_model/class_scores.h>
#include <run_model/decode.h>
#include <run_model/error.h>
#include <run_model/labels.h>
#include <run_model/npy.h>
#include <run_model/top_k.h>
#include "base/text.h"
#include "run_model/run_model/installed_labels.h"
#include "run_model/run_model/measured_run.h"
#include "run_model/run_model/preprocessing_choice.h"
#include "run_model/run_model/stopwatch.h"
#include "run_model/shared/loaded_package.h"

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
  const std::filesystem::path labels_path = find_labels(settings.labels);
  const std::vector<std::string> labels = read_labels(labels_path);
  LoadedPackage loaded = load_package(package_request(settings), settings.threading,
                                      {settings.print_memory, settings.plan_memory});
  GraphExecutor& executor = loaded.executor;
  const Package& package = loaded.report.package;

  PictureReport report;
  const std::size_t input = choose_input(executor, settings.input_name);
  report.input.info = executor.inputs()[input];
  const std::size_t output = choose_output(executor, labels.size(), labels_path);
  report.output.info = executor.outputs()[output];
  const PreprocessingChoice choice =
      choose_preprocessing(settings.preprocessing, metadata_of(package), report.input.info);
  report.preprocessing = choice.preprocessing;
  report.layout = choice.layout;

  Stopwatch stopwatch;
  const Picture picture = load_picture(settings.image.string());
  loaded.report.timing.decode = stopwatch.lap();
  const Tensor input_tensor = executor.input(input);
  preprocess_into(picture.image, choice.preprocessing, choice.layout, input_tensor, &report.sides);
  loaded.report.timing.preprocess = loaded.report.timing.decode + stopwatch.lap();
  report.image = settings.image;
  report.format = picture.format;
  report.image_channels = picture.channels;
  report.image_orientation = picture.orientation;
  report.input.range = finite_range(input_tensor, "the preprocessed picture");
  if (!settings.dump_input.empty()) write_npy(settings.dump_input, input_tensor);
  fill_other_inputs(executor, input, settings);

  run_and_measure(loaded, settings);
  const Tensor result = executor.output(output);
  const std::vector<double> scores =
      class_scores(result, quantization_of(package, report.output.info, output));
  report.output.range = finite_range(result, "the model's output");
  report.output_is_distribution = is_distribution(scores);
  report.top = rank(scores, labels, settings.topk);
  report.run = loaded.report;
  return report;
}

}  // namespace run_model
