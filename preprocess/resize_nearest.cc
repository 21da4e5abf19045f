#include "preprocess/resize_nearest.h"

#include <algorithm>
#include <vector>

namespace run_model {

Image resize_nearest(const Image& image, int width, int height, const Region& window) {
  std::vector<int> offsets(static_cast<std::size_t>(window.width));
  for (int x = 0; x < window.width; ++x) {
    const std::int64_t source = std::int64_t{window.x + x} * image.width() / width;
    offsets[static_cast<std::size_t>(x)] = static_cast<int>(source) * kImageChannels;
  }
  Image result(window.width, window.height);
  for (int y = 0; y < window.height; ++y) {
    const auto source = static_cast<int>(std::int64_t{window.y + y} * image.height() / height);
    const std::uint8_t* from = image.row(source);
    std::uint8_t* to = result.row(y);
    for (const int offset : offsets) {
      to = std::copy_n(from + offset, kImageChannels, to);
    }
  }
  return result;
}

}  // namespace run_model
