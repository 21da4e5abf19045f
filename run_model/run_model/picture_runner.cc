#include "run_model/run_model/picture_runner.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include <run_model/class_scores.h>
#include <run_model/error.h>
#include <run_model/labels.h>
#include <run_model/npy.h>
#include <run_model/npz.h>
#include <run_model/top_k.h>
#include "base/text.h"
#include "run_model/run_model/measured_run.h"
#include "run_model/run_model/written_files.h"
#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

const Metadata* metadata_of(const Package& package) {
  return package.metadata ? &*package.metadata : nullptr;
}

std::size_t choose_input(const GraphExecutor& executor, const std::string& name) {
  if (!name.empty()) return executor.input_index(name);
  if (executor.inputs().size() == 1) return 0;
  const std::string names =
      comma_list(executor.inputs(), [](const TensorInfo& input) { return in_quotes(input.name); });
  if (names.empty()) throw Error(ErrorKind::kMismatch, "the model takes no input at all");
  throw Error(ErrorKind::kUsage, "the model has several inputs: " + names,
              "give all of them with --inputs, or the .params file where they are parameters");
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

LoadedPackage load(const Settings& settings) {
  LoadedPackage loaded =
      load_package(package_request(settings), settings.threading, load_options(settings));
  refuse_to_replace(loaded.package, settings);
  return loaded;
}

// A description that asks for outputs that are not there is wrong for every picture.
bool is_output(const GraphExecutor& executor, const Metadata* metadata, const std::string& name) {
  for (std::size_t i = 0; i < executor.outputs().size(); ++i) {
    if (executor.outputs()[i].name == name) return true;
    if (metadata != nullptr && i < metadata->outputs.size() && metadata->outputs[i].name == name) {
      return true;
    }
  }
  return false;
}

}  // namespace

PictureRunner::PictureRunner(const Settings& settings)
    : settings_(settings), loaded_(load(settings)) {
  choose_tasks();
  GraphExecutor& executor = loaded_.executor;
  input_ = choose_input(executor, settings.input_name);
  if (tasks_.empty()) {
    output_ = choose_output(executor, labels_.size(), settings.labels);
  }
  choice_ = choose_preprocessing(settings.preprocessing, metadata_of(loaded_.package),
                                 executor.inputs()[input_]);
  if (choice_.shape != executor.inputs()[input_].shape) {
    executor.set_input(input_, Tensor::empty(choice_.shape, executor.inputs()[input_].dtype));
  }
  fill_other_inputs(executor, input_, settings);
  if (!settings.given_outputs.empty()) {
    given_ = read_npz(settings.given_outputs);
    for (const NamedTensor& named : given_) {
      if (is_output(executor, metadata_of(loaded_.package), named.name)) continue;
      throw Error(ErrorKind::kMismatch,
                  path_in_quotes(settings.given_outputs) + " has an array " +
                      in_quotes(named.name) + ", and the model has no such output",
                  "name the arrays as metadata.json names the outputs, or output_0, output_1");
    }
  }
  if (!settings.detector.empty()) load_detector();
  if (!settings.compare_with.empty()) {
    const PictureReport other = run(settings.compare_with, false, nullptr);
    for (const TaskResult& result : other.results) {
      if (const auto* embedding = std::get_if<EmbeddingResult>(&result)) reference_ = *embedding;
    }
    if (!reference_) {
      throw Error(ErrorKind::kUsage, "--compare-with is for models that give an embedding",
                  "say with --task which output is one");
    }
  }
}

// Another model of the same folder, with all that its metadata says of it.
void PictureRunner::load_detector() {
  if (tasks_.empty()) {
    throw Error(ErrorKind::kUsage, "--detector is for models with tasks",
                "say what this one's outputs mean with --task FILE.json");
  }
  detector_settings_ = Settings();
  detector_settings_.model = settings_.detector;
  detector_settings_.artifacts = settings_.artifacts;
  detector_settings_.target = settings_.target;
  detector_settings_.verify = settings_.verify;
  detector_settings_.threading = settings_.threading;
  detector_settings_.needs_task = true;
  detector_ = std::make_unique<PictureRunner>(detector_settings_);
  refuse_to_replace(detector_->loaded_.package, settings_);
  const std::vector<Task>& tasks = detector_->tasks();
  if (std::none_of(tasks.begin(), tasks.end(),
                   [](const Task& task) { return task.kind() == TaskKind::kDetection; })) {
    throw Error(ErrorKind::kUsage,
                "the model " + in_quotes(settings_.detector) + " of --detector finds no boxes",
                "name a model whose tasks have a detection");
  }
}

void PictureRunner::choose_tasks() {
  TaskRequest request{settings_.task, settings_.score_threshold, {}};
  if (settings_.labels_given) request.labels = settings_.labels;
  tasks_ = run_model::choose_tasks(request, loaded_.package);
  if (!tasks_.empty()) return;
  if (settings_.needs_task) {
    throw Error(ErrorKind::kUsage,
                "nothing says what this model's outputs mean: the artifact has no metadata with "
                "tasks",
                "describe them with --task FILE.json (postprocess/README.md)");
  }
  if (!settings_.labels_found) {
    throw Error(ErrorKind::kUsage, "the argument LABELS is missing",
                "run_model NAME ARTIFACTS IMAGE LABELS [INPUT] classifies a picture, and --help "
                "shows more");
  }
  labels_ = read_labels(settings_.labels);
}

std::vector<NetworkOutput> PictureRunner::outputs() {
  std::vector<NetworkOutput> all = network_outputs(loaded_.executor, metadata_of(loaded_.package));
  if (given_.empty()) return all;
  for (NetworkOutput& output : all) {
    const auto found = std::find_if(given_.begin(), given_.end(), [&](const NamedTensor& named) {
      return named.name == output.name || named.name == output.alias;
    });
    if (found == given_.end()) {
      throw Error(ErrorKind::kMismatch,
                  path_in_quotes(settings_.given_outputs) + " lacks the output " +
                      in_quotes(output.name.empty() ? output.alias : output.name));
    }
    output.tensor = found->tensor;
  }
  return all;
}

void PictureRunner::interpret(PictureReport& report) {
  Stopwatch stopwatch;
  const GraphExecutor& executor = loaded_.executor;
  if (tasks_.empty()) {
    const Tensor result = executor.output(output_);
    report.output.info = executor.outputs()[output_];
    const std::vector<double> scores =
        class_scores(result, quantization_of(loaded_.package, report.output.info, output_));
    report.output.range = finite_range(result, "the model's output");
    report.output_is_distribution = is_distribution(scores);
    report.top = rank(scores, labels_, settings_.topk);
  } else {
    report.tasks.insert(report.tasks.end(), tasks_.begin(), tasks_.end());
    const std::vector<NetworkOutput> all = outputs();
    for (std::size_t i = 0; i < report.outputs.size(); ++i) {
      report.outputs[i].shape = all[i].tensor.shape();  // which only the run may tell
    }
    for (const Task& task : tasks_) {
      report.results.push_back(
          postprocess(task, all, report.sides, static_cast<std::size_t>(settings_.topk)));
      const auto* embedding = std::get_if<EmbeddingResult>(&report.results.back());
      if (embedding != nullptr && reference_) {
        report.cosine = cosine_similarity(*embedding, *reference_);
      }
    }
    report.run.timing.postprocess += stopwatch.lap();
  }
}

// Preprocesses what is to be seen, runs the model, and adds its results.
void PictureRunner::see(const Image& image, const PictureRegion* region, bool measure,
                        PictureReport& report) {
  GraphExecutor& executor = loaded_.executor;
  Stopwatch stopwatch;
  const Tensor input_tensor = executor.input(input_);
  preprocess_into(image, choice_.preprocessing, choice_.layout, input_tensor, &report.sides,
                  region);
  report.run.timing.preprocess += stopwatch.lap();
  report.input.range = finite_range(input_tensor, "the preprocessed picture");
  if (measure && !settings_.dump_input.empty()) write_npy(settings_.dump_input, input_tensor);
  if (given_.empty()) {
    if (measure) {
      run_and_measure(loaded_, settings_, report.run);
    } else {
      stopwatch.lap();
      executor.run();
      report.run.timing.run += stopwatch.lap();
    }
  }
  interpret(report);
}

// What the detector finds, the best first.
std::vector<SeenRegion> PictureRunner::find_regions(const Image& image) {
  PictureReport found;
  detector_->see(image, nullptr, false, found);
  return regions_of(found.results, tasks_, image.width(), image.height());
}

PictureReport PictureRunner::run(const std::filesystem::path& path, bool measure,
                                 Picture* decoded) {
  GraphExecutor& executor = loaded_.executor;
  PictureReport report;
  if (measure) report.run = begin_report(loaded_);
  report.input.info = executor.inputs()[input_];
  report.preprocessing = choice_.preprocessing;
  report.layout = choice_.layout;

  Stopwatch stopwatch;
  Picture picture = load_picture(path.string(), settings_.preprocessing.jpeg_decoder);
  report.run.timing.decode = stopwatch.lap();
  report.run.timing.preprocess = report.run.timing.decode;
  report.described = !tasks_.empty();
  if (report.described) report.outputs = executor.outputs();
  report.image = path;
  report.format = picture.format;
  report.image_channels = picture.channels;
  report.image_orientation = picture.orientation;
  report.sides.original_width = picture.image.width();
  report.sides.original_height = picture.image.height();
  if (settings_.region) {
    report.in_regions = true;
    report.regions = {{*settings_.region, std::nullopt}};
  } else if (detector_ != nullptr) {
    report.in_regions = true;
    report.regions = find_regions(picture.image);
  }
  if (!report.in_regions) see(picture.image, nullptr, measure, report);
  // What is measured is measured of the first.
  bool first = true;
  for (const SeenRegion& seen : report.regions) {
    see(picture.image, &seen.region, measure && first, report);
    first = false;
  }
  if (decoded != nullptr) *decoded = std::move(picture);
  return report;
}

}  // namespace run_model
