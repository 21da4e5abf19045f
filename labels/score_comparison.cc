#include <run_model/score_comparison.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <run_model/error.h>
#include <run_model/top_k.h>
#include "base/enum_names.h"

namespace run_model {
namespace {

constexpr auto kScoreKinds = enum_names<ScoreKind>(
    {{ScoreKind::kLogits, "logits"}, {ScoreKind::kProbabilities, "probabilities"}});

constexpr auto kScoreRules = enum_names<ScoreRule>({{ScoreRule::kFinite, "finite"},
                                                    {ScoreRule::kTop1, "top-1"},
                                                    {ScoreRule::kTop5, "top-5"},
                                                    {ScoreRule::kOrder, "order"},
                                                    {ScoreRule::kTolerance, "tolerance"}});

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.7g", value);
  return text.data();
}

std::vector<std::size_t> best_classes(std::span<const double> scores, std::size_t count) {
  std::vector<std::size_t> indices;
  for (const Prediction& best : top_k(scores, count)) indices.push_back(best.index);
  return indices;
}

std::size_t position(const std::vector<std::size_t>& list, std::size_t index) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), index) - list.begin());
}

class Comparison {
 public:
  Comparison(std::span<const double> expected, std::span<const double> actual,
             const ScoreTolerance& tolerance)
      : expected_(expected), actual_(actual), tolerance_(tolerance) {}

  ScoreComparison run() {
    result_.expected_top = best_classes(expected_, kBestClasses);
    if (!all_finite()) return std::move(result_);
    result_.actual_top = best_classes(actual_, kBestClasses);
    compare_top();
    compare_values();
    return std::move(result_);
  }

 private:
  void fail(ScoreRule rule, const std::string& message) {
    result_.failures.push_back({rule, message});
  }

  bool all_finite() {
    std::size_t bad = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < actual_.size(); ++i) {
      if (std::isfinite(actual_[i])) continue;
      if (bad++ == 0) first = i;
    }
    if (bad == 0) return true;
    fail(ScoreRule::kFinite, std::to_string(bad) + " of " + std::to_string(actual_.size()) +
                                 " scores are NaN or infinite, the first at " +
                                 std::to_string(first));
    return false;
  }

  void compare_top() {
    const std::vector<std::size_t>& expected = result_.expected_top;
    const std::vector<std::size_t>& actual = result_.actual_top;
    if (actual[0] != expected[0]) {
      fail(ScoreRule::kTop1, "the best class is " + std::to_string(actual[0]) + ", expected " +
                                 std::to_string(expected[0]) + closeness(expected[0], actual[0]));
    }
    bool same_set = true;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (position(actual, expected[i]) < actual.size()) continue;
      same_set = false;
      fail(ScoreRule::kTop5, "class " + std::to_string(expected[i]) + " is not among the best " +
                                 std::to_string(expected.size()) + closeness_of_the_edge());
    }
    if (same_set) compare_order();
  }

  // Every pair that has changed places must be close, be they neighbours or not.
  void compare_order() {
    const std::vector<std::size_t>& expected = result_.expected_top;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (std::size_t j = i + 1; j < expected.size(); ++j) {
        const bool swapped =
            position(result_.actual_top, expected[i]) > position(result_.actual_top, expected[j]);
        if (!swapped || apart(expected[i], expected[j]) < tolerance_.order) continue;
        fail(ScoreRule::kOrder, "classes " + std::to_string(expected[i]) + " and " +
                                    std::to_string(expected[j]) +
                                    " have changed places, which the reference has " +
                                    number(apart(expected[i], expected[j])) +
                                    " apart (allowed below " + number(tolerance_.order) + ")");
      }
    }
  }

  void compare_values() {
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const double error = std::abs(actual_[i] - expected_[i]);
      if (error > result_.largest_error) {
        result_.largest_error = error;
        result_.largest_error_index = i;
      }
      const double allowed = tolerance_.atol + tolerance_.rtol * std::abs(expected_[i]);
      if (error > allowed) ++result_.outside;
      const double used = error == 0 ? 0 : error / allowed;
      if (used > result_.tolerance_used) {
        result_.tolerance_used = used;
        result_.tolerance_used_index = i;
      }
    }
    if (result_.outside == 0) return;
    const std::size_t worst = result_.tolerance_used_index;
    fail(ScoreRule::kTolerance,
         std::to_string(result_.outside) + " of " + std::to_string(expected_.size()) +
             " scores are beyond the tolerance, the worst at " + std::to_string(worst) + ": " +
             number(actual_[worst]) + ", expected " + number(expected_[worst]) + " within " +
             number(tolerance_.atol + tolerance_.rtol * std::abs(expected_[worst])));
  }

  double apart(std::size_t a, std::size_t b) const { return std::abs(expected_[a] - expected_[b]); }

  // A picture on whose best classes the reference itself is undecided proves nothing.
  std::string closeness(std::size_t a, std::size_t b) const {
    if (apart(a, b) >= tolerance_.order) return "";
    return "; the reference has them only " + number(apart(a, b)) +
           " apart, so this picture may be unfit for a golden case";
  }

  std::string closeness_of_the_edge() const {
    const std::vector<std::size_t> more = best_classes(expected_, kBestClasses + 1);
    return more.size() <= kBestClasses ? "" : closeness(more[kBestClasses - 1], more[kBestClasses]);
  }

  std::span<const double> expected_;
  std::span<const double> actual_;
  ScoreTolerance tolerance_;
  ScoreComparison result_;
};

}  // namespace

std::string_view score_kind_name(ScoreKind kind) { return kScoreKinds.name(kind); }

ScoreKind parse_score_kind(std::string_view name) {
  return kScoreKinds.parse(name, "kind of scores");
}

std::string_view score_rule_name(ScoreRule rule) { return kScoreRules.name(rule); }

ScoreComparison compare_scores(std::span<const double> expected, std::span<const double> actual,
                               const ScoreTolerance& tolerance) {
  if (expected.empty() || actual.size() != expected.size()) {
    throw Error(ErrorKind::kMismatch,
                "the model gave " + std::to_string(actual.size()) +
                    " scores, and the reference has " + std::to_string(expected.size()),
                "compare with the golden case of the same model");
  }
  return Comparison(expected, actual, tolerance).run();
}

}  // namespace run_model
