#include <run_model/png_file.h>

#include <zlib.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/write_file.h"

namespace {

// zlib is faster than the writer's own compression, and smaller. It owns what malloc gives.
unsigned char* compress_png(unsigned char* data, int length, int* compressed_length, int level) {
  uLongf room = compressBound(static_cast<uLong>(length));
  auto* compressed = static_cast<unsigned char*>(std::malloc(room));
  if (compressed == nullptr) return nullptr;
  if (compress2(compressed, &room, data, static_cast<uLong>(length), level) != Z_OK) {
    std::free(compressed);
    return nullptr;
  }
  *compressed_length = static_cast<int>(room);
  return compressed;
}

}  // namespace

#define STBIW_ZLIB_COMPRESS compress_png
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>  // NOLINT
#pragma GCC diagnostic pop

namespace run_model {
namespace {

struct Free {
  void operator()(unsigned char* data) const { std::free(data); }
};

// Its functions write nothing to what they read, but do not say so.
void write(const std::filesystem::path& path, const std::uint8_t* pixels, int width, int height,
           int channels) {
  // Level and filter by time: the file is written beside a run that takes milliseconds.
  stbi_write_png_compression_level = 3;
  stbi_write_force_png_filter = 1;
  int length = 0;
  const std::unique_ptr<unsigned char[], Free> file(
      stbi_write_png_to_mem(pixels, width * channels, width, height, channels, &length));
  if (!file) throw std::bad_alloc();
  write_file(path, {std::as_bytes(std::span(file.get(), static_cast<std::size_t>(length)))});
}

}  // namespace

void write_png(const std::filesystem::path& path, const Image& image) {
  write(path, image.data(), image.width(), image.height(), kImageChannels);
}

void write_mask_png(const std::filesystem::path& path, const SegmentationResult& segmentation) {
  if (segmentation.class_count > 2) {
    write(path, segmentation.classes.data(), segmentation.width, segmentation.height, 1);
    return;
  }
  std::vector<std::uint8_t> grey(segmentation.classes);
  for (std::uint8_t& value : grey) {
    if (value == SegmentationResult::kUnseen) {
      value = 128;
    } else {
      value = value == 0 ? 0 : 255;
    }
  }
  write(path, grey.data(), segmentation.width, segmentation.height, 1);
}

}  // namespace run_model
