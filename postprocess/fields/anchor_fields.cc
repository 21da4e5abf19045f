#include "postprocess/fields/task_fields.h"

#include <array>
#include <string>

#include "postprocess/fields/field_values.h"

namespace run_model {
namespace {

double number_field(const JsonField& field) { return field.number(); }

std::array<int, 2> size_field(const JsonField& field) {
  return fixed_list_field<2>(field, side_field);
}

MediapipeAnchors mediapipe_anchors(const JsonField& field) {
  constexpr std::array<std::string_view, 14> kKnown{"generator",
                                                    "input_width",
                                                    "input_height",
                                                    "min_scale",
                                                    "max_scale",
                                                    "anchor_offset_x",
                                                    "anchor_offset_y",
                                                    "num_layers",
                                                    "strides",
                                                    "feature_maps",
                                                    "aspect_ratios",
                                                    "reduce_boxes_in_lowest_layer",
                                                    "interpolated_scale_aspect_ratio",
                                                    "fixed_anchor_size"};
  refuse_other_members(field, kKnown);
  MediapipeAnchors anchors;
  anchors.input_width = side_field(field.member("input_width"));
  anchors.input_height = side_field(field.member("input_height"));
  anchors.min_scale = positive_number(field.member("min_scale"));
  anchors.max_scale = positive_number(field.member("max_scale"));
  anchors.anchor_offset_x = number_or(field, "anchor_offset_x", 0.5);
  anchors.anchor_offset_y = number_or(field, "anchor_offset_y", 0.5);
  anchors.strides = list_field(field.member("strides"), side_field);
  if (anchors.strides.empty()) field.member("strides").fail("is empty");
  if (const auto layers = find_member(field, "num_layers")) {
    const auto count = static_cast<std::int64_t>(anchors.strides.size());
    if (layers->integer(1, kMaxFieldSide) != count) {
      layers->fail("is not the number of strides, " + std::to_string(count));
    }
  }
  if (const auto maps = find_member(field, "feature_maps")) {
    anchors.feature_maps = list_field(*maps, size_field);
    if (anchors.feature_maps.size() != anchors.strides.size()) {
      maps->fail("has not one size for each of the strides");
    }
  }
  anchors.aspect_ratios = list_field(field.member("aspect_ratios"), positive_number);
  anchors.reduce_boxes_in_lowest_layer = flag_or(field, "reduce_boxes_in_lowest_layer", false);
  anchors.interpolated_scale_aspect_ratio =
      number_or(field, "interpolated_scale_aspect_ratio", 1.0);
  anchors.fixed_anchor_size = flag_or(field, "fixed_anchor_size", false);
  return anchors;
}

TorchvisionAnchors torchvision_anchors(const JsonField& field) {
  constexpr std::array<std::string_view, 10> kKnown{
      "generator", "input_width", "input_height", "feature_maps", "aspect_ratios",
      "min_ratio", "max_ratio",   "scales",       "steps",        "clip"};
  refuse_other_members(field, kKnown);
  TorchvisionAnchors anchors;
  anchors.feature_maps = list_field(field.member("feature_maps"), size_field);
  anchors.aspect_ratios = list_field(field.member("aspect_ratios"), [](const JsonField& ratios) {
    return list_field(ratios, positive_number);
  });
  const std::size_t maps = anchors.feature_maps.size();
  if (maps == 0) field.member("feature_maps").fail("is empty");
  if (anchors.aspect_ratios.size() != maps) {
    field.member("aspect_ratios").fail("has not one list for each of the feature maps");
  }
  anchors.min_ratio = number_or(field, "min_ratio", anchors.min_ratio);
  anchors.max_ratio = number_or(field, "max_ratio", anchors.max_ratio);
  if (const auto scales = find_member(field, "scales")) {
    anchors.scales = list_field(*scales, positive_number);
    if (anchors.scales.size() != maps + 1) {
      scales->fail("has not one number more than there are feature maps");
    }
  }
  if (const auto steps = find_member(field, "steps")) {
    anchors.steps = list_field(*steps, positive_number);
    if (anchors.steps.size() != maps) steps->fail("has not one number for each feature map");
    anchors.input_width = side_field(field.member("input_width"));
    anchors.input_height = side_field(field.member("input_height"));
  }
  anchors.clip = flag_or(field, "clip", true);
  return anchors;
}

PyramidAnchors pyramid_anchors(const JsonField& field) {
  constexpr std::array<std::string_view, 7> kKnown{
      "generator", "feature_maps", "sizes", "aspect_ratios", "offset", "round", "outer"};
  refuse_other_members(field, kKnown);
  PyramidAnchors anchors;
  anchors.feature_maps = list_field(field.member("feature_maps"), size_field);
  if (anchors.feature_maps.empty()) field.member("feature_maps").fail("is empty");
  const auto lists = [&](std::string_view key) {
    const JsonField given = field.member(key);
    const auto each =
        list_field(given, [](const JsonField& list) { return list_field(list, positive_number); });
    if (each.size() != anchors.feature_maps.size()) {
      given.fail("has not one list for each of the feature maps");
    }
    for (std::size_t i = 0; i < each.size(); ++i) {
      if (each[i].empty()) given.at(i).fail("is empty");
    }
    return each;
  };
  anchors.sizes = lists("sizes");
  anchors.aspect_ratios = lists("aspect_ratios");
  anchors.offset = number_or(field, "offset", 0.0);
  anchors.round = flag_or(field, "round", true);
  const auto outer = find_member(field, "outer");
  anchors.sizes_first = outer && one_of(*outer, {"ratios", "sizes"}) == "sizes";
  return anchors;
}

std::vector<Anchor> listed_anchors(const JsonField& field) {
  constexpr std::array<std::string_view, 2> kKnown{"generator", "boxes"};
  refuse_other_members(field, kKnown);
  return list_field(field.member("boxes"), [](const JsonField& box) {
    const std::array<double, 4> values = fixed_list_field<4>(box, number_field);
    if (!(values[2] > 0 && values[3] > 0)) box.fail("has a side that is not more than 0");
    return Anchor{values[0], values[1], values[2], values[3]};
  });
}

}  // namespace

AnchorSource anchors_field(const JsonField& field) {
  const std::string generator =
      one_of(field.member("generator"), {"mediapipe", "torchvision", "pyramid", "list"});
  if (generator == "mediapipe") return mediapipe_anchors(field);
  if (generator == "torchvision") return torchvision_anchors(field);
  if (generator == "pyramid") return pyramid_anchors(field);
  return listed_anchors(field);
}

}  // namespace run_model
