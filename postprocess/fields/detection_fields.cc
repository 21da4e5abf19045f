#include "postprocess/fields/task_fields.h"

#include <array>
#include <span>
#include <string>
#include <vector>

#include "postprocess/fields/field_values.h"
#include "postprocess/fields/task_names.h"

namespace run_model {
namespace {

constexpr std::int64_t kMaxCount = 1'000'000;

constexpr std::array<std::string_view, 16> kCommon{
    "kind",       "form",       "labels",          "activation",
    "score_clip", "background", "classes_per_box", "score_threshold",
    "candidates", "nms",        "limit",           "clip",
    "keypoints",  "region",     "masks",           "angle"};

// The members of all forms, and those of this one.
void refuse_unknown(const JsonField& task, std::initializer_list<std::string_view> of_form) {
  std::vector<std::string_view> known(kCommon.begin(), kCommon.end());
  known.insert(known.end(), of_form.begin(), of_form.end());
  refuse_other_members(task, known);
}

void read_keypoints(const JsonField& task, DetectionTask& detection) {
  const auto field = find_member(task, "keypoints");
  if (!field) return;
  constexpr std::array<std::string_view, 5> kKnown{"count", "values", "offset", "output", "scores"};
  refuse_other_members(*field, kKnown);
  detection.keypoints = static_cast<std::size_t>(field->member("count").integer(1, 1000));
  detection.values_per_keypoint = count_or(*field, "values", 2, 3);
  if (detection.values_per_keypoint < 2) field->member("values").fail("is less than 2");
  if (auto* ssd = std::get_if<SsdForm>(&detection.form)) {
    ssd->keypoint_offset = count_or(*field, "offset", ssd->box_offset + 4, kMaxCount);
  } else if (field->has("offset")) {
    field->member("offset").fail("has a meaning with the form ssd only");
  }
  if (auto* boxes = std::get_if<BoxesForm>(&detection.form)) {
    boxes->keypoints = output_field(field->member("output"));
    if (const auto scores = find_member(*field, "scores")) {
      boxes->keypoint_scores = output_field(*scores);
    }
    return;
  }
  for (const std::string_view key : {"output", "scores"}) {
    if (field->has(key)) field->member(key).fail("has a meaning with the form boxes only");
  }
}

SsdForm ssd_form(const JsonField& task) {
  refuse_unknown(task, {"boxes", "scores", "anchors", "x_scale", "y_scale", "w_scale", "h_scale",
                        "box_format", "exponential", "size_limit", "box_offset"});
  SsdForm form;
  form.boxes = output_field(task.member("boxes"));
  form.scores = output_field(task.member("scores"));
  form.anchors = anchors_field(task.member("anchors"));
  form.x_scale = positive_number(task.member("x_scale"));
  form.y_scale = positive_number(task.member("y_scale"));
  form.w_scale = positive_number(task.member("w_scale"));
  form.h_scale = positive_number(task.member("h_scale"));
  form.box_format = *kBoxFormats.find(one_of(task.member("box_format"), {"cxcywh", "cycxhw"}));
  form.exponential = task.member("exponential").boolean();
  if (const auto limit = find_member(task, "size_limit")) form.size_limit = positive_number(*limit);
  form.box_offset = count_or(task, "box_offset", 0, kMaxCount);
  return form;
}

YoloHeadsForm heads_form(const JsonField& task) {
  refuse_unknown(task, {"outputs", "anchors", "coding", "scale_xy", "layout"});
  YoloHeadsForm form;
  form.outputs = list_field(task.member("outputs"), output_field);
  const auto pair = [](const JsonField& field) {
    return fixed_list_field<2>(field, positive_number);
  };
  const JsonField anchors = task.member("anchors");
  form.anchors =
      list_field(anchors, [&](const JsonField& field) { return list_field(field, pair); });
  if (form.outputs.empty()) task.member("outputs").fail("is empty");
  if (form.anchors.size() != form.outputs.size()) {
    anchors.fail("has not one list for each of the outputs");
  }
  for (std::size_t i = 0; i < form.anchors.size(); ++i) {
    if (form.anchors[i].empty()) anchors.at(i).fail("is empty");
  }
  const bool v5 = one_of(task.member("coding"), {"v3", "v5"}) == "v5";
  form.coding = v5 ? YoloCoding::kV5 : YoloCoding::kV3;
  if (const auto scale = find_member(task, "scale_xy")) {
    if (v5) scale->fail("has a meaning with the coding v3 only");
    form.scale_xy = positive_number(*scale);
  }
  form.channels_last = channels_last_field(task);
  if (task.has("keypoints")) {
    task.member("keypoints").fail("has no meaning with the form yolo-heads");
  }
  return form;
}

BoxesForm boxes_form(const JsonField& task) {
  refuse_unknown(task, {"boxes", "scores", "classes", "count", "box_format", "units"});
  BoxesForm form;
  form.boxes = output_field(task.member("boxes"));
  form.scores = output_field(task.member("scores"));
  if (const auto classes = find_member(task, "classes")) form.classes = output_field(*classes);
  if (const auto count = find_member(task, "count")) form.count = output_field(*count);
  return form;
}

std::vector<int> strides_field(const JsonField& task) {
  const auto strides = find_member(task, "strides");
  if (!strides) return {};
  if (strides->array_size() == 0) strides->fail("is empty");
  if (enum_field(task.member("units"), kUnits) != Units::kPixels) {
    task.member("units").fail("is not 'pixels', which rows that are not decoded have");
  }
  return list_field(*strides, side_field);
}

DistancesForm distances_form(const JsonField& task) {
  refuse_unknown(task, {"boxes", "scores", "centerness", "strides", "point_offset", "distances",
                        "bins", "box_offset", "score_offset", "classes"});
  DistancesForm form;
  form.boxes = output_field(task.member("boxes"));
  form.scores = output_field(task.member("scores"));
  if (const auto centre = find_member(task, "centerness")) form.centerness = output_field(*centre);
  form.strides = list_field(task.member("strides"), side_field);
  if (form.strides.empty()) task.member("strides").fail("is empty");
  form.point_offset = task.member("point_offset").number();
  form.in_cells = one_of(task.member("distances"), {"cells", "pixels"}) == "cells";
  form.bins = count_or(task, "bins", 0, kMaxCount);
  form.box_offset = count_or(task, "box_offset", 0, kMaxCount);
  form.score_offset = count_or(task, "score_offset", 0, kMaxCount);
  form.classes = count_or(task, "classes", 0, kMaxCount);
  if (task.has("keypoints")) {
    task.member("keypoints").fail("has no meaning with the form distances");
  }
  return form;
}

CentersForm centers_form(const JsonField& task) {
  refuse_unknown(task, {"heatmap", "sizes", "offsets", "layout", "order", "size_unit"});
  CentersForm form;
  form.heatmap = output_field(task.member("heatmap"));
  form.sizes = output_field(task.member("sizes"));
  if (const auto offsets = find_member(task, "offsets")) form.offsets = output_field(*offsets);
  form.channels_last = channels_last_field(task);
  form.y_first = one_of(task.member("order"), {"xy", "yx"}) == "yx";
  form.in_cells = one_of(task.member("size_unit"), {"cells", "pixels"}) == "cells";
  for (const std::string_view key : {"keypoints", "classes_per_box"}) {
    if (task.has(key)) task.member(key).fail("has no meaning with the form centers");
  }
  return form;
}

void read_masks(const JsonField& task, DetectionTask& detection) {
  const auto field = find_member(task, "masks");
  if (!field) return;
  const bool of_boxes = std::holds_alternative<BoxesForm>(detection.form);
  constexpr std::array<std::string_view, 5> kKnown{"threshold", "output", "drop_empty", "count",
                                                   "layout"};
  const std::span known(kKnown);
  refuse_other_members(*field, of_boxes ? known.first(3) : known.last(4));
  InstanceMasks& masks = detection.masks.emplace();
  masks.output = output_field(field->member("output"));
  if (const auto drop = find_member(*field, "drop_empty")) masks.drop_empty = drop->boolean();
  if (of_boxes) {
    if (const auto threshold = find_member(*field, "threshold")) {
      masks.threshold = share_field(*threshold);
    }
    return;
  }
  if (!std::holds_alternative<YoloRowsForm>(detection.form) &&
      !std::holds_alternative<BoxRowsForm>(detection.form)) {
    field->fail("has a meaning with the forms yolo-rows, yolo-v8, boxes and box-rows only");
  }
  masks.count = static_cast<std::size_t>(field->member("count").integer(1, 4096));
  masks.channels_last = channels_last_field(*field);
}

void read_angle(const JsonField& task, DetectionTask& detection) {
  const auto field = find_member(task, "angle");
  if (!field) return;
  constexpr std::array<std::string_view, 2> kKnown{"unit", "direction"};
  refuse_other_members(*field, kKnown);
  const bool ready = std::holds_alternative<BoxesForm>(detection.form) ||
                     std::holds_alternative<BoxRowsForm>(detection.form);
  if (!ready && !std::holds_alternative<YoloRowsForm>(detection.form)) {
    field->fail("has a meaning with the forms yolo-rows, yolo-v8, boxes and box-rows only");
  }
  if (ready && detection.box_format != BoxFormat::kCxcywh) {
    task.member("box_format").fail("is not 'cxcywh', which boxes with an angle have");
  }
  for (const std::string_view key : {"keypoints", "masks", "clip"}) {
    if (task.has(key)) task.member(key).fail("cannot be there beside an angle");
  }
  BoxAngle angle;
  angle.degrees = one_of(field->member("unit"), {"radians", "degrees"}) == "degrees";
  angle.counter_clockwise =
      one_of(field->member("direction"), {"clockwise", "counter-clockwise"}) == "counter-clockwise";
  detection.angle = angle;
}

void read_form(const JsonField& task, DetectionTask& detection) {
  const std::string name = one_of(
      task.member("form"),
      {"ssd", "yolo-rows", "yolo-heads", "yolo-v8", "boxes", "box-rows", "distances", "centers"});
  if (name == "ssd") {
    detection.form = ssd_form(task);
    detection.activation = enum_field(task.member("activation"), kActivations);
    return;
  }
  if (name == "yolo-heads") {
    detection.form = heads_form(task);
    detection.activation = enum_or(task, "activation", kActivations, Activation::kSigmoid);
    return;
  }
  if (name == "distances") {
    detection.form = distances_form(task);
    detection.activation = enum_field(task.member("activation"), kActivations);
    return;
  }
  if (name == "centers") {
    detection.form = centers_form(task);
    detection.activation =
        *kActivations.find(one_of(task.member("activation"), {"none", "sigmoid"}));
    return;
  }
  detection.activation = enum_or(task, "activation", kActivations, Activation::kNone);
  if (name == "yolo-rows") {
    refuse_unknown(task, {"output", "units", "objectness", "strides"});
    detection.form = YoloRowsForm{output_field(task.member("output")),
                                  flag_or(task, "objectness", true), false, strides_field(task)};
  } else if (name == "yolo-v8") {
    refuse_unknown(task, {"output", "units"});
    detection.form = YoloRowsForm{output_field(task.member("output")), false, true, {}};
  } else {
    if (name == "boxes") {
      detection.form = boxes_form(task);
    } else {
      refuse_unknown(task, {"output", "box_format", "units"});
      detection.form = BoxRowsForm{output_field(task.member("output"))};
    }
    detection.box_format = enum_field(task.member("box_format"), kBoxFormats);
  }
  detection.units = enum_field(task.member("units"), kUnits);
}

void read_suppression(const JsonField& task, DetectionTask& detection) {
  const bool ready = std::holds_alternative<BoxesForm>(detection.form) ||
                     std::holds_alternative<BoxRowsForm>(detection.form) ||
                     std::holds_alternative<CentersForm>(detection.form);
  // Only what may be suppressed already, or is by its form, can go without a word about it.
  if (ready && !task.has("nms")) return;
  const JsonField field = task.member("nms");
  if (field.is_null()) return;
  constexpr std::array<std::string_view, 4> kKnown{"iou", "mode", "per_class", "overlap"};
  refuse_other_members(field, kKnown);
  Suppression suppression;
  suppression.iou = share_field(field.member("iou"));
  suppression.mode = enum_or(field, "mode", kSuppressionModes, SuppressionMode::kHard);
  if (detection.angle) {
    suppression.overlap = enum_field(field.member("overlap"), kBoxOverlaps);
    if (suppression.mode == SuppressionMode::kWeighted) {
      field.member("mode").fail("is 'weighted', and boxes with an angle have no mean");
    }
  } else if (field.has("overlap")) {
    field.member("overlap").fail("has a meaning with an angle only");
  }
  suppression.per_class = field.member("per_class").boolean();
  detection.suppression = suppression;
}

}  // namespace

OutputChoice output_field(const JsonField& field) {
  OutputChoice choice;
  if (field.is_string()) {
    choice.name = field.string();
    if (choice.name.empty()) field.fail("is empty, expected the name or number of an output");
  } else {
    choice.index = static_cast<std::size_t>(field.integer(0, kMaxCount));
  }
  return choice;
}

double share_field(const JsonField& field) {
  const double value = field.number();
  if (!(value >= 0.0 && value <= 1.0)) field.fail("is not from 0 to 1");
  return value;
}

bool channels_last_field(const JsonField& task) {
  return one_of(task.member("layout"), {"NCHW", "NHWC"}) == "NHWC";
}

DetectionTask detection_field(const JsonField& task) {
  DetectionTask detection;
  read_form(task, detection);
  read_keypoints(task, detection);
  read_masks(task, detection);
  read_angle(task, detection);
  if (const auto clip = find_member(task, "score_clip")) {
    detection.score_clip = positive_number(*clip);
  }
  if (const auto background = find_member(task, "background")) {
    detection.background = static_cast<std::size_t>(background->integer(0, kMaxCount));
  }
  const auto classes = find_member(task, "classes_per_box");
  detection.every_class = classes && one_of(*classes, {"best", "every"}) == "every";
  detection.score_threshold = share_field(task.member("score_threshold"));
  detection.candidates = count_or(task, "candidates", 0, kMaxCount);
  read_suppression(task, detection);
  detection.limit = count_or(task, "limit", 100, kMaxCount);
  if (detection.limit == 0) task.member("limit").fail("is 0, expected 1 or more");
  if (const auto clip = find_member(task, "clip")) {
    const std::string to = one_of(*clip, {"none", "input", "picture"});
    if (to != "none") detection.clip = to == "input" ? BoxClip::kInput : BoxClip::kPicture;
  }
  return detection;
}

}  // namespace run_model
