// An 8-bit RGB picture in memory: what the decoder makes and the resizers take and make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace run_model {

inline constexpr int kImageChannels = 3;

// Limits on a picture, checked from its header before memory is allocated. A hundred-megapixel
// camera passes; a forged header that asks for gigabytes does not.
inline constexpr int kMaxImageSide = 65535;
inline constexpr std::int64_t kMaxImagePixels = 128'000'000;
inline constexpr std::int64_t kMaxImageFileBytes = 512LL << 20;

// A rectangle of pixels; x grows to the right and y downwards.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

// Rows from top to bottom without gaps, each pixel three bytes in the order R, G, B. Movable only:
// a photograph is megabytes and nothing needs two of it.
class Image {
 public:
  Image() = default;

  // Uninitialised pixels. Throws Error(kImage) when a side is not in 1..kMaxImageSide or there are
  // more than kMaxImagePixels.
  Image(int width, int height);

  // Takes over `pixels`, which came from malloc and holds width * height * kImageChannels bytes.
  static Image adopt(int width, int height, std::uint8_t* pixels);

  int width() const { return width_; }
  int height() const { return height_; }
  std::size_t row_bytes() const { return static_cast<std::size_t>(width_) * kImageChannels; }
  std::size_t byte_count() const { return row_bytes() * static_cast<std::size_t>(height_); }

  std::uint8_t* data() { return pixels_.get(); }
  const std::uint8_t* data() const { return pixels_.get(); }
  std::uint8_t* row(int y) { return data() + row_bytes() * static_cast<std::size_t>(y); }
  const std::uint8_t* row(int y) const {
    return data() + row_bytes() * static_cast<std::size_t>(y);
  }

 private:
  struct Free {
    void operator()(std::uint8_t* pixels) const { std::free(pixels); }
  };

  int width_ = 0;
  int height_ = 0;
  std::unique_ptr<std::uint8_t[], Free> pixels_;
};

// Throws Error(kImage), its sentence beginning with `what` ("cat.png"), when a picture of this size
// is beyond the limits above.
void check_image_size(const std::string& what, std::int64_t width, std::int64_t height);

}  // namespace run_model
