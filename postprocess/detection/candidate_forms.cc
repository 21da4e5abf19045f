// The forms of detectors' outputs but for YOLO's.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "postprocess/detection/anchors.h"
#include "postprocess/detection/candidates.h"

namespace run_model {
namespace {

const OutputValues& add_output(CandidateBlocks& blocks, std::span<const NetworkOutput> outputs,
                               const OutputChoice& choice) {
  blocks.outputs.push_back(std::make_unique<OutputValues>(find_output(outputs, choice)));
  return *blocks.outputs.back();
}

std::optional<std::size_t> known(std::size_t count) {
  return count == 0 ? std::nullopt : std::optional(count);
}

// An anchor's numbers become a box, as MediaPipe and torchvision decode them.
std::optional<DecodedBox> decode_ssd(const DetectionTask& task, const SsdForm& form,
                                     const float* numbers, const Anchor& anchor,
                                     const InputSides& input) {
  const bool y_first = form.box_format == BoxFormat::kCycxhw;
  const std::size_t x = y_first ? 1 : 0, y = y_first ? 0 : 1;
  const auto centre_x = [&](const float* at) {
    return (at[x] / form.x_scale * anchor.width + anchor.x) * input.width;
  };
  const auto centre_y = [&](const float* at) {
    return (at[y] / form.y_scale * anchor.height + anchor.y) * input.height;
  };
  const auto side = [&](double number, double of_anchor) {
    if (!form.exponential) return number * of_anchor;
    const double exponent = form.size_limit > 0 ? std::min(number, form.size_limit) : number;
    return std::exp(exponent) * of_anchor;
  };
  const float* box = numbers + form.box_offset;
  const double width = side(box[2 + x] / form.w_scale, anchor.width) * input.width;
  const double height = side(box[2 + y] / form.h_scale, anchor.height) * input.height;
  if (!form.exponential && (width < 0 || height < 0)) return std::nullopt;
  DecodedBox decoded;
  decoded.box = {centre_x(box) - width / 2, centre_y(box) - height / 2, centre_x(box) + width / 2,
                 centre_y(box) + height / 2};
  const float* point = numbers + form.keypoint_offset;
  for (std::size_t k = 0; k < task.keypoints; ++k, point += task.values_per_keypoint) {
    decoded.keypoints.push_back({centre_x(point), centre_y(point), std::nullopt});
    if (task.values_per_keypoint == 3) decoded.keypoints.back().score = point[2];
  }
  return decoded;
}

// How many of `rows` boxes count, as an output of the network says.
std::size_t number_of_boxes(const OutputValues& count, std::size_t rows) {
  count.table(1, 1, "one number, the count of the boxes");
  const float number = *count.data();
  if (number != std::floor(number) || number < 0 || number > static_cast<float>(rows)) {
    count.fail_value("says that there are " + std::to_string(number) + " boxes, expected 0 to " +
                         std::to_string(rows),
                     "check that the task names the right output");
  }
  return static_cast<std::size_t>(number);
}

// The keypoints of ready boxes, in whatever shape.
const float* keypoint_rows(const OutputValues& points, std::size_t rows, std::size_t of_row) {
  if (points.size() != rows * of_row) {
    points.fail_shape(std::to_string(of_row) + " numbers of keypoints for each of " +
                      std::to_string(rows) + " boxes");
  }
  return points.data();
}

}  // namespace

Box read_box(const float* numbers, std::size_t step, BoxFormat format, Units units,
             const InputSides& input) {
  double a = numbers[0], b = numbers[step], c = numbers[2 * step], d = numbers[3 * step];
  if (format == BoxFormat::kYxyx || format == BoxFormat::kCycxhw) {
    std::swap(a, b);
    std::swap(c, d);
  }
  Box box{a, b, c, d};
  if (format == BoxFormat::kXywh) box = {a, b, a + c, b + d};
  if (format == BoxFormat::kCxcywh || format == BoxFormat::kCycxhw) {
    box = {a - c / 2, b - d / 2, a + c / 2, b + d / 2};
  }
  if (units == Units::kPixels) return box;
  return {box.left * input.width, box.top * input.height, box.right * input.width,
          box.bottom * input.height};
}

std::vector<Keypoint> read_keypoints(const float* numbers, std::size_t step,
                                     const DetectionTask& task, const InputSides& input) {
  const bool shares = task.units == Units::kNormalized;
  std::vector<Keypoint> points;
  for (std::size_t k = 0; k < task.keypoints; ++k) {
    const float* at = numbers + k * task.values_per_keypoint * step;
    Keypoint point{at[0] * (shares ? input.width : 1.0), at[step] * (shares ? input.height : 1.0),
                   std::nullopt};
    if (task.values_per_keypoint == 3) point.score = at[2 * step];
    points.push_back(point);
  }
  return points;
}

std::vector<float> read_mask_factors(const float* numbers, std::size_t step,
                                     const DetectionTask& task) {
  std::vector<float> factors(mask_numbers(task));
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = numbers[i * step];
  return factors;
}

double read_angle(const float* number, const DetectionTask& task) {
  if (!task.angle) return 0.0;
  constexpr double kDegree = std::numbers::pi / 180.0;
  const double angle = *number * (task.angle->degrees ? kDegree : 1.0);
  return task.angle->counter_clockwise ? -angle : angle;
}

CandidateBlocks ssd_blocks(const DetectionTask& task, const SsdForm& form, std::size_t labels,
                           std::span<const NetworkOutput> outputs, const InputSides& input) {
  CandidateBlocks result;
  auto anchors = std::make_shared<const AnchorGrid>(form.anchors, input.width, input.height);
  const std::string count = std::to_string(anchors->size());
  const OutputValues& boxes = add_output(result, outputs, form.boxes);
  const std::size_t least = std::max(
      form.box_offset + 4,
      task.keypoints == 0 ? std::size_t{0} : form.keypoint_offset + keypoint_numbers(task));
  const std::string expected =
      count + " anchors with at least " + std::to_string(least) + " numbers each";
  const auto table = boxes.table(anchors->size(), std::nullopt, expected);
  if (table.columns < least) boxes.fail_shape(expected);
  const OutputValues& scores = add_output(result, outputs, form.scores);
  const auto score_table = scores.table(anchors->size(), known(labels), count + " anchors' scores");
  CandidateBlock block;
  block.rows = anchors->size();
  block.row_step = block.classes = score_table.columns;
  block.scores = scores.data();
  block.decode = [&task, &form, anchors, numbers = boxes.data(), columns = table.columns,
                  input](std::size_t row) {
    return decode_ssd(task, form, numbers + row * columns, anchors->at(row), input);
  };
  result.blocks.push_back(std::move(block));
  return result;
}

CandidateBlocks ready_box_blocks(const DetectionTask& task, const BoxesForm& form,
                                 std::size_t labels, std::span<const NetworkOutput> outputs,
                                 const InputSides& input) {
  CandidateBlocks result;
  const OutputValues& boxes = add_output(result, outputs, form.boxes);
  const std::size_t numbers = 4 + angle_numbers(task);
  const std::size_t rows =
      boxes.table(std::nullopt, numbers, "boxes of " + std::to_string(numbers) + " numbers each")
          .rows;
  const OutputValues& scores = add_output(result, outputs, form.scores);
  const std::string expected = "scores of " + std::to_string(rows) + " boxes";
  CandidateBlock block;
  block.rows = block.listed = rows;
  block.scores = scores.data();
  if (form.classes) {
    scores.table(rows, 1, expected);
    const OutputValues& classes = add_output(result, outputs, *form.classes);
    classes.table(rows, 1, "classes of " + std::to_string(rows) + " boxes");
    block.class_numbers = classes.data();
    block.classes = 1;
  } else {
    block.classes = scores.table(rows, known(labels), expected).columns;
  }
  block.row_step = block.classes;
  if (form.count) {
    block.rows = number_of_boxes(add_output(result, outputs, *form.count), rows);
  }
  const auto of_points = [&](const OutputChoice& choice, std::size_t numbers_of_each) {
    return keypoint_rows(add_output(result, outputs, choice), rows,
                         task.keypoints * numbers_of_each);
  };
  const float* points =
      form.keypoints ? of_points(*form.keypoints, task.values_per_keypoint) : nullptr;
  const float* point_scores = form.keypoint_scores ? of_points(*form.keypoint_scores, 1) : nullptr;
  block.decode = [&task, first = boxes.data(), numbers, input, points,
                  point_scores](std::size_t row) {
    const float* at = first + row * numbers;
    DecodedBox decoded{
        read_box(at, 1, task.box_format, task.units, input), {}, {}, read_angle(at + 4, task)};
    if (points != nullptr) {
      decoded.keypoints = read_keypoints(points + row * keypoint_numbers(task), 1, task, input);
    }
    for (std::size_t k = 0; point_scores != nullptr && k < task.keypoints; ++k) {
      decoded.keypoints[k].score = point_scores[row * task.keypoints + k];
    }
    return decoded;
  };
  result.blocks.push_back(std::move(block));
  return result;
}

CandidateBlocks box_row_blocks(const DetectionTask& task, const BoxRowsForm& form,
                               std::span<const NetworkOutput> outputs, const InputSides& input) {
  CandidateBlocks result;
  const OutputValues& values = add_output(result, outputs, form.output);
  const std::size_t columns = 6 + keypoint_numbers(task) + mask_numbers(task) + angle_numbers(task);
  CandidateBlock block;
  block.rows =
      values
          .table(std::nullopt, columns,
                 "rows of " + std::to_string(columns) + " numbers: box, score, class" +
                     (task.keypoints > 0 ? ", keypoints" : "") +
                     (task.masks ? ", factors of the mask" : "") + (task.angle ? ", angle" : ""))
          .rows;
  block.row_step = columns;
  block.classes = 1;
  block.scores = values.data() + 4;
  block.class_numbers = values.data() + 5;
  block.class_number_step = columns;
  block.decode = [&task, numbers = values.data(), columns, input](std::size_t row) {
    const float* at = numbers + row * columns;
    return DecodedBox{
        read_box(at, 1, task.box_format, task.units, input), read_keypoints(at + 6, 1, task, input),
        read_mask_factors(at + 6 + keypoint_numbers(task), 1, task), read_angle(at + 6, task)};
  };
  result.blocks.push_back(std::move(block));
  return result;
}

}  // namespace run_model
