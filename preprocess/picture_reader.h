// Reads the fields of a picture file in order, with every access checked against its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <run_model/error.h>

namespace run_model {

using Bytes = std::span<const std::uint8_t>;

class PictureReader {
 public:
  // `what` begins the sentence of the error thrown past the end ("cat.png"); it must outlive this.
  PictureReader(Bytes bytes, const std::string& what) : bytes_(bytes), what_(what) {}

  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

  std::uint8_t u8() { return take(1)[0]; }

  std::uint32_t u16be() {
    const Bytes b = take(2);
    return static_cast<std::uint32_t>(b[0] << 8 | b[1]);
  }

  std::uint32_t u32be() {
    const std::uint32_t high = u16be();
    return high << 16 | u16be();
  }

  // The next `count` bytes. Throws Error(kImage) when fewer are left.
  Bytes take(std::size_t count) {
    if (count > left()) {
      throw Error(ErrorKind::kImage,
                  what_ + ": the picture is truncated at byte " + std::to_string(bytes_.size()),
                  "copy or download the file again");
    }
    const Bytes result = bytes_.subspan(position_, count);
    position_ += count;
    return result;
  }

 private:
  Bytes bytes_;
  const std::string& what_;
  std::size_t position_ = 0;
};

}  // namespace run_model
