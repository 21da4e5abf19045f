#include "preprocess/png_check.h"

#include <zlib.h>

#include <algorithm>

#include <run_model/error.h>
#include <run_model/image.h>
#include "preprocess/exif.h"

namespace run_model {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kHeaderBytes = 13;
constexpr std::uint32_t kLargestChunk = 0x7FFFFFFF;

[[noreturn]] void damaged(const std::string& what, const std::string& found) {
  throw Error(ErrorKind::kImage, what + ": the PNG picture is damaged: " + found,
              "copy or download the file again");
}

struct Chunk {
  std::string type;
  Bytes body;
};

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

Chunk read_chunk(PictureReader& reader, const std::string& what) {
  const std::string place = " at byte " + std::to_string(reader.position());
  const std::uint32_t length = reader.u32be();
  const Bytes type = reader.take(4);
  Chunk chunk{std::string(type.begin(), type.end()), {}};
  if (!std::all_of(chunk.type.begin(), chunk.type.end(), is_letter) || length > kLargestChunk) {
    damaged(what, "there is no chunk" + place);
  }
  chunk.body = reader.take(length);
  // The checksum covers the type and the body, which lie together; both fit zlib's 32-bit length.
  const auto checked = static_cast<uInt>(type.size() + length);
  if (crc32(0, type.data(), checked) != reader.u32be()) {
    damaged(what, "the checksum of chunk " + chunk.type + place + " is wrong");
  }
  return chunk;
}

}  // namespace

PngInfo check_png(Bytes file, const std::string& what) {
  PictureReader reader(file, what);
  reader.take(kSignatureBytes);
  const Chunk header = read_chunk(reader, what);
  if (header.type != "IHDR" || header.body.size() != kHeaderBytes) {
    damaged(what, "it begins with chunk " + header.type + " instead of IHDR");
  }
  PictureReader fields(header.body, what);
  const std::uint32_t width = fields.u32be();
  const std::uint32_t height = fields.u32be();
  check_image_size(what, width, height);

  PngInfo info;
  info.width = static_cast<int>(width);
  info.height = static_cast<int>(height);
  info.depth = fields.u8();
  info.color = fields.u8();
  fields.take(2);  // the methods of compression and filtering, of which there is one each
  info.interlaced = fields.u8() != 0;
  for (;;) {
    const Chunk chunk = read_chunk(reader, what);
    if (chunk.type == "IHDR") {
      damaged(what, "it has two IHDR chunks");
    } else if (chunk.type == "IDAT") {
      info.data.push_back(chunk.body);
    } else if (chunk.type == "eXIf") {
      info.orientation = exif_orientation(chunk.body);
    } else if (chunk.type == "IEND") {
      break;
    }
  }
  if (info.data.empty()) {
    damaged(what, "it has no IDAT chunk");
  }
  return info;
}

}  // namespace run_model
