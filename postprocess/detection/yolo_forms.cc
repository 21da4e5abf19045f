// The forms that YOLO's detectors have.
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "postprocess/detection/candidates.h"
#include "postprocess/detection/cell_maps.h"

namespace run_model {
namespace {

// Where the numbers of a map's anchors lie.
struct HeadLayout {
  std::size_t rows = 0, columns = 0, numbers = 0;
  std::size_t anchor_step = 0, cell_step = 0, number_step = 0;
};

HeadLayout head_layout(const OutputValues& values, const NetworkOutput& output, std::size_t anchors,
                       bool channels_last, std::size_t least, std::optional<std::size_t> exact) {
  const std::string numbers = exact ? std::to_string(*exact) : "at least " + std::to_string(least);
  const std::string expected =
      std::to_string(anchors) + " anchors of " + numbers + " numbers in " +
      (channels_last ? "[1, H, W, A(5+C)]" : "[1, A(5+C), H, W] or [1, A, H, W, 5+C]");
  std::vector<std::size_t> shape;
  for (const std::int64_t side : output.tensor.shape()) {
    shape.push_back(static_cast<std::size_t>(side));
  }
  HeadLayout layout;
  if (shape.size() == 5 && shape[0] == 1 && shape[1] == anchors && !channels_last) {
    layout = {shape[2], shape[3], shape[4], shape[2] * shape[3] * shape[4], shape[4], 1};
  } else if (shape.size() == 4 && shape[0] == 1) {
    const std::size_t channels = channels_last ? shape[3] : shape[1];
    if (channels % anchors != 0) values.fail_shape(expected);
    const std::size_t each = channels / anchors;
    if (channels_last) {
      layout = {shape[1], shape[2], each, each, channels, 1};
    } else {
      const std::size_t cells = shape[2] * shape[3];
      layout = {shape[2], shape[3], each, each * cells, 1, cells};
    }
  } else {
    values.fail_shape(expected);
  }
  if (layout.numbers < least || (exact && layout.numbers != *exact) || layout.rows == 0 ||
      layout.columns == 0) {
    values.fail_shape(expected);
  }
  return layout;
}

struct Cell {
  double x = 0.0, y = 0.0;           // its number
  double width = 0.0, height = 0.0;  // pixels
};

Box decode_head(const YoloHeadsForm& form, const float* at, std::size_t step,
                const std::array<double, 2>& anchor, const Cell& cell) {
  double x = sigmoid(at[0]), y = sigmoid(at[step]);
  double width = 0.0, height = 0.0;
  if (form.coding == YoloCoding::kV5) {
    x = 2 * x - 0.5;
    y = 2 * y - 0.5;
    width = anchor[0] * std::pow(2 * sigmoid(at[2 * step]), 2);
    height = anchor[1] * std::pow(2 * sigmoid(at[3 * step]), 2);
  } else {
    x = form.scale_xy * x - (form.scale_xy - 1) / 2;
    y = form.scale_xy * y - (form.scale_xy - 1) / 2;
    width = anchor[0] * std::exp(static_cast<double>(at[2 * step]));
    height = anchor[1] * std::exp(static_cast<double>(at[3 * step]));
  }
  const double centre_x = (x + cell.x) * cell.width, centre_y = (y + cell.y) * cell.height;
  return {centre_x - width / 2, centre_y - height / 2, centre_x + width / 2, centre_y + height / 2};
}

// Maps have the whole cells of the input.
CellMaps maps_of(const YoloRowsForm& form, const InputSides& input) {
  CellMaps maps;
  for (const int stride : form.strides) {
    const auto side = static_cast<std::size_t>(stride);
    maps.add(static_cast<std::size_t>(input.height) / side,
             static_cast<std::size_t>(input.width) / side);
  }
  return maps;
}

// YOLOX's decode_outputs.
Box decode_cell(const float* at, std::size_t step, const CellMaps::Cell& cell, int stride) {
  const double x = (static_cast<double>(at[0]) + static_cast<double>(cell.column)) * stride;
  const double y = (static_cast<double>(at[step]) + static_cast<double>(cell.row)) * stride;
  const double width = std::exp(static_cast<double>(at[2 * step])) * stride;
  const double height = std::exp(static_cast<double>(at[3 * step])) * stride;
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

}  // namespace

CandidateBlocks yolo_row_blocks(const DetectionTask& task, const YoloRowsForm& form,
                                std::size_t labels, std::span<const NetworkOutput> outputs,
                                const InputSides& input) {
  CandidateBlocks result;
  result.outputs.push_back(std::make_unique<OutputValues>(find_output(outputs, form.output)));
  const OutputValues& values = *result.outputs.back();
  const std::size_t before = form.objectness ? 5 : 4;
  const std::size_t around =
      before + keypoint_numbers(task) + mask_numbers(task) + angle_numbers(task);
  std::optional<std::size_t> numbers;
  if (labels > 0) numbers = around + labels;
  const std::string expected =
      (numbers ? std::to_string(*numbers) : "more than " + std::to_string(around)) +
      " numbers for each candidate, " + (form.candidates_last ? "[1, 4+C, N]" : "[1, N, numbers]");
  const auto table = form.candidates_last ? values.table(numbers, std::nullopt, expected)
                                          : values.table(std::nullopt, numbers, expected);
  const std::size_t each = form.candidates_last ? table.rows : table.columns;
  if (each <= around) values.fail_shape(expected);
  CandidateBlock block;
  block.rows = form.candidates_last ? table.columns : table.rows;
  block.row_step = form.candidates_last ? 1 : each;
  block.class_step = form.candidates_last ? block.rows : 1;
  block.classes = each - around;
  const std::size_t step = block.class_step;
  block.scores = values.data() + before * step;
  if (form.objectness) block.objectness = values.data() + 4 * step;
  block.objectness_step = block.row_step;
  const CellMaps maps = maps_of(form, input);
  if (maps.size() != 0 && maps.size() != block.rows) {
    values.fail_shape(std::to_string(maps.size()) + " rows, one for each cell of the strides");
  }
  block.decode = [&task, &form, numbers = values.data(), step, row_step = block.row_step, input,
                  maps, keypoints = (before + block.classes) * step](std::size_t row) {
    const float* at = numbers + row * row_step;
    return DecodedBox{maps.size() == 0
                          ? read_box(at, step, BoxFormat::kCxcywh, task.units, input)
                          : decode_cell(at, step, maps.at(row), form.strides[maps.at(row).map]),
                      read_keypoints(at + keypoints, step, task, input),
                      read_mask_factors(at + keypoints + keypoint_numbers(task) * step, step, task),
                      read_angle(at + keypoints, task)};
  };
  result.blocks.push_back(std::move(block));
  return result;
}

CandidateBlocks yolo_head_blocks(const YoloHeadsForm& form, std::size_t labels,
                                 std::span<const NetworkOutput> outputs, const InputSides& input) {
  CandidateBlocks result;
  constexpr std::size_t kAround = 5;
  std::optional<std::size_t> numbers;
  if (labels > 0) numbers = kAround + labels;
  for (std::size_t i = 0; i < form.outputs.size(); ++i) {
    const NetworkOutput& output = find_output(outputs, form.outputs[i]);
    result.outputs.push_back(std::make_unique<OutputValues>(output));
    const OutputValues& values = *result.outputs.back();
    const HeadLayout layout = head_layout(values, output, form.anchors[i].size(),
                                          form.channels_last, kAround + 1, numbers);
    // The classes of all maps are the same.
    numbers = layout.numbers;
    for (std::size_t a = 0; a < form.anchors[i].size(); ++a) {
      const std::size_t step = layout.number_step;
      const float* first = values.data() + a * layout.anchor_step;
      CandidateBlock block;
      block.rows = layout.rows * layout.columns;
      block.row_step = layout.cell_step;
      block.classes = layout.numbers - kAround;
      block.class_step = step;
      block.objectness = first + 4 * step;
      block.objectness_step = layout.cell_step;
      block.scores = first + kAround * step;
      block.decode = [&form, &anchor = form.anchors[i][a], first, step, layout,
                      input](std::size_t row) {
        const float* at = first + row * layout.cell_step;
        const std::size_t cell_row = row / layout.columns;
        const Cell cell{static_cast<double>(row % layout.columns), static_cast<double>(cell_row),
                        input.width / static_cast<double>(layout.columns),
                        input.height / static_cast<double>(layout.rows)};
        return DecodedBox{decode_head(form, at, step, anchor, cell), {}, {}, 0.0};
      };
      result.blocks.push_back(std::move(block));
    }
  }
  return result;
}

}  // namespace run_model
