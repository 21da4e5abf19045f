// Huffman tables and the bits of a JPEG scan, for jpeg_check. Source: ITU-T T.81, C.2, F.2.2.3.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "preprocess/picture_reader.h"

namespace run_model {

class HuffmanTable {
 public:
  // Reads BITS and HUFFVAL of a DHT segment. Throws Error(kImage) when the lengths are impossible.
  void read(PictureReader& reader, const std::string& what);

  bool defined() const { return defined_; }

 private:
  friend class ScanBits;

  static constexpr int kFastBits = 9;
  static constexpr int kLongest = 16;

  bool defined_ = false;
  std::array<std::uint8_t, 256> symbols_{};
  // Code length in the high byte and symbol in the low one, by the next kFastBits bits; 0 where the
  // code is longer.
  std::array<std::uint16_t, 1 << kFastBits> fast_{};
  // By length: one past the last code, shifted to 16 bits, and the index of code 0 in symbols_.
  std::array<std::uint32_t, kLongest + 1> end_{};
  std::array<std::int32_t, kLongest + 1> offset_{};
};

// The entropy-coded bytes of a scan, stuffed zeros removed. Every read throws Error(kImage) where
// the data meets a marker or the end of the file.
class ScanBits {
 public:
  ScanBits(Bytes file, std::size_t position, const std::string& what)
      : file_(file), what_(what), position_(position) {}

  // The next symbol. Throws Error(kImage) for a code that the table does not have.
  int symbol(const HuffmanTable& table);
  std::uint32_t bits(int count);  // at most 16

  // Drops the bits up to the next marker, which must be RST0 + `index`.
  void restart(int index);

  // The file offset of the marker that ends the scan, past bytes that belong to nothing.
  std::size_t end() const;

 private:
  void need(int count);
  std::size_t next_marker() const;

  Bytes file_;
  const std::string& what_;
  std::size_t position_;
  std::uint64_t buffer_ = 0;  // its lowest `available_` bits are next
  int available_ = 0;
};

}  // namespace run_model
