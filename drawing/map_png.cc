// Maps of numbers as PNG files of 16 bits, which the writer of the other pictures cannot make.
#include <run_model/png_file.h>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include <run_model/error.h>
#include "base/write_file.h"

namespace run_model {
namespace {

constexpr double kMost = 65535.0;
constexpr double kMillimetre = 0.001;

void put_number(std::uint32_t number, std::vector<unsigned char>& bytes) {
  for (const int shift : {24, 16, 8, 0}) bytes.push_back((number >> shift) & 0xFF);
}

std::vector<unsigned char> chunk(std::string_view kind, std::span<const unsigned char> content) {
  std::vector<unsigned char> bytes;
  put_number(static_cast<std::uint32_t>(content.size()), bytes);
  bytes.insert(bytes.end(), kind.begin(), kind.end());
  bytes.insert(bytes.end(), content.begin(), content.end());
  const uLong sum = crc32(0, bytes.data() + 4, static_cast<uInt>(bytes.size() - 4));
  put_number(static_cast<std::uint32_t>(sum), bytes);
  return bytes;
}

MapCoding coding_of(const MapTask& task, const MapStatistics& found) {
  const bool metres = task.quantity == MapQuantity::kDepth && task.unit == "m";
  if (metres && found.most <= kMost * kMillimetre) return {kMillimetre, 0.0};
  const double step = (found.most - found.least) / (kMost - 1);
  // A number that is the same everywhere.
  if (!(step > 0)) return {1.0, found.least - 1};
  return {step, found.least - step};
}

// Rows of big-endian numbers, each as the difference from the one before it (PNG's filter 1).
std::vector<unsigned char> filtered(const MapResult& map, const MapCoding& coding) {
  const auto width = static_cast<std::size_t>(map.width);
  std::vector<unsigned char> rows;
  rows.reserve((width * 2 + 1) * static_cast<std::size_t>(map.height));
  std::array<unsigned, 2> before{};
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    if (i % width == 0) {
      rows.push_back(1);
      before = {};
    }
    unsigned stored = 0;
    if (!std::isnan(map.values[i])) {
      const double level = std::round((map.values[i] - coding.offset) / coding.step);
      stored = static_cast<unsigned>(std::clamp(level, 1.0, kMost));
    }
    const std::array<unsigned, 2> bytes{stored >> 8, stored & 0xFFU};
    for (std::size_t k = 0; k < bytes.size(); ++k) rows.push_back((bytes[k] - before[k]) & 0xFFU);
    before = bytes;
  }
  return rows;
}

}  // namespace

MapCoding write_map_png(const std::filesystem::path& path, const MapTask& task,
                        const MapResult& map) {
  const MapCoding coding = coding_of(task, map_statistics(map, {}));
  const std::vector<unsigned char> rows = filtered(map, coding);
  uLongf length = compressBound(static_cast<uLong>(rows.size()));
  std::vector<unsigned char> packed(length);
  if (compress2(packed.data(), &length, rows.data(), static_cast<uLong>(rows.size()), 4) != Z_OK) {
    throw std::bad_alloc();
  }
  packed.resize(length);
  std::vector<unsigned char> header;
  put_number(static_cast<std::uint32_t>(map.width), header);
  put_number(static_cast<std::uint32_t>(map.height), header);
  // 16 bits, grey, the only compression and filters there are, not interlaced.
  header.insert(header.end(), {16, 0, 0, 0, 0});
  constexpr std::array<unsigned char, 8> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  const std::vector<unsigned char> first = chunk("IHDR", header), data = chunk("IDAT", packed),
                                   end = chunk("IEND", {});
  write_file(path, {std::as_bytes(std::span(kSignature)), std::as_bytes(std::span(first)),
                    std::as_bytes(std::span(data)), std::as_bytes(std::span(end))});
  return coding;
}

}  // namespace run_model
