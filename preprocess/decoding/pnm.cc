// Source of the format: the pbm(5), pgm(5) and ppm(5) manuals of Netpbm.
#include <algorithm>
#include <cmath>
#include <vector>

#include "preprocess/decoding/decoders.h"

namespace run_model {
namespace {

bool is_space(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// One of the six kinds, by the digit after the 'P'.
class PnmReader {
 public:
  PnmReader(Bytes file, const std::string& what)
      : file_(file), reader_(picture_reader(file, what)), what_(what) {
    reader_.skip(1);
    const int kind = reader_.u8() - '0';
    plain_ = kind <= 3;
    bitmap_ = kind == 1 || kind == 4;
    channels_ = kind == 3 || kind == 6 ? 3 : 1;
  }

  RawPicture decode() {
    const int width = number("width", kMaxImageSide);
    const int height = number("height", kMaxImageSide);
    greatest_ = bitmap_ ? 1 : number("greatest value", 65535);
    check_image_size(what_, width, height);
    if (greatest_ < 1) {
      damaged_picture(what_, "PNM", "its greatest value is 0");
    }
    if (!plain_) {
      reader_.skip(1);  // exactly one white space precedes raw samples
    }
    const auto row_samples = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels_);
    const std::size_t row_bytes = bitmap_           ? (row_samples + 7) / 8
                                  : greatest_ > 255 ? row_samples * 2
                                                    : row_samples;
    // The least that the samples can take, so that a forged header is refused before allocation.
    const std::size_t least = (plain_ ? row_samples : row_bytes) * static_cast<std::size_t>(height);
    if (reader_.remaining() < least) {
      reader_.skip(least);
    }
    make_scale();

    RawPicture picture{Image(width, height), channels_};
    std::vector<std::uint8_t> row(row_samples);
    for (int y = 0; y < height; ++y) {
      plain_ ? read_plain_row(row) : read_raw_row(reader_.octets(row_bytes), row);
      std::uint8_t* to = picture.image.row(y);
      if (channels_ == 3) {
        std::copy(row.begin(), row.end(), to);
      } else {
        for (const std::uint8_t grey : row) {
          to = std::fill_n(to, kImageChannels, grey);
        }
      }
    }
    return picture;
  }

 private:
  void skip_space() {
    while (reader_.remaining() > 0) {
      const std::uint8_t c = file_[reader_.position()];
      if (c == '#') {
        while (reader_.remaining() > 0 && reader_.u8() != '\n') {
        }
      } else if (is_space(c)) {
        reader_.skip(1);
      } else {
        return;
      }
    }
  }

  int number(const char* name, int largest) {
    skip_space();
    int value = 0;
    bool any = false;
    while (reader_.remaining() > 0 && file_[reader_.position()] >= '0' &&
           file_[reader_.position()] <= '9') {
      value = value * 10 + (reader_.u8() - '0');
      any = true;
      if (value > largest) {
        damaged_picture(what_, "PNM", std::string(name) + " is above " + std::to_string(largest));
      }
    }
    if (!any) {
      damaged_picture(
          what_, "PNM",
          std::string("there is no ") + name + " at byte " + std::to_string(reader_.position()));
    }
    return value;
  }

  void make_scale() {
    scale_.resize(static_cast<std::size_t>(greatest_) + 1);
    for (int value = 0; value <= greatest_; ++value) {
      const double scaled = static_cast<double>(value) / greatest_ * 255;
      // A set bit of a bitmap is black; elsewhere the greatest value is white.
      scale_[static_cast<std::size_t>(value)] =
          bitmap_ ? static_cast<std::uint8_t>(value != 0 ? 0 : 255)
                  : static_cast<std::uint8_t>(std::nearbyint(scaled));
    }
  }

  std::uint8_t scaled(std::size_t value) const {
    return scale_[std::min(value, scale_.size() - 1)];
  }

  void read_plain_row(std::vector<std::uint8_t>& row) {
    for (std::uint8_t& sample : row) {
      if (bitmap_) {
        skip_space();
        const int bit = reader_.u8() - '0';
        if (bit != 0 && bit != 1) {
          damaged_picture(
              what_, "PNM",
              "a bit is neither 0 nor 1 at byte " + std::to_string(reader_.position() - 1));
        }
        sample = scaled(static_cast<std::size_t>(bit));
      } else {
        sample = scaled(static_cast<std::size_t>(number("sample", greatest_)));
      }
    }
  }

  void read_raw_row(Bytes bytes, std::vector<std::uint8_t>& row) const {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (bitmap_) {
        row[i] = scaled(bytes[i / 8] >> (7 - i % 8) & 1);
      } else if (greatest_ > 255) {
        row[i] = scaled(static_cast<std::size_t>(bytes[2 * i] << 8 | bytes[2 * i + 1]));
      } else {
        row[i] = scaled(bytes[i]);
      }
    }
  }

  Bytes file_;
  ByteReader reader_;
  const std::string& what_;
  bool plain_ = false;
  bool bitmap_ = false;
  int channels_ = 0;
  int greatest_ = 0;
  std::vector<std::uint8_t> scale_;
};

}  // namespace

RawPicture decode_pnm(Bytes file, const std::string& what) {
  return PnmReader(file, what).decode();
}

}  // namespace run_model
