// One number for each pixel: how far away it is, say.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "postprocess/kinds.h"
#include "postprocess/map_places.h"
#include "postprocess/output_values.h"

namespace run_model {
namespace {

// The four pixels of a map along one axis and their weights, of cubic convolution (Keys, 1981) with
// a = -0.75, which torch's interpolate() and OpenCV use. Beyond the border its pixels are repeated.
struct CubicTaps {
  std::array<std::size_t, 4> at{};
  std::array<float, 4> weight{};

  CubicTaps(const Place& place, std::size_t map) {
    constexpr float a = -0.75F;
    const auto near = [](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const auto far = [](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    const bool before = place.beyond < 0;
    const float t = before ? 1 + place.beyond : place.weight + place.beyond;
    const auto first = static_cast<std::int64_t>(place.low) - (before ? 1 : 0) - 1;
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i] = static_cast<std::size_t>(std::clamp<std::int64_t>(
          first + static_cast<std::int64_t>(i), 0, static_cast<std::int64_t>(map) - 1));
    }
    weight = {far(1 + t), near(t), near(1 - t), far(2 - t)};
  }
};

float cubic(const float* map, const OutputValues::Sides& sides, const Place& x, const Place& y) {
  const CubicTaps across(x, sides.width), down(y, sides.height);
  float sum = 0.0F;
  for (std::size_t i = 0; i < 4; ++i) {
    const float* row = map + down.at[i] * sides.width;
    float line = 0.0F;
    for (std::size_t k = 0; k < 4; ++k) line += across.weight[k] * row[across.at[k]];
    sum += down.weight[i] * line;
  }
  return sum;
}

float value_at(MapResampling resampling, const float* map, const OutputValues::Sides& sides,
               const Place& x, const Place& y) {
  if (resampling == MapResampling::kNearest) return map[y.nearest * sides.width + x.nearest];
  if (resampling == MapResampling::kBicubic) return cubic(map, sides, x, y);
  return interpolated(Around(sides.width, x, y), x, y,
                      [&](std::size_t pixel) { return map[pixel]; });
}

}  // namespace

MapResult fill_map(const MapTask& task, std::span<const NetworkOutput> outputs,
                   const PreprocessReport& picture) {
  const OutputValues values(find_output(outputs, task.output));
  const OutputValues::Sides sides = values.one_map();
  const auto [least, most] = std::minmax_element(values.values().begin(), values.values().end());
  const bool depth = task.quantity == MapQuantity::kDepth;
  if (depth && *least < 0) {
    values.fail_value("holds a depth of " + std::to_string(*least * task.scale) +
                          ", and nothing is nearer than 0",
                      "\"quantity\" may have to be inverse-depth or other");
  }
  const auto scale = static_cast<float>(task.scale);
  if (!std::isfinite(*least * scale) || !std::isfinite(*most * scale)) {
    values.fail_value("holds numbers that the task's \"scale\" makes infinitely large",
                      "correct the description of the task");
  }
  MapResult result;
  result.width = picture.original_width;
  result.height = picture.original_height;
  result.values.assign(
      static_cast<std::size_t>(result.width) * static_cast<std::size_t>(result.height),
      std::numeric_limits<float>::quiet_NaN());
  each_seen_pixel(
      picture, sides.width, sides.height, [&](std::size_t pixel, const Place& x, const Place& y) {
        const float value = scale * value_at(task.resampling, values.data(), sides, x, y);
        // Cubic convolution overshoots beside edges, and numbers near the largest overflow.
        result.values[pixel] =
            std::clamp(value, depth ? 0.0F : std::numeric_limits<float>::lowest(),
                       std::numeric_limits<float>::max());
      });
  return result;
}

MapStatistics map_statistics(const MapResult& map, const std::vector<double>& shares) {
  std::vector<float> seen;
  seen.reserve(map.values.size());
  double sum = 0.0;
  for (const float value : map.values) {
    if (std::isnan(value)) continue;
    seen.push_back(value);
    sum += value;
  }
  MapStatistics statistics;
  statistics.seen = seen.size();
  statistics.quantiles.assign(shares.size(), 0.0);
  if (seen.empty()) return statistics;
  const auto [least, most] = std::minmax_element(seen.begin(), seen.end());
  statistics.least = *least;
  statistics.most = *most;
  statistics.mean = sum / static_cast<double>(seen.size());
  auto sorted_until = seen.begin();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double place = shares[i] * static_cast<double>(seen.size() - 1);
    const auto low = seen.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(sorted_until, low, seen.end());
    const double next = low + 1 == seen.end() ? *low : *std::min_element(low + 1, seen.end());
    statistics.quantiles[i] = *low + (next - *low) * (place - std::floor(place));
    sorted_until = low;
  }
  return statistics;
}

}  // namespace run_model
