#include "artifacts/preprocessing_field.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "base/json.h"

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
  constexpr std::array<std::string_view, 9> kKnown{
      "resizer", "fit", "resize", "crop", "pad", "color_order", "divide_by", "mean", "std"};
  refuse_other_members(field, kKnown);
  Preprocessing result;
  result.resizer = parse_resizer(one_of(
      field.member("resizer"),
      {"nearest", "pil-bilinear", "pil-bicubic", "pil13-bilinear", "pil13-bicubic", "cv2-linear"}));
  result.fit = parse_fit(one_of(field.member("fit"), {"crop", "squash", "letterbox"}));
  if (result.fit == Fit::kCrop) {
    result.resize = static_cast<int>(field.member("resize").integer(1, kMaxImageSide));
    result.crop = static_cast<int>(field.member("crop").integer(1, result.resize));
  }
  if (const auto pad = find_member(field, "pad")) {
    result.pad = static_cast<std::uint8_t>(pad->integer(0, 255));
  }
  result.color_order =
      parse_color_order(one_of(field.member("color_order"), {"RGB", "BGR", "GRAY"}));
  result.divide_by = static_cast<float>(positive_number(field.member("divide_by")));
  result.mean = parse_channels(field.member("mean"));
  result.std = parse_channels(field.member("std"));
  for (std::size_t i = 0; i < result.std.size(); ++i) positive_number(field.member("std").at(i));
  return result;
}

}  // namespace run_model
