#include "postprocess/fields/task_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/text.h"
#include "postprocess/fields/field_values.h"
#include "postprocess/fields/task_names.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxTasks = 16;
constexpr std::size_t kMaxLabels = 100'000;
constexpr std::size_t kMaxLabelBytes = 1024;
constexpr std::int64_t kMaxPoints = 100'000;

SegmentationTask segmentation_field(const JsonField& task) {
  constexpr std::array<std::string_view, 9> kKnown{"kind",   "output",     "form",
                                                   "layout", "activation", "threshold",
                                                   "labels", "resample",   "region"};
  refuse_other_members(task, kKnown);
  SegmentationTask segmentation;
  segmentation.output = output_field(task.member("output"));
  const std::string form = one_of(task.member("form"), {"scores", "indices", "mask"});
  if (form == "scores") {
    segmentation.channels_last = channels_last_field(task);
  } else if (task.has("layout")) {
    task.member("layout").fail("has a meaning with the form scores only");
  }
  if (form == "mask") {
    segmentation.form = SegmentationForm::kMask;
    segmentation.activation =
        *kActivations.find(one_of(task.member("activation"), {"none", "sigmoid"}));
    if (const auto threshold = find_member(task, "threshold")) {
      segmentation.threshold = share_field(*threshold);
    }
  } else {
    for (const std::string_view key : {"activation", "threshold"}) {
      if (task.has(key)) task.member(key).fail("has a meaning with the form mask only");
    }
  }
  if (form == "indices") segmentation.form = SegmentationForm::kIndices;
  segmentation.bilinear = form != "indices";
  if (const auto resample = find_member(task, "resample")) {
    segmentation.bilinear = one_of(*resample, {"bilinear", "nearest"}) == "bilinear";
    if (segmentation.bilinear && form == "indices") {
      resample->fail("is 'bilinear', and numbers of classes cannot be interpolated");
    }
  }
  return segmentation;
}

void check_columns(const JsonField& field, const std::vector<PointColumn>& columns) {
  for (const PointColumn column : {PointColumn::kX, PointColumn::kY}) {
    if (std::count(columns.begin(), columns.end(), column) != 1) {
      field.fail("does not have " + in_quotes(kPointColumns.name(column)) + " once");
    }
  }
  for (const PointColumn column : columns) {
    const bool repeats = std::count(columns.begin(), columns.end(), column) > 1;
    if (column != PointColumn::kOther && repeats) {
      field.fail("has " + in_quotes(kPointColumns.name(column)) + " more than once");
    }
  }
}

// Of points as numbers, or as maps.
void read_point_form(const JsonField& task, LandmarksTask& landmarks) {
  const auto form = find_member(task, "form");
  if (form && one_of(*form, {"points", "heatmaps"}) == "heatmaps") {
    for (const std::string_view key : {"columns", "points", "units"}) {
      if (task.has(key)) task.member(key).fail("has a meaning with the form points only");
    }
    landmarks.heatmaps = Heatmaps{channels_last_field(task),
                                  one_of(task.member("refine"), {"none", "quarter"}) == "quarter"};
    return;
  }
  for (const std::string_view key : {"layout", "refine"}) {
    if (task.has(key)) task.member(key).fail("has a meaning with the form heatmaps only");
  }
  landmarks.columns = list_field(task.member("columns"), [](const JsonField& column) {
    return enum_field(column, kPointColumns);
  });
  check_columns(task.member("columns"), landmarks.columns);
  landmarks.points = count_or(task, "points", 0, kMaxPoints);
  landmarks.units = enum_field(task.member("units"), kUnits);
}

LandmarksTask landmarks_field(const JsonField& task) {
  constexpr std::array<std::string_view, 15> kKnown{
      "kind",      "output",           "columns",     "points",
      "units",     "point_activation", "confidence",  "confidence_activation",
      "threshold", "labels",           "connections", "region",
      "form",      "layout",           "refine"};
  refuse_other_members(task, kKnown);
  LandmarksTask landmarks;
  landmarks.output = output_field(task.member("output"));
  read_point_form(task, landmarks);
  if (const auto activation = find_member(task, "point_activation")) {
    landmarks.point_activation = *kActivations.find(one_of(*activation, {"none", "sigmoid"}));
  }
  if (const auto confidence = find_member(task, "confidence")) {
    landmarks.confidence = output_field(*confidence);
    landmarks.confidence_activation =
        *kActivations.find(one_of(task.member("confidence_activation"), {"none", "sigmoid"}));
    if (const auto threshold = find_member(task, "threshold")) {
      landmarks.threshold = share_field(*threshold);
    }
  } else {
    for (const std::string_view key : {"confidence_activation", "threshold"}) {
      if (task.has(key)) task.member(key).fail("has a meaning with a confidence only");
    }
  }
  if (const auto connections = find_member(task, "connections")) {
    landmarks.connections = list_field(*connections, [](const JsonField& pair) {
      return fixed_list_field<2>(pair, [](const JsonField& point) {
        return static_cast<std::size_t>(point.integer(0, kMaxPoints));
      });
    });
  }
  return landmarks;
}

ClassificationTask classification_field(const JsonField& task) {
  constexpr std::array<std::string_view, 6> kKnown{"kind",       "output", "labels",
                                                   "activation", "binary", "region"};
  refuse_other_members(task, kKnown);
  ClassificationTask classification;
  classification.output = output_field(task.member("output"));
  if (const auto activation = find_member(task, "activation")) {
    classification.activation = enum_field(*activation, kActivations);
  }
  classification.binary = flag_or(task, "binary", false);
  if (classification.binary &&
      classification.activation.value_or(Activation::kSoftmax) == Activation::kSoftmax) {
    task.fail("is binary, for which \"activation\" has to be sigmoid or none");
  }
  return classification;
}

EmbeddingTask embedding_field(const JsonField& task) {
  constexpr std::array<std::string_view, 3> kKnown{"kind", "output", "region"};
  refuse_other_members(task, kKnown);
  return {output_field(task.member("output"))};
}

// What goes to terminals, and into pictures.
bool is_printable(const std::string& text) {
  return text.size() <= kMaxLabelBytes && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
         });
}

MapTask map_field(const JsonField& task) {
  constexpr std::array<std::string_view, 7> kKnown{"kind",  "output",   "quantity", "unit",
                                                   "scale", "resample", "region"};
  refuse_other_members(task, kKnown);
  MapTask map;
  map.output = output_field(task.member("output"));
  map.quantity = enum_field(task.member("quantity"), kMapQuantities);
  if (const auto unit = find_member(task, "unit")) {
    map.unit = unit->string();
    if (map.unit.empty() || !is_printable(map.unit)) {
      unit->fail("is no unit: it is empty, has control characters or more than 1024 bytes");
    }
  }
  if (const auto scale = find_member(task, "scale")) map.scale = positive_number(*scale);
  map.resampling = enum_or(task, "resample", kMapResamplings, MapResampling::kBilinear);
  return map;
}

// What is black and what is white: of all channels, or of each.
void read_range(const JsonField& field, ImageTask& image) {
  const auto pair = [](const JsonField& two) {
    const auto range = fixed_list_field<2>(two, [](const JsonField& one) { return one.number(); });
    // As float32, which the network's numbers are.
    const double width = range[1] - range[0];
    if (!(std::abs(width) >= 1e-6 && std::abs(range[0]) <= 1e6 && std::abs(range[1]) <= 1e6)) {
      two.fail("is no range: its ends are to be at least 0.000001 apart, and within ±1000000");
    }
    return range;
  };
  if (field.array_size() == 0 || !field.at(0).is_array()) {
    image.range.fill(pair(field));
  } else if (image.color_order == ColorOrder::kGray) {
    field.fail("has lists, and a grey picture has one range");
  } else {
    image.range = fixed_list_field<3>(field, pair);
  }
}

ImageTask image_field(const JsonField& task) {
  constexpr std::array<std::string_view, 7> kKnown{"kind",  "output", "layout", "color_order",
                                                   "range", "size",   "region"};
  refuse_other_members(task, kKnown);
  ImageTask image;
  image.output = output_field(task.member("output"));
  image.channels_last = channels_last_field(task);
  image.color_order = parsed_field(task.member("color_order"), parse_color_order);
  read_range(task.member("range"), image);
  if (const auto size = find_member(task, "size")) {
    image.of_picture = one_of(*size, {"output", "picture"}) == "picture";
  }
  return image;
}

std::string label_field(const JsonField& field) {
  const std::string& label = field.string();
  if (!is_printable(label)) {
    field.fail("is no label: it has control characters or more than 1024 bytes");
  }
  return label;
}

Task task_field(const JsonField& field) {
  Task task;
  switch (enum_field(field.member("kind"), kTaskKinds)) {
    case TaskKind::kClassification:
      task.what = classification_field(field);
      break;
    case TaskKind::kDetection:
      task.what = detection_field(field);
      break;
    case TaskKind::kSegmentation:
      task.what = segmentation_field(field);
      break;
    case TaskKind::kLandmarks:
      task.what = landmarks_field(field);
      break;
    case TaskKind::kEmbedding:
      task.what = embedding_field(field);
      break;
    case TaskKind::kMap:
      task.what = map_field(field);
      break;
    case TaskKind::kImage:
      task.what = image_field(field);
      break;
  }
  if (const auto labels = find_member(field, "labels")) {
    if (labels->array_size() == 0 || labels->array_size() > kMaxLabels) {
      labels->fail("has " + std::to_string(labels->array_size()) + " labels");
    }
    task.labels = list_field(*labels, label_field);
  }
  if (const auto region = find_member(field, "region")) task.region = region_field(*region);
  return task;
}

}  // namespace

std::vector<Task> tasks_field(const JsonField& field) {
  if (!field.is_array()) return {task_field(field)};
  if (field.array_size() == 0 || field.array_size() > kMaxTasks) {
    field.fail("has " + std::to_string(field.array_size()) + " tasks, expected 1 to 16");
  }
  return list_field(field, task_field);
}

}  // namespace run_model
