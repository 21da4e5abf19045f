#include "bindings/session.h"

#include <algorithm>
#include <utility>

#include <run_model/error.h>
#include <run_model/labels.h>
#include <run_model/network_outputs.h>
#include <run_model/postprocess.h>
#include "base/text.h"
#include "run_model/shared/task_json.h"

namespace run_model {
namespace {

ExecutorOptions on_threads(int threads) {
  ExecutorOptions options;
  if (threads != 0) options.threads = std::make_shared<ThreadPool>(ThreadPoolOptions{threads});
  return options;
}

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

// The input's shape with the sides that are asked for, where the model leaves them open.
std::vector<std::int64_t> with_sides(const TensorInfo& input, std::string_view axes, int width,
                                     int height) {
  std::vector<std::int64_t> shape = input.shape;
  for (std::size_t i = 0; i < std::min(shape.size(), axes.size()); ++i) {
    if (axes[i] != 'H' && axes[i] != 'W') continue;
    const std::int64_t asked = axes[i] == 'H' ? height : width;
    const bool open = i < input.symbols.size() && !input.symbols[i].empty();
    if (open ? asked <= 0 : asked != 0 && asked != shape[i]) {
      throw Error(ErrorKind::kMismatch,
                  "the model's input " + in_quotes(input.name) + " has " +
                      (open ? "pictures of any size" : "the shape " + shape_name(shape)) +
                      ", and a width of " + std::to_string(width) + " and a height of " +
                      std::to_string(height) + " were asked for",
                  open ? "say how large the model is to see them" : "give 0 for both");
    }
    if (open) shape[i] = asked;
  }
  return shape;
}

}  // namespace

Session::Session(const PackageRequest& request, const std::string& labels, int threads)
    : package_(open_package(request)),
      labels_(labels.empty() ? std::vector<std::string>() : read_labels(labels)),
      executor_(package_.files, on_threads(threads)) {
  check_metadata(package_, executor_);
  if (!package_.metadata) return;
  for (Task& task : package_.metadata->tasks) {
    if (lacks_labels(task)) task.labels = labels_;
  }
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
  const std::vector<std::int64_t> shape = with_sides(input, layout_name(layout), width, height);
  if (shape != input.shape) executor_.set_input(index, Tensor::empty(shape, input.dtype));
  PreprocessReport report;
  preprocess_into(image, *package_.metadata->preprocessing, layout, executor_.input(index),
                  &report);
  picture_ = report;
  has_run_ = false;
}

void Session::run() {
  executor_.run();
  has_run_ = true;
}

std::string Session::results(std::size_t classes) const {
  if (!picture_ || !has_run_) {
    throw Error(ErrorKind::kUsage, "results are of a picture, and none was set and run");
  }
  const Metadata* metadata = package_.metadata ? &*package_.metadata : nullptr;
  const std::vector<NetworkOutput> outputs = network_outputs(executor_, metadata);
  std::vector<Task> tasks = metadata->tasks;
  if (tasks.empty()) {
    tasks.push_back({ClassificationTask(), labels_, std::nullopt});
  }
  Json list = Json::array();
  for (const Task& task : tasks) {
    Json item = Json::object();
    put_result(task, postprocess(task, outputs, *picture_, classes), *picture_, item);
    list.add(std::move(item));
  }
  return list.compact();
}

}  // namespace run_model
