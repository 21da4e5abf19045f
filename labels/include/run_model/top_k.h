// From scores to the most probable classes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace run_model {

struct Prediction {
  std::size_t index = 0;
  double probability = 0.0;
};

// exp(score) / sum of exp(scores), computed so that no finite scores overflow.
std::vector<double> softmax(std::span<const double> scores);

// The `count` classes of the highest scores (all where there are fewer), best first, equal ones by
// index. Their probabilities are the softmax over all scores, or the scores themselves where those
// are a distribution already. The scores must be finite.
std::vector<Prediction> top_k(std::span<const double> scores, std::size_t count);

}  // namespace run_model
