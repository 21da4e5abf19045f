// Boxes whose centres are the peaks of maps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "postprocess/detection/candidates.h"

namespace run_model {
namespace {

struct Peak {
  std::size_t pixel = 0, class_index = 0;
};

// Scores below are not looked at. A little less than the threshold: who takes candidates decides.
double least_score(const DetectionTask& task) {
  constexpr double kLess = 1e-3;
  const double threshold = task.score_threshold;
  if (task.activation == Activation::kNone) return threshold - kLess;
  return threshold > 0 ? std::log(threshold / (1 - threshold)) - kLess
                       : -std::numeric_limits<double>::infinity();
}

// Pixels that no other one of the eight around them exceeds, as max-pooling of 3x3 finds them:
// equal neighbours are peaks both.
std::vector<Peak> peaks_of(const float* scores, const OutputValues::Planes& planes, double least) {
  std::vector<Peak> peaks;
  const auto [classes, height, width, class_step, pixel_step] = planes;
  for (std::size_t c = 0; c < classes; ++c) {
    const float* map = scores + c * class_step;
    for (std::size_t pixel = 0; pixel < width * height; ++pixel) {
      const float score = map[pixel * pixel_step];
      if (!(score >= least)) continue;
      const std::size_t x = pixel % width, y = pixel / width;
      bool highest = true;
      for (std::size_t row = y - (y > 0 ? 1 : 0); row <= std::min(y + 1, height - 1); ++row) {
        for (std::size_t k = x - (x > 0 ? 1 : 0); k <= std::min(x + 1, width - 1); ++k) {
          highest = highest && map[(row * width + k) * pixel_step] <= score;
        }
      }
      if (highest) peaks.push_back({pixel, c});
    }
  }
  std::stable_sort(peaks.begin(), peaks.end(),
                   [](const Peak& a, const Peak& b) { return a.pixel < b.pixel; });
  return peaks;
}

// Two numbers of each cell, x before y.
class Pairs {
 public:
  Pairs(const CentersForm& form, const OutputValues& values, const OutputValues::Planes& of,
        const std::string& what)
      : values_(values) {
    const std::string expected = "two maps of " + std::to_string(of.height) + " rows and " +
                                 std::to_string(of.width) + " columns, " + what + ",";
    planes_ = values.planes(form.channels_last, 2, 2, expected);
    if (planes_.height != of.height || planes_.width != of.width) values.fail_shape(expected);
    x_ = form.y_first ? 1 : 0;
  }

  double x(std::size_t pixel) const { return at(x_, pixel); }
  double y(std::size_t pixel) const { return at(1 - x_, pixel); }

 private:
  double at(std::size_t channel, std::size_t pixel) const {
    return values_.data()[channel * planes_.channel_step + pixel * planes_.pixel_step];
  }

  const OutputValues& values_;
  OutputValues::Planes planes_;
  std::size_t x_ = 0;
};

}  // namespace

CandidateBlocks center_blocks(const DetectionTask& task, const CentersForm& form,
                              std::size_t labels, std::span<const NetworkOutput> outputs,
                              const InputSides& input) {
  CandidateBlocks result;
  const auto add = [&](const OutputChoice& choice) -> const OutputValues& {
    result.outputs.push_back(std::make_unique<OutputValues>(find_output(outputs, choice)));
    return *result.outputs.back();
  };
  const OutputValues& heat = add(form.heatmap);
  const OutputValues::Planes planes = heat.planes(
      form.channels_last, std::max<std::size_t>(labels, 1), labels > 0 ? labels : heat.size(),
      "a map of centres for each of " + (labels > 0 ? std::to_string(labels) : std::string("the")) +
          " classes");
  if (task.activation == Activation::kNone) heat.check_shares(heat.values(), "scores of centres");
  const Pairs sizes(form, add(form.sizes), planes, "the sizes of boxes");
  std::optional<Pairs> offsets;
  if (form.offsets) offsets.emplace(form, add(*form.offsets), planes, "the offsets of centres");

  std::vector<Peak> peaks = peaks_of(heat.data(), planes, least_score(task));
  result.made.resize(2);
  std::vector<float>&scores = result.made[0], &classes = result.made[1];
  for (const Peak& peak : peaks) {
    scores.push_back(
        heat.data()[peak.class_index * planes.channel_step + peak.pixel * planes.pixel_step]);
    classes.push_back(static_cast<float>(peak.class_index));
  }
  CandidateBlock block;
  block.rows = peaks.size();
  block.row_step = 1;
  block.classes = 1;
  block.scores = scores.data();
  block.class_numbers = classes.data();
  const double stride_x = input.width / static_cast<double>(planes.width);
  const double stride_y = input.height / static_cast<double>(planes.height);
  block.decode = [=, in_cells = form.in_cells, columns = planes.width,
                  peaks = std::move(peaks)](std::size_t row) {
    const std::size_t pixel = peaks[row].pixel;
    const std::size_t column = pixel % columns, line = pixel / columns;
    const double x = (static_cast<double>(column) + (offsets ? offsets->x(pixel) : 0.5)) * stride_x;
    const double y = (static_cast<double>(line) + (offsets ? offsets->y(pixel) : 0.5)) * stride_y;
    const double half_width = sizes.x(pixel) / 2 * (in_cells ? stride_x : 1.0);
    const double half_height = sizes.y(pixel) / 2 * (in_cells ? stride_y : 1.0);
    return DecodedBox{{x - half_width, y - half_height, x + half_width, y + half_height}, {}, {}};
  };
  result.blocks.push_back(std::move(block));
  return result;
}

}  // namespace run_model
