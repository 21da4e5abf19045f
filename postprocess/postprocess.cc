#include <run_model/postprocess.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <run_model/class_scores.h>
#include <run_model/error.h>
#include <run_model/top_k.h>
#include "postprocess/detection/candidates.h"
#include "postprocess/detection/instance_masks.h"
#include "postprocess/detection/oriented_boxes.h"
#include "postprocess/kinds.h"
#include "postprocess/output_values.h"
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
  if (const auto* form = std::get_if<DistancesForm>(&task.form)) {
    return distance_blocks(*form, labels, outputs, input);
  }
  if (const auto* form = std::get_if<CentersForm>(&task.form)) {
    return center_blocks(task, *form, labels, outputs, input);
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
  if (task.masks) masks.emplace(*task.masks, outputs, picture, blocks.blocks.front().listed);
  DetectionResult result;
  for (const Candidate& candidate : kept) {
    Detection detection;
    if (task.angle) {
      Corners corners = turned_corners(candidate.decoded.box, candidate.decoded.angle);
      for (WayBack::Point& corner : corners) corner = back.to_picture(corner[0], corner[1]);
      detection.box = box_around(corners);
      detection.corners = corners;
    } else {
      detection.box = back.box(candidate.decoded.box);
    }
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
    bool empty = false;
    if (masks) {
      detection.mask = masks->make(candidate.decoded, detection.box, candidate.order);
      const std::vector<std::uint8_t>& pixels = detection.mask->pixels;
      empty = std::count(pixels.begin(), pixels.end(), 1) == 0;
    }
    if (!empty || !task.masks->drop_empty) result.detections.push_back(std::move(detection));
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
  if (const auto* what = std::get_if<MapTask>(&task.what)) {
    return fill_map(*what, outputs, picture);
  }
  if (const auto* what = std::get_if<ImageTask>(&task.what)) {
    return make_image(*what, outputs, picture);
  }
  return embed(std::get<EmbeddingTask>(task.what), outputs);
}

}  // namespace run_model
