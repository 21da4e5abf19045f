#include "run_model/check_zoo/result_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

std::string six_digits(double value) { return formatted("%.6g", value); }

std::string what(const Detection& detection) {
  std::string text = "class " + std::to_string(detection.class_index);
  if (!detection.label.empty()) text += " (" + in_quotes(detection.label) + ")";
  return text + " with the score " + six_digits(detection.score) + " at " +
         six_digits(detection.box.left) + ", " + six_digits(detection.box.top) + ", " +
         six_digits(detection.box.right) + ", " + six_digits(detection.box.bottom);
}

// What is thinner than a pixel cannot be told from what is a pixel wide.
Box a_pixel_or_more(const Box& box) {
  const double x = std::max(0.0, 1 - (box.right - box.left)) / 2;
  const double y = std::max(0.0, 1 - (box.bottom - box.top)) / 2;
  return {box.left - x, box.top - y, box.right + x, box.bottom + y};
}

// Of oriented boxes as they are turned; one with an angle is no upright one.
double overlap_of(const Detection& a, const Detection& b) {
  if (a.corners.has_value() != b.corners.has_value()) return 0.0;
  return a.corners ? intersection_over_union(*a.corners, *b.corners)
                   : intersection_over_union(a_pixel_or_more(a.box), a_pixel_or_more(b.box));
}

double apart(double x, double y, double other_x, double other_y) {
  return std::hypot(x - other_x, y - other_y);
}

class Comparison {
 public:
  explicit Comparison(const ResultTolerance& tolerance) : tolerance_(tolerance) {}

  void compare(const Task& task, const TaskResult& expected, const TaskResult& actual) {
    if (expected.index() != actual.index()) {
      fail("kind", "the result is of another kind than the reference's");
      return;
    }
    if (const auto* detections = std::get_if<DetectionResult>(&expected)) {
      threshold_ = std::get<DetectionTask>(task.what).score_threshold;
      compare(*detections, std::get<DetectionResult>(actual));
    } else if (const auto* mask = std::get_if<SegmentationResult>(&expected)) {
      compare(*mask, std::get<SegmentationResult>(actual));
    } else if (const auto* landmarks = std::get_if<LandmarksResult>(&expected)) {
      compare(*landmarks, std::get<LandmarksResult>(actual));
    } else if (const auto* classes = std::get_if<ClassificationResult>(&expected)) {
      compare(*classes, std::get<ClassificationResult>(actual));
    } else if (const auto* map = std::get_if<MapResult>(&expected)) {
      compare(*map, std::get<MapResult>(actual));
    } else if (const auto* image = std::get_if<ImageResult>(&expected)) {
      compare(*image, std::get<ImageResult>(actual));
    } else {
      compare(std::get<EmbeddingResult>(expected), std::get<EmbeddingResult>(actual));
    }
  }

  ResultComparison take() { return std::move(result_); }

 private:
  void fail(const std::string& rule, const std::string& message) {
    result_.failures.push_back({rule, message});
  }

  // Keeps the worst value of a measure; false where it is not allowed. `floor`: more is better.
  bool note(const std::string& name, double value, double allowed, bool floor) {
    // What is between the limit and a perfect value of 1 is what may be used up.
    const double used =
        floor ? (1 - value) / std::max(1 - allowed, 1e-12) : value / std::max(allowed, 1e-12);
    auto known = std::find_if(result_.measures.begin(), result_.measures.end(),
                              [&](const ResultMeasure& measure) { return measure.name == name; });
    if (known == result_.measures.end()) {
      result_.measures.push_back({name, value, allowed, used});
    } else if (used > known->tolerance_used) {
      known->worst = value;
      known->tolerance_used = used;
    }
    return used <= 1;
  }

  bool is_borderline(const Detection& detection) const {
    return detection.score <= threshold_ + tolerance_.score;
  }

  void compare(const DetectionResult& expected, const DetectionResult& actual) {
    std::vector<bool> taken(actual.detections.size(), false);
    for (const Detection& one : expected.detections) {
      const std::optional<std::size_t> other = nearest(one, actual.detections, taken);
      if (other) {
        taken[*other] = true;
        compare(one, actual.detections[*other]);
      } else if (!is_borderline(one)) {
        fail("detections", "the reference finds " + what(one) + ", and the network does not");
      }
    }
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i] || is_borderline(actual.detections[i])) continue;
      fail("detections",
           "the network finds " + what(actual.detections[i]) + ", and the reference does not");
    }
  }

  static std::optional<std::size_t> nearest(const Detection& one,
                                            const std::vector<Detection>& others,
                                            const std::vector<bool>& taken) {
    std::optional<std::size_t> best;
    double most = 0.5;  // less is another thing
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (taken[i] || others[i].class_index != one.class_index) continue;
      const double overlap = overlap_of(one, others[i]);
      if (overlap > most) {
        most = overlap;
        best = i;
      }
    }
    return best;
  }

  void compare(const Detection& expected, const Detection& actual) {
    const double overlap = overlap_of(expected, actual);
    if (!note("iou", overlap, tolerance_.iou, true)) {
      fail("detections", "the box of " + what(actual) + " and the reference's overlap by " +
                             six_digits(overlap) + ", expected " + six_digits(tolerance_.iou));
    }
    const double difference = std::abs(expected.score - actual.score);
    if (!note("score", difference, tolerance_.score, false)) {
      fail("detections", "the score of " + what(actual) + " differs from the reference's, " +
                             six_digits(expected.score));
    }
    if (expected.keypoints.size() != actual.keypoints.size()) {
      fail("detections", what(actual) + " has " + std::to_string(actual.keypoints.size()) +
                             " keypoints, expected " + std::to_string(expected.keypoints.size()));
      return;
    }
    for (std::size_t i = 0; i < expected.keypoints.size(); ++i) {
      const Keypoint& a = expected.keypoints[i];
      const Keypoint& b = actual.keypoints[i];
      check_point("detections", "keypoint " + std::to_string(i), apart(a.x, a.y, b.x, b.y));
    }
  }

  void check_point(const std::string& rule, const std::string& name, double pixels) {
    if (note("pixels", pixels, tolerance_.pixels, false)) return;
    fail(rule, name + " is " + six_digits(pixels) + " pixels from the reference's, allowed are " +
                   six_digits(tolerance_.pixels));
  }

  template <typename Result>
  bool same_sides(const Result& expected, const Result& actual, const std::string& what_it_is) {
    if (expected.width == actual.width && expected.height == actual.height) return true;
    fail(what_it_is, "the " + what_it_is + " has " + std::to_string(actual.width) + " x " +
                         std::to_string(actual.height) + " pixels, expected " +
                         std::to_string(expected.width) + " x " + std::to_string(expected.height));
    return false;
  }

  // equal(i): whether pixel i is alike in both.
  template <typename Equal>
  void check_agreement(const std::string& rule, const std::string& words, std::size_t count,
                       Equal&& equal) {
    std::size_t alike = 0;
    for (std::size_t i = 0; i < count; ++i) alike += equal(i) ? 1 : 0;
    const double share = static_cast<double>(alike) / static_cast<double>(count);
    if (note("agreement", share, tolerance_.agreement, true)) return;
    fail(rule, words + " for " + six_digits(share) + " of the pixels, expected " +
                   six_digits(tolerance_.agreement));
  }

  void compare(const SegmentationResult& expected, const SegmentationResult& actual) {
    if (!same_sides(expected, actual, "mask")) return;
    check_agreement("mask", "the same class", expected.classes.size(),
                    [&](std::size_t i) { return expected.classes[i] == actual.classes[i]; });
  }

  void compare(const MapResult& expected, const MapResult& actual) {
    if (!same_sides(expected, actual, "map")) return;
    const std::vector<float>&a = expected.values, &b = actual.values;
    check_agreement("map", "the same is seen", a.size(),
                    [&](std::size_t i) { return std::isnan(a[i]) == std::isnan(b[i]); });
    const MapStatistics found = map_statistics(expected, {});
    double most = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!std::isnan(a[i]) && !std::isnan(b[i]))
        most = std::max<double>(most, std::abs(a[i] - b[i]));
    }
    // Numbers that are all the same differ by a share of themselves.
    const double range = found.most > found.least ? found.most - found.least : std::abs(found.most);
    const double share = most == 0.0 ? 0.0 : most / range;
    if (note("map", share, tolerance_.map, false)) return;
    fail("map", "a number differs by " + six_digits(most) + ", which is " + six_digits(share) +
                    " of the reference's range, allowed are " + six_digits(tolerance_.map));
  }

  void compare(const ImageResult& expected, const ImageResult& actual) {
    if (!same_sides(expected, actual, "image")) return;
    const std::size_t pixels = expected.pixels.size() / 3;
    const auto seen = [](const ImageResult& image, std::size_t i) {
      return image.seen.empty() || image.seen[i] != 0;
    };
    check_agreement("image", "the same is seen", pixels,
                    [&](std::size_t i) { return seen(expected, i) == seen(actual, i); });
    int most = 0;
    for (std::size_t i = 0; i < expected.pixels.size(); ++i) {
      if (!seen(expected, i / 3) || !seen(actual, i / 3)) continue;
      most = std::max(most, std::abs(expected.pixels[i] - actual.pixels[i]));
    }
    if (note("levels", most, tolerance_.levels, false)) return;
    fail("image", "a byte differs by " + std::to_string(most) + ", allowed are " +
                      six_digits(tolerance_.levels));
  }

  void compare(const EmbeddingResult& expected, const EmbeddingResult& actual) {
    if (expected.values.size() != actual.values.size()) {
      fail("embedding", "there are " + std::to_string(actual.values.size()) +
                            " numbers, expected " + std::to_string(expected.values.size()));
      return;
    }
    const double cosine = cosine_similarity(expected, actual);
    if (note("cosine", cosine, tolerance_.cosine, true)) return;
    fail("embedding", "the cosine of the angle to the reference's is " + six_digits(cosine) +
                          ", expected " + six_digits(tolerance_.cosine));
  }

  void compare(const LandmarksResult& expected, const LandmarksResult& actual) {
    const double confidence = expected.confidence.value_or(1);
    const double difference = std::abs(confidence - actual.confidence.value_or(1));
    if (!note("score", difference, tolerance_.score, false)) {
      fail("landmarks", "the confidence is " + six_digits(actual.confidence.value_or(1)) +
                            ", expected " + six_digits(confidence));
    }
    if (expected.points.size() != actual.points.size()) {
      fail("landmarks", "there are " + std::to_string(actual.points.size()) + " points, expected " +
                            std::to_string(expected.points.size()));
      return;
    }
    for (std::size_t i = 0; i < expected.points.size(); ++i) {
      compare(expected.points[i], actual.points[i], "point " + std::to_string(i));
    }
  }

  void compare(const Landmark& expected, const Landmark& actual, const std::string& name) {
    check_point("landmarks", name, apart(expected.x, expected.y, actual.x, actual.y));
    if (expected.z && actual.z) {
      check_point("landmarks", "the z of " + name, std::abs(*expected.z - *actual.z));
    }
    for (const auto member : {&Landmark::score, &Landmark::visibility, &Landmark::presence}) {
      const std::optional<double>& a = expected.*member;
      const std::optional<double>& b = actual.*member;
      if (a.has_value() != b.has_value()) {
        fail("landmarks", name + " has other scores than the reference's");
      } else if (a && !note("score", std::abs(*a - *b), tolerance_.score, false)) {
        fail("landmarks",
             "a score of " + name + " is " + six_digits(*b) + ", expected " + six_digits(*a));
      }
    }
    if (expected.z.has_value() != actual.z.has_value()) {
      fail("landmarks", name + (actual.z ? " has a z" : " has no z") + ", unlike the reference's");
    }
  }

  void compare(const ClassificationResult& expected, const ClassificationResult& actual) {
    for (const ClassificationResult::Class& one : expected.classes) {
      const auto other = std::find_if(
          actual.classes.begin(), actual.classes.end(),
          [&](const ClassificationResult::Class& item) { return item.index == one.index; });
      const double probability = other == actual.classes.end() ? 0 : other->probability;
      if (note("score", std::abs(one.probability - probability), tolerance_.score, false)) continue;
      fail("classes", "class " + std::to_string(one.index) + " has the probability " +
                          six_digits(probability) + ", expected " + six_digits(one.probability));
    }
  }

  const ResultTolerance& tolerance_;
  double threshold_ = 0.0;
  ResultComparison result_;
};

}  // namespace

ResultComparison compare_results(const std::vector<Task>& tasks,
                                 const std::vector<TaskResult>& expected,
                                 const std::vector<TaskResult>& actual,
                                 const ResultTolerance& tolerance) {
  Comparison comparison(tolerance);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    comparison.compare(tasks[i], expected.at(i), actual.at(i));
  }
  return comparison.take();
}

}  // namespace run_model
