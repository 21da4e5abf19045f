#include <run_model/geometry.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <run_model/error.h>
#include "base/enum_names.h"

namespace run_model {
namespace {

constexpr auto kFits = enum_names<Fit>({{Fit::kCrop, "crop"},
                                        {Fit::kSquash, "squash"},
                                        {Fit::kLetterbox, "letterbox"},
                                        {Fit::kPad, "pad"},
                                        {Fit::kSquashCrop, "squash-crop"}});

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

int centre_offset(int size, int crop, CropStart start) {
  return start == CropStart::kDown ? (size - crop) / 2
                                   : static_cast<int>(std::nearbyint((size - crop) / 2.0));
}

// The middle of a picture that has been resized to width x height.
Geometry middle_of(int width, int height, int crop_width, int crop_height, CropStart start) {
  if (width < crop_width || height < crop_height) {
    throw Error(ErrorKind::kMismatch,
                "the picture resized to " + size_text(width, height) +
                    " is smaller than the crop of " + size_text(crop_width, crop_height),
                "resize the short side to at least the crop");
  }
  return {width,
          height,
          {centre_offset(width, crop_width, start), centre_offset(height, crop_height, start),
           crop_width, crop_height},
          0,
          0};
}

}  // namespace

bool can_be_seen(const PictureRegion& region, int width, int height) {
  // Half the diagonal is as far as it reaches, however it is turned.
  const double turned = std::hypot(region.width, region.height) / 2;
  const double reach_x = region.angle == 0.0 ? region.width / 2 : turned;
  const double reach_y = region.angle == 0.0 ? region.height / 2 : turned;
  const double x = region.x + region.width / 2, y = region.y + region.height / 2;
  return region.width >= 1.0 && region.height >= 1.0 && x + reach_x > 0 && y + reach_y > 0 &&
         x - reach_x < width && y - reach_y < height;
}

void check_region(const PictureRegion& region, int width, int height) {
  const auto fail = [](const std::string& what, const char* hint) {
    throw Error(ErrorKind::kUsage, "the region of the picture " + what, hint);
  };
  for (const double number : {region.x, region.y, region.width, region.height, region.angle}) {
    if (!std::isfinite(number)) fail("has a number that is not finite", "give x,y,width,height");
  }
  for (const double side : {region.width, region.height}) {
    if (side < 1.0 || side > kMaxImageSide) {
      fail("has a side that is not 1 to 65535 pixels", "give x,y,width,height in pixels");
    }
  }
  if (!can_be_seen(region, width, height)) {
    fail("lies outside the picture of " + size_text(width, height),
         "the left top corner of the picture is 0,0");
  }
}

std::string_view fit_name(Fit fit) { return kFits.name(fit); }

Fit parse_fit(std::string_view name) { return kFits.parse(name, "fit"); }

Geometry crop_geometry(int width, int height, int short_side, int crop_width, int crop_height,
                       CropStart start) {
  const int shorter = std::min(width, height);
  const double longer =
      std::floor(static_cast<double>(std::int64_t{short_side} * std::max(width, height)) / shorter);
  if (longer > std::numeric_limits<int>::max()) {
    throw Error(ErrorKind::kMismatch,
                "a picture of " + size_text(width, height) +
                    " is too long for its short side to be resized to " +
                    std::to_string(short_side),
                "use another fit, such as letterbox, or crop the picture");
  }
  const int long_side = static_cast<int>(longer);
  return middle_of(width <= height ? short_side : long_side,
                   width <= height ? long_side : short_side, crop_width, crop_height, start);
}

Geometry squash_crop_geometry(int side, int crop_width, int crop_height, CropStart start) {
  return middle_of(side, side, crop_width, crop_height, start);
}

Geometry squash_geometry(int target_width, int target_height) {
  return {target_width, target_height, {0, 0, target_width, target_height}, 0, 0};
}

Geometry letterbox_geometry(int width, int height, int target_width, int target_height,
                            const LetterboxRule& rule) {
  const double ratio = std::min(static_cast<double>(target_width) / width,
                                static_cast<double>(target_height) / height);
  const auto scaled = [&](int size, int target) {
    const double side = rule.round_down ? std::floor(size * ratio) : std::nearbyint(size * ratio);
    return std::clamp(static_cast<int>(side), 1, target);
  };
  Geometry geometry = squash_geometry(scaled(width, target_width), scaled(height, target_height));
  if (rule.at_start) return geometry;
  geometry.pad_left = (target_width - geometry.resized_width) / 2;
  geometry.pad_top = (target_height - geometry.resized_height) / 2;
  return geometry;
}

Padding aspect_padding(int width, int height, int target_width, int target_height) {
  const double aspect = static_cast<double>(target_width) / target_height;
  const double present = static_cast<double>(width) / height;
  Padding padding{0, 0, width, height};
  const auto fill = [](double missing, int& before, int& side, int other) {
    const double low = std::floor(missing / 2), all = low + std::ceil(missing / 2);
    if (side + all > kMaxImageSide || (side + all) * other > kMaxImagePixels) {
      throw Error(ErrorKind::kImage,
                  "the picture is too long to be filled up to the network's proportions",
                  "use the fit letterbox, or crop the picture");
    }
    before = static_cast<int>(low);
    side += static_cast<int>(all);
  };
  if (present < aspect) {
    fill(aspect * height - width, padding.left, padding.width, height);
  } else if (present > aspect) {
    fill(1 / aspect * width - height, padding.top, padding.height, width);
  }
  return padding;
}

}  // namespace run_model
