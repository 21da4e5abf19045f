// What a network has found in a picture. All coordinates are pixels of the picture, which begins at
// its left top corner; the corners of pixels are whole numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <run_model/task.h>

namespace run_model {

struct Box {
  double left = 0.0, top = 0.0, right = 0.0, bottom = 0.0;
};

// The area of the intersection divided by that of the union; 0 where the union has none.
double intersection_over_union(const Box& a, const Box& b);

// Of a box that is turned about its middle: first the corner that would be the left top one if it
// were not, then clockwise. A picture that was squashed makes a parallelogram of it.
using Corners = std::array<std::array<double, 2>, 4>;  // x, y

// Degrees, clockwise, from the picture's rows to the side from the first corner to the second; from
// -180 to 180.
double side_angle(const Corners& corners);

// As of boxes, of two convex quadrangles.
double intersection_over_union(const Corners& a, const Corners& b);

struct Keypoint {
  double x = 0.0, y = 0.0;
  std::optional<double> score;
};

// Which pixels belong to a thing, within a part of the picture.
struct InstanceMask {
  int left = 0, top = 0, width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // row by row; 1: of the thing, else 0
};

struct Detection {
  Box box;  // upright; around the corners where there are any
  std::size_t class_index = 0;
  std::string label;  // empty: the task has none
  double score = 0.0;
  std::vector<Keypoint> keypoints;
  std::optional<InstanceMask> mask{};
  std::optional<Corners> corners{};
};

struct DetectionResult {
  std::vector<Detection> detections;  // the best first
};

struct SegmentationResult {
  // Of pixels that the network has not seen, because the picture was cropped.
  static constexpr std::uint8_t kUnseen = 255;

  int width = 0, height = 0;          // the picture's
  std::vector<std::uint8_t> classes;  // row by row
  std::size_t class_count = 0;
};

struct Landmark {
  double x = 0.0, y = 0.0;
  std::optional<double> z{}, score{}, visibility{}, presence{};
};

struct LandmarksResult {
  std::optional<double> confidence;
  bool present = true;           // the confidence is enough
  std::vector<Landmark> points;  // also where it is not
};

struct ClassificationResult {
  struct Class {
    std::size_t index = 0;
    std::string label;
    double probability = 0.0;
  };
  std::vector<Class> classes;  // the best first
};

struct EmbeddingResult {
  std::vector<double> values;
};

struct MapResult {
  int width = 0, height = 0;  // the picture's
  // Row by row, in the task's unit; NaN for pixels that the network has not seen.
  std::vector<float> values;
};

struct ImageResult {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // row by row, R, G, B
  // Of the picture's pixels, 1 for each that the network has seen; empty: all, or the image has the
  // network's own pixels.
  std::vector<std::uint8_t> seen;
  double least = 0.0, most = 0.0;  // of the network's numbers, before they were cut off
  double cut_off = 0.0;            // the share of them that was beyond the range
};

using TaskResult = std::variant<ClassificationResult, DetectionResult, SegmentationResult,
                                LandmarksResult, EmbeddingResult, MapResult, ImageResult>;

// The numbers of all pixels that were seen; without any, `seen` is 0 and so is the rest.
struct MapStatistics {
  std::size_t seen = 0;
  double least = 0.0, most = 0.0, mean = 0.0;
  std::vector<double> quantiles;  // of the shares asked for, between the nearest two by weight
};

// `shares` from 0 to 1, ascending.
MapStatistics map_statistics(const MapResult& map, const std::vector<double>& shares);

// The pixels of each class as run lengths in COCO's compressed form, column by column, which
// pycocotools.mask.decode takes with "size": [height, width]. By class; empty for one that has no
// pixel.
std::vector<std::string> coco_run_lengths(const SegmentationResult& segmentation);

// The same of one thing's pixels in a picture of width x height.
std::string coco_run_lengths(const InstanceMask& mask, int width, int height);

// The cosine of the angle between two embeddings, -1 to 1. Throws Error(kMismatch) where their
// lengths differ, Error(kModel) where one is zero.
double cosine_similarity(const EmbeddingResult& a, const EmbeddingResult& b);

}  // namespace run_model
