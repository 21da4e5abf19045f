#include <run_model/image.h>

#include <new>
#include <string>

#include <run_model/error.h>

namespace run_model {

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

}  // namespace run_model
