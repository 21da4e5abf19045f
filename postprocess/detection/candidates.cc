#include "postprocess/detection/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <run_model/error.h>
#include "postprocess/detection/oriented_boxes.h"

namespace run_model {
namespace {

// How far rounding can bring a score across the threshold: a first look takes a little more.
constexpr double kSlack = 1e-3;

// The scores of the candidates of one block.
class Scores {
 public:
  Scores(const DetectionTask& task, const CandidateBlock& block) : task_(task), block_(block) {
    if (block.class_numbers == nullptr) background_ = task.background;
    // Of a root of two shares neither can be less than the square.
    const double t =
        block.geometric_mean ? task.score_threshold * task.score_threshold : task.score_threshold;
    switch (task.activation) {
      case Activation::kNone:
        least_ = t - kSlack;
        break;
      case Activation::kSigmoid:
        least_ = t > 0 ? std::log(t / (1 - t)) - kSlack : least_;
        break;
      case Activation::kSoftmax:
        least_ = t > 0 ? std::log(t) - kSlack : least_;
        break;
    }
  }

  // Whether any class of the row may be good enough; cheap, since nearly no row is.
  bool promising(std::size_t row) const {
    if (block_.objectness != nullptr && task_.activation != Activation::kSoftmax &&
        block_.objectness[row * block_.objectness_step] < least_) {
      return false;
    }
    double best = -std::numeric_limits<double>::infinity(), all = best;
    for (std::size_t c = 0; c < block_.classes; ++c) {
      const double raw = at(row, c);
      all = std::max(all, raw);
      if (c != background_) best = std::max(best, raw);
    }
    return task_.activation == Activation::kSoftmax ? best - all >= least_ : best >= least_;
  }

  // The score of each class of the row; the background's is below every threshold, since what is no
  // class cannot be the best one: DETR's rule, and that of all classes each.
  void read(std::size_t row, std::vector<double>& scores) const {
    scores.resize(block_.classes);
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < block_.classes; ++c) {
      scores[c] = at(row, c);
      largest = std::max(largest, scores[c]);
    }
    if (task_.activation == Activation::kSoftmax) {
      double sum = 0.0;
      for (double& score : scores) sum += score = std::exp(score - largest);
      for (double& score : scores) score /= sum;
    } else {
      for (double& score : scores) score = activated(score);
    }
    if (block_.objectness != nullptr) {
      const double objectness = block_.objectness[row * block_.objectness_step];
      const double share =
          task_.activation == Activation::kSoftmax ? sigmoid(objectness) : activated(objectness);
      for (double& score : scores) score *= share;
      if (block_.geometric_mean) {
        for (double& score : scores) score = std::sqrt(score);
      }
    }
    if (background_ && *background_ < scores.size()) scores[*background_] = -1.0;
  }

 private:
  double at(std::size_t row, std::size_t c) const {
    const double raw = block_.scores[row * block_.row_step + c * block_.class_step];
    return task_.score_clip > 0 ? std::clamp(raw, -task_.score_clip, task_.score_clip) : raw;
  }

  double activated(double value) const {
    return task_.activation == Activation::kSigmoid ? sigmoid(value) : clamped_share(value);
  }

  const DetectionTask& task_;
  const CandidateBlock& block_;
  std::optional<std::size_t> background_;  // among the block's classes
  double least_ = -std::numeric_limits<double>::infinity();
};

[[noreturn]] void fail(const std::string& problem, const std::string& hint) {
  throw Error(ErrorKind::kModel, problem, hint);
}

// Without an activation, all that counts as a score has to be a probability.
void check_scores(const DetectionTask& task, const CandidateBlock& block) {
  if (task.activation != Activation::kNone) return;
  float least = 0.0F, most = 0.0F;
  const auto look = [&](const float* first, std::size_t step) {
    for (std::size_t row = 0; row < block.rows; ++row) {
      least = std::min(least, first[row * step]);
      most = std::max(most, first[row * step]);
    }
  };
  if (block.objectness != nullptr) look(block.objectness, block.objectness_step);
  for (std::size_t c = 0; c < block.classes; ++c) {
    look(block.scores + c * block.class_step, block.row_step);
  }
  if (least < -kSlack || most > 1 + kSlack) {
    fail("the detector gives a score of " + std::to_string(least < -kSlack ? least : most) +
             ", expected 0 to 1",
         "\"activation\" may have to be sigmoid or softmax, the outputs may be other ones, and "
         "integers may lack their scale in metadata.json");
  }
}

void check_box(const Box& box) {
  for (const double side : {box.left, box.top, box.right, box.bottom}) {
    if (!std::isfinite(side)) {
      fail("the detector gives a box that is infinitely large",
           "check that the task describes the coding of this model");
    }
  }
  if (box.right < box.left || box.bottom < box.top) {
    fail("the detector gives a box from (" + std::to_string(box.left) + ", " +
             std::to_string(box.top) + ") to (" + std::to_string(box.right) + ", " +
             std::to_string(box.bottom) + "), whose sides are negative",
         "check that the task's \"box_format\" is this model's");
  }
}

Box clipped(const Box& box, const InputSides& input) {
  return {std::clamp(box.left, 0.0, input.width), std::clamp(box.top, 0.0, input.height),
          std::clamp(box.right, 0.0, input.width), std::clamp(box.bottom, 0.0, input.height)};
}

std::size_t class_number(const CandidateBlock& block, std::size_t row, std::size_t labels) {
  const float number = block.class_numbers[row * block.class_number_step];
  const double most = labels > 0 ? static_cast<double>(labels) - 1 : 1e6;
  if (number != std::floor(number) || number < 0 || number > most) {
    fail("the detector gives the class " + std::to_string(number) +
             (labels > 0 ? ", and the labels are " + std::to_string(labels)
                         : ", expected a whole number"),
         "check the order of the outputs in the description of the task");
  }
  return static_cast<std::size_t>(number);
}

bool better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.order != b.order) return a.order < b.order;
  return a.class_index < b.class_index;
}

void keep_best_of_each_class(std::size_t count, std::vector<Candidate>& candidates) {
  std::map<std::size_t, std::size_t> seen;
  std::erase_if(candidates,
                [&](const Candidate& candidate) { return ++seen[candidate.class_index] > count; });
}

// The mean of the candidates, weighted by their scores; the rest is the first one's.
Candidate merged(const std::vector<const Candidate*>& candidates) {
  Candidate result = *candidates.front();
  double total = 0.0;
  Box sum;
  std::vector<Keypoint> points(result.decoded.keypoints.size());
  for (const Candidate* candidate : candidates) {
    const double weight = candidate->score;
    const Box& box = candidate->decoded.box;
    total += weight;
    sum.left += weight * box.left;
    sum.top += weight * box.top;
    sum.right += weight * box.right;
    sum.bottom += weight * box.bottom;
    for (std::size_t k = 0; k < points.size(); ++k) {
      points[k].x += weight * candidate->decoded.keypoints[k].x;
      points[k].y += weight * candidate->decoded.keypoints[k].y;
    }
  }
  // All scores are 0 where the threshold is.
  if (!(total > 0)) return result;
  result.decoded.box = {sum.left / total, sum.top / total, sum.right / total, sum.bottom / total};
  for (std::size_t k = 0; k < points.size(); ++k) {
    result.decoded.keypoints[k].x = points[k].x / total;
    result.decoded.keypoints[k].y = points[k].y / total;
  }
  return result;
}

bool overlap(const Suppression& suppression, const Candidate& a, const Candidate& b) {
  if (suppression.per_class && a.class_index != b.class_index) return false;
  return intersection_over_union(a.decoded.box, b.decoded.box) > suppression.iou;
}

// The places of those that stay. `fast`: what is gone takes others with it as well.
template <typename Shape, typename Overlap>
std::vector<std::size_t> staying(const DetectionTask& task,
                                 const std::vector<Candidate>& candidates,
                                 const std::vector<Shape>& shapes, const Overlap& overlap_of) {
  const Suppression& suppression = *task.suppression;
  const bool fast = suppression.mode == SuppressionMode::kFast;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < candidates.size() && kept.size() < task.limit; ++i) {
    const auto hides = [&](std::size_t j) {
      return (!suppression.per_class || candidates[j].class_index == candidates[i].class_index) &&
             overlap_of(shapes[j], shapes[i]) > suppression.iou;
    };
    bool gone = false;
    for (std::size_t k = 0; k < (fast ? i : kept.size()) && !gone; ++k) {
      gone = hides(fast ? k : kept[k]);
    }
    if (!gone) kept.push_back(i);
  }
  return kept;
}

template <typename Make>
auto shapes_of(const std::vector<Candidate>& candidates, const Make& make) {
  std::vector<decltype(make(candidates.front().decoded))> shapes;
  shapes.reserve(candidates.size());
  for (const Candidate& candidate : candidates) shapes.push_back(make(candidate.decoded));
  return shapes;
}

std::vector<std::size_t> staying(const DetectionTask& task,
                                 const std::vector<Candidate>& candidates) {
  const auto area = [](const auto& a, const auto& b) { return intersection_over_union(a, b); };
  if (!task.angle) {
    return staying(task, candidates,
                   shapes_of(candidates, [](const DecodedBox& decoded) { return decoded.box; }),
                   area);
  }
  if (task.suppression->overlap == BoxOverlap::kArea) {
    return staying(task, candidates,
                   shapes_of(candidates,
                             [](const DecodedBox& decoded) {
                               return turned_corners(decoded.box, decoded.angle);
                             }),
                   area);
  }
  return staying(
      task, candidates,
      shapes_of(candidates,
                [](const DecodedBox& decoded) { return NormalBox(decoded.box, decoded.angle); }),
      probabilistic_overlap);
}

// Greedily, or by all that are better.
std::vector<Candidate> suppress_whole(const DetectionTask& task,
                                      std::vector<Candidate>& candidates) {
  std::vector<Candidate> kept;
  for (const std::size_t i : staying(task, candidates)) kept.push_back(std::move(candidates[i]));
  return kept;
}

std::vector<Candidate> suppress_weighted(const DetectionTask& task,
                                         const std::vector<Candidate>& candidates) {
  std::vector<Candidate> kept;
  std::vector<const Candidate*> left, rest, group;
  for (const Candidate& candidate : candidates) left.push_back(&candidate);
  while (!left.empty() && kept.size() < task.limit) {
    const Candidate& best = *left.front();
    // A box without area overlaps nothing, not even itself.
    group = {&best};
    rest.clear();
    for (std::size_t i = 1; i < left.size(); ++i) {
      (overlap(*task.suppression, best, *left[i]) ? group : rest).push_back(left[i]);
    }
    kept.push_back(merged(group));
    left.swap(rest);
  }
  return kept;
}

}  // namespace

std::vector<Candidate> choose_candidates(const DetectionTask& task, const CandidateBlocks& blocks,
                                         std::size_t labels, const InputSides& input) {
  std::vector<Candidate> candidates;
  std::vector<double> scores;
  std::size_t order = 0;
  const auto add = [&](const CandidateBlock& block, std::size_t row, std::size_t c) {
    std::optional<DecodedBox> decoded = block.decode(row);
    if (!decoded) return;
    check_box(decoded->box);
    if (task.clip == BoxClip::kInput) decoded->box = clipped(decoded->box, input);
    const std::size_t class_index =
        block.class_numbers != nullptr ? class_number(block, row, labels) : c;
    if (class_index == task.background) return;
    candidates.push_back({scores[c], order + row, class_index, std::move(*decoded)});
  };
  for (const CandidateBlock& block : blocks.blocks) {
    if (block.class_numbers == nullptr && task.background && *task.background >= block.classes) {
      throw Error(ErrorKind::kMismatch, "the task's background is class " +
                                            std::to_string(*task.background) +
                                            ", but the model has " + std::to_string(block.classes));
    }
    check_scores(task, block);
    const Scores reader(task, block);
    for (std::size_t row = 0; row < block.rows; ++row) {
      if (!reader.promising(row)) continue;
      reader.read(row, scores);
      if (task.every_class) {
        for (std::size_t c = 0; c < scores.size(); ++c) {
          if (scores[c] >= task.score_threshold) add(block, row, c);
        }
      } else {
        const auto best = std::max_element(scores.begin(), scores.end());
        if (best != scores.end() && *best >= task.score_threshold) {
          add(block, row, static_cast<std::size_t>(best - scores.begin()));
        }
      }
    }
    order += block.rows;
  }
  std::sort(candidates.begin(), candidates.end(), better);
  if (task.candidates > 0) keep_best_of_each_class(task.candidates, candidates);
  return candidates;
}

std::vector<Candidate> suppress(const DetectionTask& task, std::vector<Candidate> candidates) {
  if (!task.suppression) {
    if (candidates.size() > task.limit) candidates.resize(task.limit);
    return candidates;
  }
  return task.suppression->mode == SuppressionMode::kWeighted ? suppress_weighted(task, candidates)
                                                              : suppress_whole(task, candidates);
}

}  // namespace run_model
