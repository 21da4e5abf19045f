#include "preprocess/jpeg_check.h"

#include <algorithm>
#include <string_view>

#include <run_model/error.h>
#include <run_model/image.h>
#include "preprocess/exif.h"
#include "preprocess/jpeg_scan.h"

namespace run_model {
namespace {

// Far more than any encoder writes; each scan may cost a pass over the picture for few bytes.
constexpr int kMaxScans = 500;

enum Marker : int {
  kSof0 = 0xC0,
  kSof1 = 0xC1,
  kSof2 = 0xC2,
  kDht = 0xC4,
  kJpg = 0xC8,
  kDac = 0xCC,
  kSof15 = 0xCF,
  kRst0 = 0xD0,
  kSoi = 0xD8,
  kEoi = 0xD9,
  kSos = 0xDA,
  kDri = 0xDD,
  kApp1 = 0xE1,
  kTem = 0x01,
};

bool has_no_body(int marker) { return marker == kTem || (marker >= kRst0 && marker <= kSoi); }

bool is_frame(int marker) {
  return marker >= kSof0 && marker <= kSof15 && marker != kDht && marker != kJpg && marker != kDac;
}

class JpegChecker {
 public:
  JpegChecker(Bytes file, const std::string& what) : file_(file), what_(what) {}

  JpegInfo check() {
    std::size_t position = 2;  // after SOI
    for (;;) {
      const int marker = next_marker(position);
      if (marker == kEoi) {
        break;
      }
      if (has_no_body(marker)) {
        continue;
      }
      const Bytes body = segment(position);
      if (marker == kSos) {
        position = scan(body, position);
      } else {
        read(marker, body);
      }
    }
    const auto missing =
        std::find_if(frame_.components.begin(), frame_.components.end(),
                     [](const JpegComponent& component) { return !component.scanned; });
    if (frame_.components.empty() || missing != frame_.components.end()) {
      damaged("it ends before all its colour components");
    }
    return info_;
  }

 private:
  [[noreturn]] void damaged(const std::string& found) const {
    throw Error(ErrorKind::kImage, what_ + ": the JPEG picture is damaged: " + found,
                "copy or download the file again");
  }

  // The marker at `position`, which moves past it; fill bytes may precede it.
  int next_marker(std::size_t& position) const {
    const std::size_t start = position;
    while (position < file_.size() && file_[position] == 0xFF) {
      ++position;
    }
    if (position >= file_.size()) {
      damaged("the file is truncated at byte " + std::to_string(file_.size()) +
              ", before the end of the picture");
    }
    if (position == start || file_[position] == 0) {
      damaged("there is no marker at byte " + std::to_string(start));
    }
    return file_[position++];
  }

  // The body of the segment whose length stands at `position`, which moves past the segment.
  Bytes segment(std::size_t& position) const {
    PictureReader reader(file_.subspan(position), what_);
    if (reader.left() < 2) {
      damaged("the file is truncated at byte " + std::to_string(file_.size()));
    }
    const std::uint32_t length = reader.u16be();
    if (length < 2 || length - 2 > reader.left()) {
      damaged("the segment at byte " + std::to_string(position) + " claims " +
              std::to_string(length) + " bytes of the " + std::to_string(reader.left() + 2) +
              " that are left");
    }
    position += length;
    return reader.take(length - 2);
  }

  void read(int marker, Bytes body) {
    PictureReader reader(body, what_);
    if (is_frame(marker)) {
      read_frame(marker, reader);
    } else if (marker == kDht) {
      while (reader.left() > 0) {
        const int selector = reader.u8();
        if ((selector >> 4) > 1 || (selector & 15) > 3) {
          damaged("a Huffman table has the number " + std::to_string(selector));
        }
        auto& tables = selector >> 4 == 0 ? tables_.dc : tables_.ac;
        tables[static_cast<std::size_t>(selector & 15)].read(reader, what_);
      }
    } else if (marker == kDri) {
      tables_.restart_interval = static_cast<int>(reader.u16be());
    } else if (marker == kApp1) {
      constexpr std::string_view kExif("Exif\0\0", 6);
      if (!has_exif_ && body.size() > kExif.size() &&
          std::equal(kExif.begin(), kExif.end(), body.begin())) {
        has_exif_ = true;
        info_.orientation = exif_orientation(body.subspan(kExif.size()));
      }
    }
  }

  void read_frame(int marker, PictureReader& reader) {
    if (!frame_.components.empty()) {
      damaged("it has two frame headers");
    }
    if (marker > kSof2) {
      throw Error(ErrorKind::kImage,
                  what_ + ": the JPEG picture is of kind SOF" + std::to_string(marker - kSof0) +
                      " (arithmetic coded, lossless or hierarchical)",
                  "only baseline and progressive JPEG can be read; convert it");
    }
    const int precision = reader.u8();
    if (precision != 8) {
      throw Error(ErrorKind::kImage,
                  what_ + ": the JPEG picture has " + std::to_string(precision) + " bits a sample",
                  "8 are supported; convert it");
    }
    const auto height = static_cast<int>(reader.u16be());
    const auto width = static_cast<int>(reader.u16be());
    check_image_size(what_, width, height);
    info_.channels = reader.u8();
    if (info_.channels != 1 && info_.channels != 3 && info_.channels != 4) {
      damaged("it has " + std::to_string(info_.channels) + " colour components");
    }
    frame_.progressive = marker == kSof2;
    int widest = 1;
    int highest = 1;
    for (int i = 0; i < info_.channels; ++i) {
      JpegComponent component;
      component.id = reader.u8();
      const int factors = reader.u8();
      component.horizontal = factors >> 4;
      component.vertical = factors & 15;
      reader.u8();  // the quantisation table, which changes values but no code
      if (component.horizontal < 1 || component.horizontal > 4 || component.vertical < 1 ||
          component.vertical > 4) {
        damaged("a colour component has the sampling factors " +
                std::to_string(component.horizontal) + "x" + std::to_string(component.vertical));
      }
      widest = std::max(widest, component.horizontal);
      highest = std::max(highest, component.vertical);
      frame_.components.push_back(std::move(component));
    }
    lay_out(width, height, widest, highest);
  }

  void lay_out(int width, int height, int widest, int highest) {
    const auto divide_up = [](int a, int b) { return (a + b - 1) / b; };
    frame_.mcus_wide = divide_up(width, 8 * widest);
    frame_.mcus_high = divide_up(height, 8 * highest);
    for (JpegComponent& c : frame_.components) {
      c.blocks_wide = divide_up(divide_up(width * c.horizontal, widest), 8);
      c.blocks_high = divide_up(divide_up(height * c.vertical, highest), 8);
      c.stride = frame_.mcus_wide * c.horizontal;
      if (frame_.progressive) {
        c.nonzero.resize(static_cast<std::size_t>(c.stride) *
                         static_cast<std::size_t>(frame_.mcus_high * c.vertical));
      }
    }
  }

  std::size_t scan(Bytes header, std::size_t data) {
    if (frame_.components.empty()) {
      damaged("a scan stands before the frame header");
    }
    if (++scans_ > kMaxScans) {
      damaged("it has more than " + std::to_string(kMaxScans) + " scans");
    }
    return check_jpeg_scan(file_, header, data, what_, tables_, frame_);
  }

  Bytes file_;
  const std::string& what_;
  JpegInfo info_;
  JpegTables tables_;
  JpegFrame frame_;
  int scans_ = 0;
  bool has_exif_ = false;
};

}  // namespace

JpegInfo check_jpeg(Bytes file, const std::string& what) { return JpegChecker(file, what).check(); }

}  // namespace run_model
