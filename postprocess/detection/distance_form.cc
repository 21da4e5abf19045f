// Boxes by the distances from a point to their sides.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "postprocess/detection/candidates.h"
#include "postprocess/detection/cell_maps.h"

namespace run_model {
namespace {

// Maps cover the input, so that of a side that the stride does not divide one more cell is begun.
CellMaps maps_of(const DistancesForm& form, const InputSides& input) {
  CellMaps maps;
  for (const int stride : form.strides) {
    maps.add(static_cast<std::size_t>(std::ceil(input.height / stride)),
             static_cast<std::size_t>(std::ceil(input.width / stride)));
  }
  return maps;
}

// The mean of 0, 1, 2 … under the softmax of the numbers: GFL's Integral.
double mean_of_bins(const float* numbers, std::size_t bins) {
  const float largest = *std::max_element(numbers, numbers + bins);
  double sum = 0.0, all = 0.0;
  for (std::size_t i = 0; i < bins; ++i) {
    const double power = std::exp(static_cast<double>(numbers[i]) - largest);
    sum += power * static_cast<double>(i);
    all += power;
  }
  return sum / all;
}

Box decode_distances(const DistancesForm& form, const float* at, const CellMaps::Cell& cell) {
  const int stride = form.strides[cell.map];
  std::array<double, 4> sides{};
  for (std::size_t i = 0; i < sides.size(); ++i) {
    sides[i] = form.bins == 0 ? at[i] : mean_of_bins(at + i * form.bins, form.bins);
    if (form.in_cells) sides[i] *= stride;
  }
  const double x = (static_cast<double>(cell.column) + form.point_offset) * stride;
  const double y = (static_cast<double>(cell.row) + form.point_offset) * stride;
  return {x - sides[0], y - sides[1], x + sides[2], y + sides[3]};
}

}  // namespace

CandidateBlocks distance_blocks(const DistancesForm& form, std::size_t labels,
                                std::span<const NetworkOutput> outputs, const InputSides& input) {
  CandidateBlocks result;
  const CellMaps maps = maps_of(form, input);
  const std::size_t cells = maps.size();
  const std::string rows = std::to_string(cells) + " rows, one for each cell of the strides, ";
  const auto add = [&](const OutputChoice& choice) -> const OutputValues& {
    result.outputs.push_back(std::make_unique<OutputValues>(find_output(outputs, choice)));
    return *result.outputs.back();
  };
  const OutputValues& boxes = add(form.boxes);
  const std::size_t box_numbers = 4 * std::max<std::size_t>(form.bins, 1);
  const std::string box_text = rows + "with " + std::to_string(box_numbers) +
                               " numbers of a box from number " + std::to_string(form.box_offset) +
                               " on";
  const std::size_t columns = boxes.table(cells, std::nullopt, box_text).columns;
  if (columns < form.box_offset + box_numbers) boxes.fail_shape(box_text);
  const OutputValues& scores = add(form.scores);
  const std::string score_text =
      rows + "with scores from number " + std::to_string(form.score_offset) + " on";
  const std::size_t score_columns = scores.table(cells, std::nullopt, score_text).columns;
  CandidateBlock block;
  block.rows = cells;
  block.row_step = score_columns;
  if (score_columns <= form.score_offset) scores.fail_shape(score_text);
  block.classes = form.classes > 0 ? form.classes : score_columns - form.score_offset;
  if (score_columns < form.score_offset + block.classes ||
      (labels > 0 && labels != block.classes)) {
    scores.fail_shape(score_text + ", " + std::to_string(labels > 0 ? labels : block.classes) +
                      " of them");
  }
  block.scores = scores.data() + form.score_offset;
  if (form.centerness) {
    const OutputValues& centerness = add(*form.centerness);
    centerness.table(cells, 1, rows + "with one number");
    block.objectness = centerness.data();
    block.objectness_step = 1;
    block.geometric_mean = true;
  }
  block.decode = [&form, maps, columns, numbers = boxes.data() + form.box_offset](std::size_t row) {
    return DecodedBox{decode_distances(form, numbers + row * columns, maps.at(row)), {}, {}};
  };
  result.blocks.push_back(std::move(block));
  return result;
}

}  // namespace run_model
