#include "artifacts/preprocessing_field.h"

#include <array>
#include <string>
#include <string_view>

namespace run_model {
namespace {

std::array<float, 3> parse_channels(const JsonField& field) {
  std::array<float, 3> values{};
  if (field.array_size() != values.size()) {
    field.fail("has " + std::to_string(field.array_size()) +
               " values, expected three, one for each channel");
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(field.at(i).number());
  }
  return values;
}

}  // namespace

Preprocessing preprocessing_field(const JsonField& field) {
  constexpr std::array<std::string_view, 11> kKnown{
      "resizer",  "fit",         "resize",    "crop", "pad", "position",
      "rounding", "color_order", "divide_by", "mean", "std"};
  refuse_other_members(field, kKnown);
  Preprocessing result;
  result.resizer = parsed_field(field.member("resizer"), parse_resizer);
  result.fit = parsed_field(field.member("fit"), parse_fit);
  if (crops(result.fit)) {
    result.resize = static_cast<int>(field.member("resize").integer(1, kMaxImageSide));
    result.crop = static_cast<int>(field.member("crop").integer(1, result.resize));
  }
  if (const auto pad = find_member(field, "pad")) {
    const bool warps = result.resizer == Resizer::kCv2Warp;
    if (pad->is_string()) {
      if (!warps) pad->fail("is a text, which has a meaning with the resizer cv2-warp only");
      one_of(*pad, {"edge"});
      result.outside = Outside::kEdge;
    } else {
      result.pad = static_cast<std::uint8_t>(pad->integer(0, 255));
      if (warps) result.outside = Outside::kPad;
    }
  }
  const bool letterboxes = result.fit == Fit::kLetterbox;
  if (!letterboxes && field.has("position")) {
    field.member("position").fail("has a meaning with the fit letterbox only");
  }
  if (!letterboxes && !crops(result.fit) && field.has("rounding")) {
    field.member("rounding").fail("has a meaning with the fits letterbox, crop, squash-crop only");
  }
  if (const auto position = find_member(field, "position")) {
    result.letterbox.at_start = one_of(*position, {"centre", "start"}) == "start";
  }
  if (const auto rounding = find_member(field, "rounding")) {
    const bool down = one_of(*rounding, {"nearest", "down"}) == "down";
    result.letterbox.round_down = letterboxes && down;
    result.crop_start = crops(result.fit) && down ? CropStart::kDown : CropStart::kRounded;
  }
  result.color_order = parsed_field(field.member("color_order"), parse_color_order);
  result.divide_by = static_cast<float>(positive_number(field.member("divide_by")));
  result.mean = parse_channels(field.member("mean"));
  result.std = parse_channels(field.member("std"));
  for (std::size_t i = 0; i < result.std.size(); ++i) positive_number(field.member("std").at(i));
  return result;
}

}  // namespace run_model
