#include <run_model/resize.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "preprocess/resize_cv2.h"
#include "preprocess/resize_nearest.h"
#include "preprocess/resize_pil.h"

namespace run_model {
namespace {

constexpr std::array<std::pair<Resizer, std::string_view>, 4> kResizers = {{
    {Resizer::kNearest, "nearest"},
    {Resizer::kPilBilinear, "pil-bilinear"},
    {Resizer::kPilBicubic, "pil-bicubic"},
    {Resizer::kCv2Linear, "cv2-linear"},
}};

Image crop(const Image& image, const Region& window) {
  Image result(window.width, window.height);
  for (int y = 0; y < window.height; ++y) {
    std::memcpy(result.row(y), image.row(window.y + y) + window.x * kImageChannels,
                result.row_bytes());
  }
  return result;
}

}  // namespace

std::string_view resizer_name(Resizer resizer) {
  for (const auto& [value, name] : kResizers) {
    if (value == resizer) {
      return name;
    }
  }
  return "unknown";
}

Resizer parse_resizer(std::string_view name) {
  std::string known;
  for (const auto& [value, known_name] : kResizers) {
    if (known_name == name) {
      return value;
    }
    known += (known.empty() ? "" : ", ") + std::string(known_name);
  }
  throw Error(ErrorKind::kUsage, "unknown resizer '" + std::string(name) + "'",
              "the resizers are " + known);
}

Image resize(const Image& image, int width, int height, Resizer resizer, const Region& window) {
  if (window.x < 0 || window.y < 0 || window.width < 1 || window.height < 1 ||
      window.width > width - window.x || window.height > height - window.y) {
    throw Error(ErrorKind::kInternal, "the window to resize lies outside the resized picture");
  }
  if (width == image.width() && height == image.height()) {
    return crop(image, window);
  }
  switch (resizer) {
    case Resizer::kNearest:
      return resize_nearest(image, width, height, window);
    case Resizer::kPilBilinear:
      return resize_pil(image, width, height, PilFilter::kBilinear, window);
    case Resizer::kPilBicubic:
      return resize_pil(image, width, height, PilFilter::kBicubic, window);
    case Resizer::kCv2Linear:
      return resize_cv2_linear(image, width, height, window);
  }
  throw Error(ErrorKind::kInternal, "unknown resizer");
}

Image resize(const Image& image, int width, int height, Resizer resizer) {
  return resize(image, width, height, resizer, Region{0, 0, width, height});
}

}  // namespace run_model
