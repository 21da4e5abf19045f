#include <run_model/postprocess.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <run_model/class_scores.h>
#include <run_model/error.h>
#include <run_model/top_k.h>
#include "postprocess/candidates.h"
#include "postprocess/instance_masks.h"
#include "postprocess/output_values.h"
#include "postprocess/segmentation.h"
#include "postprocess/way_back.h"

namespace run_model {
namespace {

std::string label_of(const Task& task, std::size_t index) {
  return index < task.labels.size() ? task.labels[index] : "";
}

CandidateBlocks blocks_of(const DetectionTask& task, std::size_t labels,
                          std::span<const NetworkOutput> outputs, const InputSides& input) {
  if (const auto* form = std::get_if<SsdForm>(&task.form)) {
    return ssd_blocks(task, *form, labels, outputs, input);
  }
  if (const auto* form = std::get_if<YoloRowsForm>(&task.form)) {
    return yolo_row_blocks(task, *form, labels, outputs, input);
  }
  if (const auto* form = std::get_if<YoloHeadsForm>(&task.form)) {
    return yolo_head_blocks(*form, labels, outputs, input);
  }
  if (const auto* form = std::get_if<BoxesForm>(&task.form)) {
    return ready_box_blocks(task, *form, labels, outputs, input);
  }
  return box_row_blocks(task, std::get<BoxRowsForm>(task.form), outputs, input);
}

DetectionResult detect(const Task& whole, const DetectionTask& task,
                       std::span<const NetworkOutput> outputs, const PreprocessReport& picture) {
  const InputSides input{static_cast<double>(picture.input_width),
                         static_cast<double>(picture.input_height)};
  const CandidateBlocks blocks = blocks_of(task, whole.labels.size(), outputs, input);
  const std::vector<Candidate> kept =
      suppress(task, choose_candidates(task, blocks, whole.labels.size(), input));
  const WayBack back(picture);
  std::optional<MaskMaker> masks;
  if (task.masks) masks.emplace(*task.masks, outputs, picture);
  DetectionResult result;
  for (const Candidate& candidate : kept) {
    Detection detection;
    detection.box = back.box(candidate.decoded.box);
    if (task.clip == BoxClip::kPicture) {
      const auto width = static_cast<double>(picture.original_width);
      const auto height = static_cast<double>(picture.original_height);
      Box& b = detection.box;
      b = {std::clamp(b.left, 0.0, width), std::clamp(b.top, 0.0, height),
           std::clamp(b.right, 0.0, width), std::clamp(b.bottom, 0.0, height)};
    }
    detection.class_index = candidate.class_index;
    detection.label = label_of(whole, candidate.class_index);
    detection.score = candidate.score;
    for (const Keypoint& point : candidate.decoded.keypoints) {
      const auto [x, y] = back.to_picture(point.x, point.y);
      detection.keypoints.push_back({x, y, point.score});
    }
    if (masks) detection.mask = masks->make(candidate.decoded, detection.box);
    result.detections.push_back(std::move(detection));
  }
  return result;
}

LandmarksResult find_landmarks(const Task& whole, const LandmarksTask& task,
                               std::span<const NetworkOutput> outputs,
                               const PreprocessReport& picture) {
  const OutputValues values(find_output(outputs, task.output));
  const std::size_t columns = task.columns.size();
  const std::string expected =
      (task.points > 0 ? "at least " + std::to_string(task.points) : std::string("some")) +
      " points of " + std::to_string(columns) + " numbers each";
  // Converters leave points in one row as often as not.
  const std::size_t there = values.size() / columns;
  const std::vector<std::size_t>& sides = values.dimensions();
  const bool rows = sides.size() == 2 && sides[1] == columns;
  if (values.size() % columns != 0 || there == 0 || there < task.points ||
      (!rows && sides.size() > 1)) {
    values.fail_shape(expected);
  }
  const std::size_t count = task.points > 0 ? task.points : there;
  if (!whole.labels.empty() && whole.labels.size() != count) {
    throw Error(ErrorKind::kMismatch, "the task has " + std::to_string(whole.labels.size()) +
                                          " labels for " + std::to_string(count) + " points");
  }
  for (const auto& connection : task.connections) {
    if (connection[0] >= count || connection[1] >= count) {
      throw Error(ErrorKind::kMismatch, "the task connects point " +
                                            std::to_string(std::max(connection[0], connection[1])) +
                                            ", but there are " + std::to_string(count));
    }
  }
  LandmarksResult result;
  const bool shares = task.units == Units::kNormalized;
  const double unit_x = shares ? picture.input_width : 1.0;
  const double unit_y = shares ? picture.input_height : 1.0;
  const WayBack back(picture);
  const auto share = [&](double value) {
    return task.point_activation == Activation::kSigmoid ? sigmoid(value) : value;
  };
  for (std::size_t i = 0; i < count; ++i) {
    Landmark point;
    double x = 0.0, y = 0.0;
    for (std::size_t c = 0; c < columns; ++c) {
      const double value = values.data()[i * columns + c];
      switch (task.columns[c]) {
        case PointColumn::kX:
          x = value * unit_x;
          break;
        case PointColumn::kY:
          y = value * unit_y;
          break;
        case PointColumn::kZ:
          point.z = value * unit_x / picture.scale_x;
          break;
        case PointColumn::kScore:
          point.score = share(value);
          break;
        case PointColumn::kVisibility:
          point.visibility = share(value);
          break;
        case PointColumn::kPresence:
          point.presence = share(value);
          break;
        case PointColumn::kOther:
          break;
      }
    }
    const WayBack::Point at = back.to_picture(x, y);
    point.x = at[0];
    point.y = at[1];
    result.points.push_back(point);
  }
  if (task.confidence) {
    const OutputValues confidence(find_output(outputs, *task.confidence));
    if (confidence.size() != 1) confidence.fail_shape("one number, the confidence");
    const bool raw = task.confidence_activation == Activation::kSigmoid;
    if (!raw) confidence.check_shares(confidence.values(), "a confidence");
    const double value = *confidence.data();
    result.confidence = raw ? sigmoid(value) : clamped_share(value);
    result.present = *result.confidence >= task.threshold;
  }
  return result;
}

std::vector<double> probabilities(const ClassificationTask& task, const OutputValues& values) {
  std::vector<double> scores(values.values().begin(), values.values().end());
  const Activation activation =
      task.activation.value_or(is_distribution(scores) ? Activation::kNone : Activation::kSoftmax);
  if (activation == Activation::kSoftmax) return softmax(scores);
  if (activation == Activation::kNone) values.check_shares(values.values(), "probabilities");
  for (double& score : scores) {
    score = activation == Activation::kSigmoid ? sigmoid(score) : clamped_share(score);
  }
  if (task.binary) return {1.0 - scores.front(), scores.front()};
  return scores;
}

ClassificationResult classify(const Task& whole, const ClassificationTask& task,
                              std::span<const NetworkOutput> outputs, std::size_t count) {
  const OutputValues values(find_output(outputs, task.output));
  const std::size_t labels = whole.labels.size();
  const std::size_t classes = task.binary ? 2 : values.size();
  if (values.dimensions().size() > 1 || values.size() == 0 || (task.binary && values.size() != 1) ||
      (labels > 0 && labels != classes)) {
    values.fail_shape(task.binary  ? "one score of two classes"
                      : labels > 0 ? "scores of " + std::to_string(labels) + " classes"
                                   : "the scores of one picture's classes");
  }
  const std::vector<double> shares = probabilities(task, values);
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // By the scores themselves: far behind the best, probabilities are equal.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (shares[a] != shares[b] || task.binary) return shares[a] > shares[b];
    return values.data()[a] > values.data()[b];
  });
  ClassificationResult result;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) {
    result.classes.push_back({order[i], label_of(whole, order[i]), shares[order[i]]});
  }
  return result;
}

EmbeddingResult embed(const EmbeddingTask& task, std::span<const NetworkOutput> outputs) {
  const OutputValues values(find_output(outputs, task.output));
  if (values.dimensions().size() > 1 || values.size() == 0) {
    values.fail_shape("one row of numbers");
  }
  return {{values.values().begin(), values.values().end()}};
}

}  // namespace

TaskResult postprocess(const Task& task, std::span<const NetworkOutput> outputs,
                       const PreprocessReport& picture, std::size_t classes) {
  const double scales = picture.scale_x * picture.scale_y;
  if (picture.original_width < 1 || picture.original_height < 1 || picture.input_width < 1 ||
      picture.input_height < 1 || !(scales > 0) || !std::isfinite(scales)) {
    throw Error(ErrorKind::kMismatch,
                "the report of preprocessing says nothing of a picture and an input",
                "give the one that preprocess() has filled in");
  }
  if (const auto* what = std::get_if<DetectionTask>(&task.what)) {
    return detect(task, *what, outputs, picture);
  }
  if (const auto* what = std::get_if<SegmentationTask>(&task.what)) {
    return segment(*what, task.labels.size(), outputs, picture);
  }
  if (const auto* what = std::get_if<LandmarksTask>(&task.what)) {
    return find_landmarks(task, *what, outputs, picture);
  }
  if (const auto* what = std::get_if<ClassificationTask>(&task.what)) {
    return classify(task, *what, outputs, classes);
  }
  return embed(std::get<EmbeddingTask>(task.what), outputs);
}

}  // namespace run_model
