#include <run_model/resize.h>

#include <algorithm>
#include <vector>

#include <run_model/error.h>
#include "base/enum_names.h"
#include "preprocess/image_operations.h"
#include "preprocess/resizers.h"

namespace run_model {
namespace {

constexpr auto kResizers = enum_names<Resizer>({{Resizer::kNearest, "nearest"},
                                                {Resizer::kPilBilinear, "pil-bilinear"},
                                                {Resizer::kPilBicubic, "pil-bicubic"},
                                                {Resizer::kPilNearest, "pil-nearest"},
                                                {Resizer::kPil13Bilinear, "pil13-bilinear"},
                                                {Resizer::kPil13Bicubic, "pil13-bicubic"},
                                                {Resizer::kCv2Linear, "cv2-linear"},
                                                {Resizer::kCv2Warp, "cv2-warp"}});

// Which source pixels make the target pixels [begin, begin + count) along one axis.
using Sources = std::vector<int> (*)(int source_size, int target_size, int begin, int count);

// floor(index * source / target).
std::vector<int> under_corners(int source_size, int target_size, int begin, int count) {
  std::vector<int> sources;
  for (std::int64_t i = begin; i < std::int64_t{begin} + count; ++i) {
    sources.push_back(static_cast<int>(i * source_size / target_size));
  }
  return sources;
}

// floor((index + 0.5) * source / target), added up pixel by pixel as in Pillow's
// ImagingScaleAffine.
std::vector<int> under_middles(int source_size, int target_size, int begin, int count) {
  const double scale = static_cast<double>(source_size) / target_size;
  double place = scale * 0.5;
  for (int i = 0; i < begin; ++i) place += scale;
  std::vector<int> sources;
  for (int i = 0; i < count; ++i, place += scale) {
    sources.push_back(std::min(static_cast<int>(place), source_size - 1));
  }
  return sources;
}

Image resize_nearest(const Image& image, int width, int height, const Region& window,
                     Sources sources) {
  const std::vector<int> columns = sources(image.width(), width, window.x, window.width);
  const std::vector<int> rows = sources(image.height(), height, window.y, window.height);
  Image result(window.width, window.height);
  for (int y = 0; y < window.height; ++y) {
    const std::uint8_t* from = image.row(rows[static_cast<std::size_t>(y)]);
    std::uint8_t* to = result.row(y);
    for (const int column : columns) {
      to = std::copy_n(from + std::ptrdiff_t{column} * kImageChannels, kImageChannels, to);
    }
  }
  return result;
}

}  // namespace

std::string_view resizer_name(Resizer resizer) { return kResizers.name(resizer); }

Resizer parse_resizer(std::string_view name) { return kResizers.parse(name, "resizer"); }

Image resize(const Image& image, int width, int height, Resizer resizer, const Region& window) {
  if (window.x < 0 || window.y < 0 || window.width < 1 || window.height < 1 ||
      window.width > width - window.x || window.height > height - window.y) {
    throw Error(ErrorKind::kInternal, "the window to resize lies outside the resized picture");
  }
  // Before tables of its sides are made.
  check_image_size("the image", image.width(), image.height());
  check_image_size("the resized image", window.width, window.height);
  if (width == image.width() && height == image.height()) {
    return crop(image, window);
  }
  const auto pil = [&](PilFilter filter, PilRelease release) {
    return resize_pil(image, width, height, filter, release, window);
  };
  switch (resizer) {
    case Resizer::kNearest:
      return resize_nearest(image, width, height, window, under_corners);
    case Resizer::kPilNearest:
      return resize_nearest(image, width, height, window, under_middles);
    case Resizer::kPilBilinear:
      return pil(PilFilter::kBilinear, PilRelease::k12);
    case Resizer::kPilBicubic:
      return pil(PilFilter::kBicubic, PilRelease::k12);
    case Resizer::kPil13Bilinear:
      return pil(PilFilter::kBilinear, PilRelease::k13);
    case Resizer::kPil13Bicubic:
      return pil(PilFilter::kBicubic, PilRelease::k13);
    case Resizer::kCv2Linear:
      return resize_cv2_linear(image, width, height, window);
    case Resizer::kCv2Warp:
      return warp_cv2_linear(
          image,
          {0.0, 0.0, static_cast<double>(image.width()), static_cast<double>(image.height())},
          width, height, std::nullopt, window);
  }
  throw Error(ErrorKind::kInternal, "unknown resizer");
}

Image resize(const Image& image, int width, int height, Resizer resizer) {
  return resize(image, width, height, resizer, Region{0, 0, width, height});
}

}  // namespace run_model
