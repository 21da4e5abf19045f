#include "artifacts/references/golden_results.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include <run_model/npy.h>
#include "base/text.h"
#include "postprocess/fields/task_fields.h"

namespace run_model {
namespace {

constexpr std::int64_t kMaxSide = 65535;
constexpr std::int64_t kMaxPixels = std::int64_t{1} << 26;
constexpr std::int64_t kMaxClass = 1'000'000;

std::size_t class_field(const JsonField& field) {
  return static_cast<std::size_t>(field.integer(0, kMaxClass));
}

// Two or three numbers.
std::vector<double> point_field(const JsonField& field) {
  if (field.array_size() < 2 || field.array_size() > 3) field.fail("is no point");
  std::vector<double> numbers;
  for (std::size_t i = 0; i < field.array_size(); ++i) numbers.push_back(field.at(i).number());
  return numbers;
}

Detection found_detection(const JsonField& field) {
  const JsonField box = field.member("box");
  if (box.array_size() != 4) box.fail("has not four numbers");
  Detection detection;
  detection.box = {box.at(0).number(), box.at(1).number(), box.at(2).number(), box.at(3).number()};
  detection.class_index = class_field(field.member("class"));
  detection.label = text_or_empty(field, "label");
  detection.score = share_field(field.member("score"));
  if (const auto corners = find_member(field, "corners")) {
    if (corners->array_size() != 4) corners->fail("has not four corners");
    detection.corners.emplace();
    for (std::size_t i = 0; i < 4; ++i) {
      const std::vector<double> point = point_field(corners->at(i));
      (*detection.corners)[i] = {point[0], point[1]};
    }
  }
  if (const auto points = find_member(field, "keypoints")) {
    for (std::size_t i = 0; i < points->array_size(); ++i) {
      const std::vector<double> point = point_field(points->at(i));
      Keypoint keypoint{point[0], point[1], {}};
      if (point.size() == 3) keypoint.score = point[2];
      detection.keypoints.push_back(keypoint);
    }
  }
  return detection;
}

DetectionResult detections_field(const JsonField& field) {
  DetectionResult result;
  const JsonField list = field.member("detections");
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    result.detections.push_back(found_detection(list.at(i)));
  }
  return result;
}

// COCO's compressed run lengths: groups of five bits and a sixth for more, each run from the third
// on as the difference to the one before the last.
std::vector<std::int64_t> run_lengths(const JsonField& field) {
  constexpr unsigned kFirst = 48;
  constexpr unsigned kMore = 0x20;
  constexpr unsigned kSign = 0x10;
  constexpr unsigned kMaxShift = 30;
  const std::string& text = field.string();
  std::vector<std::int64_t> runs;
  for (std::size_t i = 0; i < text.size();) {
    std::int64_t value = 0;
    unsigned shift = 0;
    unsigned bits = kMore;
    while ((bits & kMore) != 0) {
      bits = i < text.size() ? static_cast<unsigned char>(text[i++]) - kFirst : ~0U;
      if (bits > 0x3F || shift > kMaxShift) field.fail("is no compressed run lengths");
      value |= std::int64_t{bits & 0x1F} << shift;
      shift += 5;
    }
    if ((bits & kSign) != 0) value -= std::int64_t{1} << shift;
    if (runs.size() > 2) value += runs[runs.size() - 2];
    if (value < 0 || value > kMaxPixels) field.fail("has a run of " + std::to_string(value));
    runs.push_back(value);
  }
  return runs;
}

// Gives the pixels of one class their number; they go column by column.
void add_class(const JsonField& field, SegmentationResult& result) {
  const std::int64_t number = field.member("class").integer(0, SegmentationResult::kUnseen - 1);
  const JsonField rle = field.member("rle");
  const JsonField size = rle.member("size");
  if (size.array_size() != 2 || size.at(0).integer(1, kMaxSide) != result.height ||
      size.at(1).integer(1, kMaxSide) != result.width) {
    size.fail("is not the mask's height and width");
  }
  const std::size_t all = result.classes.size();
  const auto height = static_cast<std::size_t>(result.height);
  const auto width = static_cast<std::size_t>(result.width);
  const JsonField counts = rle.member("counts");
  std::size_t at = 0;
  bool inside = false;
  for (const std::int64_t run : run_lengths(counts)) {
    const std::size_t end = at + static_cast<std::size_t>(run);
    if (end > all) counts.fail("has more pixels than the mask");
    for (; at < end; ++at) {
      std::uint8_t& pixel = result.classes[at % height * width + at / height];
      if (!inside) continue;
      if (pixel != SegmentationResult::kUnseen) counts.fail("covers a pixel of another class");
      pixel = static_cast<std::uint8_t>(number);
    }
    inside = !inside;
  }
  if (at != all) counts.fail("has fewer pixels than the mask");
}

// Of what has a width and a height.
template <typename Result>
void read_sides(const JsonField& field, Result& result) {
  result.width = static_cast<int>(field.member("width").integer(1, kMaxSide));
  result.height = static_cast<int>(field.member("height").integer(1, kMaxSide));
  if (std::int64_t{result.width} * result.height > kMaxPixels) field.fail("has too many pixels");
}

SegmentationResult segmentation_field(const JsonField& field) {
  SegmentationResult result;
  read_sides(field, result);
  result.classes.assign(
      static_cast<std::size_t>(result.width) * static_cast<std::size_t>(result.height),
      SegmentationResult::kUnseen);
  const JsonField classes = field.member("classes");
  for (std::size_t i = 0; i < classes.array_size(); ++i) add_class(classes.at(i), result);
  return result;
}

LandmarksResult landmarks_field(const JsonField& field) {
  LandmarksResult result;
  result.confidence = share_field(field.member("score"));
  result.present = field.member("present").boolean();
  const JsonField points = field.member("points");
  for (std::size_t i = 0; i < points.array_size(); ++i) {
    const std::vector<double> point = point_field(points.at(i));
    Landmark landmark;
    landmark.x = point[0];
    landmark.y = point[1];
    if (point.size() == 3) landmark.z = point[2];
    result.points.push_back(landmark);
  }
  const auto scores = find_member(field, "point_scores");
  if (!scores) return result;
  constexpr std::array<std::string_view, 3> kNames{"score", "visibility", "presence"};
  constexpr std::array kMembers{&Landmark::score, &Landmark::visibility, &Landmark::presence};
  refuse_other_members(*scores, kNames);
  for (std::size_t n = 0; n < kNames.size(); ++n) {
    const auto list = find_member(*scores, kNames[n]);
    if (!list) continue;
    if (list->array_size() != result.points.size()) list->fail("has not one number for each point");
    for (std::size_t i = 0; i < result.points.size(); ++i) {
      result.points[i].*kMembers[n] = share_field(list->at(i));
    }
  }
  return result;
}

ClassificationResult classification_field(const JsonField& field) {
  ClassificationResult result;
  const JsonField top = field.member("top");
  for (std::size_t i = 0; i < top.array_size(); ++i) {
    const JsonField item = top.at(i);
    result.classes.push_back({class_field(item.member("index")), text_or_empty(item, "label"),
                              share_field(item.member("probability"))});
  }
  return result;
}

EmbeddingResult embedding_field(const JsonField& field) {
  EmbeddingResult result;
  const JsonField values = field.member("values");
  for (std::size_t i = 0; i < values.array_size(); ++i) {
    result.values.push_back(values.at(i).number());
  }
  if (values.array_size() == 0) values.fail("has no number");
  return result;
}

template <typename Result>
Result sides_field(const JsonField& field) {
  Result result;
  read_sides(field, result);
  return result;
}

[[noreturn]] void refuse_array(const std::filesystem::path& path, const std::string& problem) {
  throw Error(ErrorKind::kFormat, path_in_quotes(path) + " " + problem,
              "make the case again with scripts/make_golden");
}

void read_pixels(const std::filesystem::path& path, MapResult& result) {
  const Tensor array = read_npy(path);
  const std::vector<std::int64_t> shape{result.height, result.width};
  if (!same_dtype(array.dtype(), DLDataType{kDLFloat, 32, 1}) || array.shape() != shape) {
    refuse_array(path, "is " + tensor_form_name(array.dtype(), array.shape()) +
                           ", expected a map of float32 " + shape_name(shape));
  }
  const std::span<const float> values = array.elements<float>();
  for (const float value : values) {
    if (std::isinf(value)) refuse_array(path, "holds infinity");
  }
  result.values.assign(values.begin(), values.end());
}

void read_pixels(const std::filesystem::path& path, ImageResult& result) {
  const Tensor array = read_npy(path);
  std::vector<std::int64_t> shape{result.height, result.width, 3};
  const bool all_seen = array.shape() == shape;
  if (!all_seen) shape.back() = 4;
  if (!same_dtype(array.dtype(), DLDataType{kDLUInt, 8, 1}) || array.shape() != shape) {
    shape.back() = 3;
    refuse_array(path, "is " + tensor_form_name(array.dtype(), array.shape()) +
                           ", expected a picture of uint8 " + shape_name(shape));
  }
  const std::span<const std::uint8_t> bytes = array.elements<std::uint8_t>();
  const std::size_t channels = all_seen ? 3 : 4;
  for (std::size_t i = 0; i < bytes.size(); i += channels) {
    result.pixels.insert(result.pixels.end(), &bytes[i], &bytes[i] + 3);
    if (!all_seen) result.seen.push_back(bytes[i + 3] != 0 ? 1 : 0);
  }
}

TaskResult result_field(const JsonField& field, TaskKind kind) {
  if (field.member("kind").string() != task_kind_name(kind)) {
    field.member("kind").fail("is not the task's, " + std::string(task_kind_name(kind)));
  }
  switch (kind) {
    case TaskKind::kDetection:
      return detections_field(field);
    case TaskKind::kSegmentation:
      return segmentation_field(field);
    case TaskKind::kLandmarks:
      return landmarks_field(field);
    case TaskKind::kClassification:
      return classification_field(field);
    case TaskKind::kEmbedding:
      return embedding_field(field);
    case TaskKind::kMap:
      return sides_field<MapResult>(field);
    case TaskKind::kImage:
      return sides_field<ImageResult>(field);
  }
  field.fail("is of an unknown kind");
}

}  // namespace

std::vector<TaskResult> golden_results(const JsonField& field, const std::vector<Task>& tasks) {
  if (field.array_size() != tasks.size()) {
    field.fail("has " + std::to_string(field.array_size()) + " results of " +
               std::to_string(tasks.size()) + " tasks");
  }
  std::vector<TaskResult> results;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    results.push_back(result_field(field.at(i), tasks[i].kind()));
  }
  return results;
}

void read_golden_pixels(const std::filesystem::path& golden, std::vector<TaskResult>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::filesystem::path array = golden;
    array.replace_extension("." + std::to_string(i) + ".npy");
    if (auto* map = std::get_if<MapResult>(&results[i])) read_pixels(array, *map);
    if (auto* image = std::get_if<ImageResult>(&results[i])) read_pixels(array, *image);
  }
}

}  // namespace run_model
