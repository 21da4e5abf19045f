#include <algorithm>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "postprocess/kinds.h"
#include "postprocess/output_values.h"
#include "postprocess/way_back.h"

namespace run_model {
namespace {

double point_share(const LandmarksTask& task, double value) {
  return task.point_activation == Activation::kSigmoid ? sigmoid(value) : value;
}

// How many points there are rows of numbers for, of which the task may take the first only.
std::size_t rows_of_points(const LandmarksTask& task, const OutputValues& values) {
  const std::size_t columns = task.columns.size();
  const std::size_t there = values.size() / columns;
  // Converters leave points in one row as often as not.
  const std::vector<std::size_t>& sides = values.dimensions();
  const bool rows = sides.size() == 2 && sides[1] == columns;
  if (values.size() % columns != 0 || there == 0 || there < task.points ||
      (!rows && sides.size() > 1)) {
    values.fail_shape(
        (task.points > 0 ? "at least " + std::to_string(task.points) : std::string("some")) +
        " points of " + std::to_string(columns) + " numbers each");
  }
  return task.points > 0 ? task.points : there;
}

// A row of numbers for each point.
std::vector<Landmark> read_points(const LandmarksTask& task, std::span<const NetworkOutput> outputs,
                                  const PreprocessReport& picture) {
  const OutputValues values(find_output(outputs, task.output));
  const bool shares = task.units == Units::kNormalized;
  const double unit_x = shares ? picture.input_width : 1.0;
  const double unit_y = shares ? picture.input_height : 1.0;
  const WayBack back(picture);
  std::vector<Landmark> points(rows_of_points(task, values));
  const float* number = values.data();
  for (Landmark& point : points) {
    double x = 0.0, y = 0.0;
    for (const PointColumn column : task.columns) {
      const double value = *number++;
      switch (column) {
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
          point.score = point_share(task, value);
          break;
        case PointColumn::kVisibility:
          point.visibility = point_share(task, value);
          break;
        case PointColumn::kPresence:
          point.presence = point_share(task, value);
          break;
        case PointColumn::kOther:
          break;
      }
    }
    const WayBack::Point at = back.to_picture(x, y);
    point.x = at[0];
    point.y = at[1];
  }
  return points;
}

// The highest pixel of each map, of equal ones the first, as HRNet's get_max_preds() and
// get_final_preds() find it: a pixel of the map stands for its left top corner on the input.
std::vector<Landmark> read_heatmaps(const LandmarksTask& task,
                                    std::span<const NetworkOutput> outputs,
                                    const PreprocessReport& picture) {
  const OutputValues values(find_output(outputs, task.output));
  const auto [count, height, width, point_step, pixel_step] =
      values.planes(task.heatmaps->channels_last, 1, values.size(), "maps of points");
  const WayBack back(picture);
  std::vector<Landmark> points;
  for (std::size_t k = 0; k < count; ++k) {
    const auto at = [&](std::size_t pixel) {
      return values.data()[k * point_step + pixel * pixel_step];
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < width * height; ++i) {
      if (at(i) > at(best)) best = i;
    }
    const std::size_t column = best % width, row = best / width;
    auto x = static_cast<double>(column), y = static_cast<double>(row);
    // Not beside the borders, the first pixels within them included.
    const bool inside = column > 1 && row > 1 && column + 1 < width && row + 1 < height;
    if (task.heatmaps->quarter && inside) {
      const auto towards = [](float less, float more) {
        return more > less ? 0.25 : more < less ? -0.25 : 0.0;
      };
      x += towards(at(best - 1), at(best + 1));
      y += towards(at(best - width), at(best + width));
    }
    const WayBack::Point place =
        back.to_picture(x * picture.input_width / static_cast<double>(width),
                        y * picture.input_height / static_cast<double>(height));
    Landmark point;
    point.x = place[0];
    point.y = place[1];
    point.score = point_share(task, at(best));
    points.push_back(point);
  }
  return points;
}

}  // namespace

LandmarksResult find_landmarks(const Task& whole, const LandmarksTask& task,
                               std::span<const NetworkOutput> outputs,
                               const PreprocessReport& picture) {
  LandmarksResult result;
  result.points =
      task.heatmaps ? read_heatmaps(task, outputs, picture) : read_points(task, outputs, picture);
  const std::size_t count = result.points.size();
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

}  // namespace run_model
