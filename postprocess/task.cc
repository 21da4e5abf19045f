#include <run_model/task.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "postprocess/fields/task_fields.h"
#include "postprocess/fields/task_names.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxTaskBytes = std::size_t{4} << 20;

}  // namespace

std::string_view task_kind_name(TaskKind kind) { return kTaskKinds.name(kind); }

std::string_view map_quantity_name(MapQuantity quantity) { return kMapQuantities.name(quantity); }

std::vector<Task> parse_tasks(std::string_view text, const std::string& name) {
  const JsonDocument document(text, name, "postprocess/README.md describes tasks");
  const JsonField root = document.root();
  return tasks_field(root.has("tasks") ? root.member("tasks") : root);
}

std::vector<Task> read_tasks(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxTaskBytes, "a description of tasks");
  return parse_tasks(as_text(bytes), path_in_quotes(path));
}

void set_score_threshold(Task& task, double threshold) {
  if (auto* detection = std::get_if<DetectionTask>(&task.what)) {
    detection->score_threshold = threshold;
  } else if (auto* segmentation = std::get_if<SegmentationTask>(&task.what)) {
    segmentation->threshold = threshold;
  } else if (auto* landmarks = std::get_if<LandmarksTask>(&task.what)) {
    landmarks->threshold = threshold;
  }
}

bool lacks_labels(const Task& task) {
  const bool of_classes = task.kind() == TaskKind::kClassification ||
                          task.kind() == TaskKind::kDetection ||
                          task.kind() == TaskKind::kSegmentation;
  return of_classes && task.labels.empty();
}

}  // namespace run_model
