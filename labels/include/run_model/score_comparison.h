// Whether a classifier's scores are those of a reference: the rules that a golden case passes by.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

// What a network's output is: scores of any size, or probabilities (the network ends in a softmax).
enum class ScoreKind { kLogits, kProbabilities };

// "logits" or "probabilities".
std::string_view score_kind_name(ScoreKind kind);

// The inverse of score_kind_name. Throws Error(kUsage) when `name` is none of the names.
ScoreKind parse_score_kind(std::string_view name);

// How far results may be from the reference's; all in the scores' own unit.
struct ScoreTolerance {
  double atol = 0.0;  // a value may differ by atol + rtol * |reference|
  double rtol = 0.0;
  double order = 0.0;  // classes of the best five may change places where the reference's scores
                       // differ by less than this
};

// How many of the best classes must agree.
inline constexpr std::size_t kBestClasses = 5;

enum class ScoreRule {
  kFinite,     // no score is NaN or infinite
  kTop1,       // the best class is the reference's
  kTop5,       // the best five are the same classes
  kOrder,      // in the same order, but for those that the tolerance lets change places
  kTolerance,  // every score is within the tolerance
};

// "finite", "top-1", "top-5", "order", "tolerance".
std::string_view score_rule_name(ScoreRule rule);

struct ScoreFailure {
  ScoreRule rule = ScoreRule::kFinite;
  std::string message;  // what was found and what was expected
};

struct ScoreComparison {
  std::vector<ScoreFailure> failures;     // empty: the scores are the reference's
  std::vector<std::size_t> expected_top;  // indices of the best classes, best first
  std::vector<std::size_t> actual_top;    // empty where a score is not finite
  double largest_error = 0.0;             // |actual - reference|
  std::size_t largest_error_index = 0;
  // The largest share of its tolerance that a score's error is: 1 is the limit.
  double tolerance_used = 0.0;
  std::size_t tolerance_used_index = 0;
  std::size_t outside = 0;  // scores beyond their tolerance
};

// Compares one output with the reference's. Equal scores rank by index. Throws Error(kMismatch)
// when there is not one score for each of the reference's, or none at all.
ScoreComparison compare_scores(std::span<const double> expected, std::span<const double> actual,
                               const ScoreTolerance& tolerance);

}  // namespace run_model
