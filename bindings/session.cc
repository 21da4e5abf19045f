#include "bindings/session.h"

#include <algorithm>
#include <array>
#include <utility>

#include <run_model/error.h>
#include <run_model/labels.h>
#include <run_model/network_outputs.h>
#include <run_model/postprocess.h>
#include "base/text.h"
#include "preprocess/open_sides.h"
#include "run_model/shared/task_json.h"

namespace run_model {
namespace {

const MetadataTensor& described_input(const Package& package, const std::string& name) {
  const std::string input = "the model's input " + in_quotes(name);
  if (!package.metadata || !package.metadata->preprocessing) {
    throw Error(ErrorKind::kMismatch, "nothing says how " + input + " wants its pixels",
                "compile the model with --preprocessing, or set the input as a tensor");
  }
  const std::vector<MetadataTensor>& inputs = package.metadata->inputs;
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const MetadataTensor& one) { return one.name == name; });
  if (found == inputs.end() || found->layout.empty()) {
    throw Error(ErrorKind::kMismatch,
                path_in_quotes(package.metadata_path) + " gives no layout for " + input,
                "say there whether it is NCHW or NHWC, or set the input as a tensor");
  }
  return *found;
}

ExecutorOptions executor_options(const SessionOptions& options) {
  ExecutorOptions own;
  own.devices = options.devices;
  if (options.threads != 0) {
    own.threads = std::make_shared<ThreadPool>(ThreadPoolOptions{options.threads});
  }
  return own;
}

std::vector<Task> tasks_of(const SessionOptions& options, const Package& package) {
  std::vector<Task> tasks = choose_tasks(options.tasks, package);
  if (tasks.empty()) {
    tasks.push_back({ClassificationTask(), {}, std::nullopt});
    if (!options.tasks.labels.empty()) tasks[0].labels = read_labels(options.tasks.labels);
  }
  return tasks;
}

}  // namespace

Session::Session(const SessionOptions& options)
    : package_(open_package(options.request)),
      tasks_(tasks_of(options, package_)),
      executor_(package_.files, executor_options(options)) {
  check_metadata(package_, executor_);
}

std::string Session::output_name(std::size_t index) const {
  const std::string& own = executor_.outputs().at(index).name;
  if (!package_.metadata || index >= package_.metadata->outputs.size()) return own;
  const std::string& described = package_.metadata->outputs[index].name;
  return described.empty() ? own : described;
}

void Session::set_picture(std::size_t index, const Image& image, int width, int height) {
  const TensorInfo& input = executor_.inputs().at(index);
  const Layout layout = parse_layout(described_input(package_, input.name).layout);
  Preprocessing preprocessing = *package_.metadata->preprocessing;
  std::optional<std::array<int, 2>> size;
  if (width != 0 || height != 0) size = {width, height};
  const std::vector<std::int64_t> shape = shape_with_sides(input, layout, size);
  if (size) {
    preprocessing.resize = resize_for_side(preprocessing, std::max(width, height));
    preprocessing.crop = 0;
  }
  if (shape != input.shape) executor_.set_input(index, Tensor::empty(shape, input.dtype));
  PreprocessReport report;
  preprocess_into(image, preprocessing, layout, executor_.input(index), &report,
                  region_ ? &*region_ : nullptr);
  picture_ = report;
  has_run_ = false;
}

void Session::run() {
  executor_.run();
  has_run_ = true;
}

std::vector<TaskResult> Session::found(std::size_t classes) const {
  if (!picture_ || !has_run_) {
    throw Error(ErrorKind::kUsage, "results are of a picture, and none was set and run");
  }
  const std::vector<NetworkOutput> outputs =
      network_outputs(executor_, package_.metadata ? &*package_.metadata : nullptr);
  std::vector<TaskResult> results;
  for (const Task& task : tasks_) {
    results.push_back(postprocess(task, outputs, *picture_, classes));
  }
  return results;
}

std::string Session::results(std::size_t classes) const {
  const std::vector<TaskResult> results = found(classes);
  Json list = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    Json item = Json::object();
    put_result(tasks_[i], results[i], *picture_, item);
    list.add(std::move(item));
  }
  return list.compact();
}

std::string Session::regions_for(const Session& other) const {
  if (std::none_of(tasks_.begin(), tasks_.end(),
                   [](const Task& task) { return task.kind() == TaskKind::kDetection; })) {
    throw Error(ErrorKind::kUsage, "the model that is to find regions finds no boxes",
                "take one whose tasks have a detection");
  }
  const std::vector<TaskResult> results = found(1);
  return regions_json(
             regions_of(results, other.tasks_, picture_->original_width, picture_->original_height))
      .compact();
}

}  // namespace run_model
