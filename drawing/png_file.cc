#include <run_model/png_file.h>

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/text.h"
#include "base/write_file.h"

namespace {

// Streams of one strategy into `room` bytes; 0 where they do not fit or there is no memory.
std::size_t deflate_all(const unsigned char* data, std::size_t length, int strategy,
                        unsigned char* compressed, std::size_t room) {
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 15, 9, strategy) != Z_OK) return 0;
  stream.next_in = const_cast<unsigned char*>(data);
  stream.avail_in = static_cast<uInt>(length);
  stream.next_out = compressed;
  stream.avail_out = static_cast<uInt>(room);
  const int result = deflate(&stream, Z_FINISH);
  const std::size_t written = stream.total_out;
  deflateEnd(&stream);
  return result == Z_STREAM_END ? written : 0;
}

// Of differences between a photograph's pixels only runs are worth looking for, in half the time.
// Grey pictures and drawings repeat themselves: what a piece of the middle says of this one counts.
int best_strategy(const unsigned char* data, std::size_t length) {
  constexpr std::size_t kPiece = 16384;
  const std::size_t piece = std::min(kPiece, length);
  const unsigned char* middle = data + (length - piece) / 2;
  std::vector<unsigned char> out(compressBound(piece) + 64);
  const std::size_t runs = deflate_all(middle, piece, Z_RLE, out.data(), out.size());
  const std::size_t all = deflate_all(middle, piece, Z_DEFAULT_STRATEGY, out.data(), out.size());
  return runs > all + all / 50 ? Z_DEFAULT_STRATEGY : Z_RLE;
}

// zlib instead of the writer's own compression. The writer frees what malloc gives.
unsigned char* compress_png(unsigned char* data, int length, int* compressed_length,
                            int /*level*/) {
  const auto size = static_cast<std::size_t>(length);
  const std::size_t room = compressBound(static_cast<uLong>(length)) + 64;
  auto* compressed = static_cast<unsigned char*>(std::malloc(room));
  if (compressed == nullptr) return nullptr;
  const std::size_t written = deflate_all(data, size, best_strategy(data, size), compressed, room);
  if (written == 0) {
    std::free(compressed);
    return nullptr;
  }
  *compressed_length = static_cast<int>(written);
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
  // The filter by time: the file is written beside a run that takes milliseconds.
  stbi_write_force_png_filter = 1;
  int length = 0;
  const std::unique_ptr<unsigned char[], Free> file(
      stbi_write_png_to_mem(pixels, width * channels, width, height, channels, &length));
  if (!file) throw std::bad_alloc();
  write_file(path, {std::as_bytes(std::span(file.get(), static_cast<std::size_t>(length)))});
}

}  // namespace

void write_png(const std::filesystem::path& path, const Image& image) {
  check_image_size(path_in_quotes(path), image.width(), image.height());
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
