#include "played.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace {

// Between the two nearest values in a straight line, as numpy.percentile does.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

template <typename T>
double mean(const std::vector<T>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// `form` takes: episodes, seed, seconds, average reward, steps; mean, median, p95, p99 in
// microseconds.
std::string fill(const char* form, const Played& played) {
  std::vector<double> us = played.step_us;
  std::ranges::sort(us);
  char text[400];
  std::snprintf(text, sizeof text, form, played.rewards.size(), played.seed, played.elapsed_s,
                mean(played.rewards), us.size(), mean(us), quantile(us, 0.5), quantile(us, 0.95),
                quantile(us, 0.99));
  return text;
}

}  // namespace

std::string to_text(const Played& played) {
  return fill(
      "episodes        %zu (seed %d)\n"
      "elapsed         %.2f s\n"
      "average reward  %.2f\n"
      "step latency    %zu steps: mean %.1f, median %.1f, p95 %.1f, p99 %.1f microseconds\n",
      played);
}

std::string to_json(const Played& played) {
  std::string text = fill(
      "{\"schema_version\": 1, \"episodes\": %zu, \"seed\": %d, \"elapsed_s\": %.6f,\n"
      " \"average_reward\": %.3f, \"step_us\": {\"count\": %zu, \"mean\": %.3f, \"median\": %.3f,"
      " \"p95\": %.3f, \"p99\": %.3f},\n \"rewards\": [",
      played);
  for (std::size_t i = 0; i < played.rewards.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(played.rewards[i]);
  }
  return text + "]}\n";
}
