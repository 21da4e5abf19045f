#include <run_model/image.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>

#include <run_model/error.h>
#include "preprocess/image_operations.h"

namespace run_model {
namespace {

// Where the pixel (x, y) of the upright picture lies in the stored one of `width` x `height`.
struct Walk {
  std::ptrdiff_t start;
  std::ptrdiff_t step_x;
  std::ptrdiff_t step_y;
};

Walk source_of(int orientation, std::ptrdiff_t width, std::ptrdiff_t height) {
  const std::ptrdiff_t right = width - 1;
  const std::ptrdiff_t bottom = (height - 1) * width;
  switch (orientation) {
    case 2:
      return {right, -1, width};
    case 3:
      return {bottom + right, -1, -width};
    case 4:
      return {bottom, 1, -width};
    case 5:
      return {0, width, 1};
    case 6:
      return {bottom, -width, 1};
    case 7:
      return {bottom + right, -width, -1};
    case 8:
      return {right, width, -1};
    default:
      return {0, 1, width};
  }
}

}  // namespace

void check_image_size(const std::string& what, std::int64_t width, std::int64_t height) {
  const std::string size = std::to_string(width) + "x" + std::to_string(height);
  if (width < 1 || height < 1) {
    throw Error(ErrorKind::kImage, what + ": the picture has no pixels (" + size + ")");
  }
  if (width > kMaxImageSide || height > kMaxImageSide || width * height > kMaxImagePixels) {
    throw Error(ErrorKind::kImage,
                what + ": the picture is " + size + " pixels, more than the limit of " +
                    std::to_string(kMaxImagePixels / 1'000'000) + " megapixels and " +
                    std::to_string(kMaxImageSide) + " a side",
                "scale it down, or check that the file is not damaged");
  }
}

Image::Image(int width, int height) : width_(width), height_(height) {
  check_image_size("image", width, height);
  pixels_.reset(static_cast<std::uint8_t*>(std::malloc(byte_count())));
  if (!pixels_) {
    throw std::bad_alloc();
  }
}

Image Image::adopt(int width, int height, std::uint8_t* pixels) {
  Image image;
  image.width_ = width;
  image.height_ = height;
  image.pixels_.reset(pixels);
  return image;
}

Image crop(const Image& image, const Region& window) {
  Image result(window.width, window.height);
  for (int y = 0; y < window.height; ++y) {
    std::memcpy(result.row(y), image.row(window.y + y) + std::ptrdiff_t{window.x} * kImageChannels,
                result.row_bytes());
  }
  return result;
}

Image to_gray(const Image& image) {
  Image gray(image.width(), image.height());
  const std::uint8_t* from = image.data();
  const std::uint8_t* const end = from + image.byte_count();
  for (std::uint8_t* to = gray.data(); from != end; from += kImageChannels) {
    const int luma = (from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 0x8000) >> 16;
    to = std::fill_n(to, kImageChannels, static_cast<std::uint8_t>(luma));
  }
  return gray;
}

Image pad(const Image& image, int left, int top, int width, int height, std::uint8_t value) {
  Image padded(width, height);
  std::memset(padded.data(), value, padded.byte_count());
  for (int y = 0; y < image.height(); ++y) {
    std::memcpy(padded.row(top + y) + std::ptrdiff_t{left} * kImageChannels, image.row(y),
                image.row_bytes());
  }
  return padded;
}

Image apply_orientation(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) {
    return image;
  }
  const bool turned = orientation >= 5;
  Image upright(turned ? image.height() : image.width(), turned ? image.width() : image.height());
  const Walk source = source_of(orientation, image.width(), image.height());
  // Tiles keep both pictures in the cache when rows become columns.
  constexpr int kTile = 32;
  for (int top = 0; top < upright.height(); top += kTile) {
    for (int left = 0; left < upright.width(); left += kTile) {
      const int right = std::min(left + kTile, upright.width());
      for (int y = top; y < std::min(top + kTile, upright.height()); ++y) {
        std::uint8_t* to = upright.row(y) + static_cast<std::ptrdiff_t>(left) * kImageChannels;
        for (int x = left; x < right; ++x, to += kImageChannels) {
          const std::ptrdiff_t pixel = source.start + source.step_x * x + source.step_y * y;
          std::memcpy(to, image.data() + pixel * kImageChannels, kImageChannels);
        }
      }
    }
  }
  return upright;
}

}  // namespace run_model
