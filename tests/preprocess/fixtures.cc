#include "fixtures.h"

#include <zlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace run_model::fixtures {
namespace {

std::uint8_t pattern_value(std::uint32_t x, std::uint32_t y, std::uint32_t c, std::uint32_t seed) {
  std::uint32_t mixed = x * 73856093U ^ y * 19349663U ^ c * 83492791U ^ seed * 2654435761U;
  mixed *= 2246822519U;
  mixed ^= mixed >> 15;
  const std::uint32_t noise = mixed * 3266489917U >> 24;
  switch (seed % 3) {
    case 0:
      return static_cast<std::uint8_t>(noise);
    case 1:
      return static_cast<std::uint8_t>(x * 5 + y * 3 + c * 40 + (noise & 7));
    default:
      return noise >= 128 ? 255 : 0;
  }
}

}  // namespace

Image make_pattern(int width, int height, std::uint32_t seed) {
  Image image(width, height);
  std::uint8_t* to = image.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < kImageChannels; ++c) {
        *to++ = pattern_value(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                              static_cast<std::uint32_t>(c), seed);
      }
    }
  }
  return image;
}

std::uint32_t checksum(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(crc32(0, bytes.data(), static_cast<uInt>(bytes.size())));
}

std::uint32_t checksum(const Image& image) { return checksum({image.data(), image.byte_count()}); }

std::string data_path(const std::string& name) {
  return source_path("tests/preprocess/data/" + name);
}

std::string source_path(const std::string& name) { return RUN_MODEL_SOURCE_DIR "/" + name; }

std::vector<std::uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot read " + path);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

nlohmann::json read_json(const std::string& name) {
  return nlohmann::json::parse(read_file(data_path(name)));
}

nlohmann::json pictures() {
  nlohmann::json all = read_json("pictures.json");
#ifdef EMULATED
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i]["file"].get<std::string>().ends_with(".webp")) {
      all.erase(i);
    }
  }
#endif
  return all;
}

std::vector<std::uint8_t> from_hex(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string difference(const Image& image, std::span<const std::uint8_t> expected) {
  if (image.byte_count() != expected.size()) {
    return "there are " + std::to_string(image.byte_count()) + " bytes instead of " +
           std::to_string(expected.size());
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (image.data()[i] != expected[i]) {
      const std::size_t row = image.row_bytes();
      return "pixel (" + std::to_string(i % row / kImageChannels) + ", " + std::to_string(i / row) +
             "), channel " + std::to_string(i % kImageChannels) + " is " +
             std::to_string(image.data()[i]) + " instead of " + std::to_string(expected[i]);
    }
  }
  return "";
}

}  // namespace run_model::fixtures
