#include "preprocess/jpeg_scan.h"

#include <algorithm>

#include <run_model/error.h>

namespace run_model {
namespace {

constexpr int kLastCoefficient = 63;

class Scan {
 public:
  Scan(Bytes file, Bytes header, std::size_t data, const std::string& what,
       const JpegTables& tables, JpegFrame& frame)
      : tables_(tables), frame_(frame), what_(what), bits_(file, data, what) {
    PictureReader reader(header, what);
    const int count = reader.u8();
    for (int i = 0; i < count; ++i) {
      const int id = reader.u8();
      const int selectors = reader.u8();
      parts_.push_back({&component(id), selectors >> 4, selectors & 15});
    }
    first_ = reader.u8();
    last_ = reader.u8();
    const int approximation = reader.u8();
    refining_ = approximation >> 4 != 0;
    check_header();
  }

  std::size_t run() {
    if (parts_.size() == 1) {
      const JpegComponent& only = *parts_[0].component;
      for (int y = 0; y < only.blocks_high; ++y) {
        for (int x = 0; x < only.blocks_wide; ++x) {
          before_mcu();
          block(parts_[0], x, y);
        }
      }
    } else {
      for (int y = 0; y < frame_.mcus_high; ++y) {
        for (int x = 0; x < frame_.mcus_wide; ++x) {
          before_mcu();
          mcu(x, y);
        }
      }
    }
    for (const Part& part : parts_) {
      part.component->scanned = true;
    }
    return bits_.end();
  }

 private:
  struct Part {
    JpegComponent* component;
    int dc;
    int ac;
  };

  [[noreturn]] void damaged(const std::string& found) const {
    throw Error(ErrorKind::kImage, what_ + ": the JPEG picture is damaged: " + found,
                "copy or download the file again");
  }

  JpegComponent& component(int id) const {
    for (JpegComponent& candidate : frame_.components) {
      if (candidate.id == id) {
        return candidate;
      }
    }
    damaged("a scan names the colour component " + std::to_string(id) +
            ", which the picture does not have");
  }

  void check_header() const {
    if (parts_.empty() || parts_.size() > frame_.components.size()) {
      damaged("a scan has " + std::to_string(parts_.size()) + " colour components");
    }
    if (frame_.progressive) {
      const bool dc_only = first_ == 0 && last_ == 0;
      const bool ac_only = first_ > 0 && first_ <= last_ && last_ <= kLastCoefficient;
      if (!dc_only && !(ac_only && parts_.size() == 1)) {
        damaged("a scan covers the coefficients " + std::to_string(first_) + " to " +
                std::to_string(last_));
      }
    }
    for (const Part& part : parts_) {
      const bool reads_dc = !frame_.progressive || (first_ == 0 && !refining_);
      const bool reads_ac = !frame_.progressive || first_ > 0;
      if ((reads_dc && !defined(tables_.dc, part.dc)) ||
          (reads_ac && !defined(tables_.ac, part.ac))) {
        damaged("a scan uses a Huffman table that is not defined");
      }
    }
  }

  static bool defined(const std::array<HuffmanTable, 4>& tables, int index) {
    return index < 4 && tables[static_cast<std::size_t>(index)].defined();
  }

  const HuffmanTable& dc(const Part& part) const {
    return tables_.dc[static_cast<std::size_t>(part.dc)];
  }
  const HuffmanTable& ac(const Part& part) const {
    return tables_.ac[static_cast<std::size_t>(part.ac)];
  }

  void before_mcu() {
    if (tables_.restart_interval > 0 && done_ > 0 && done_ % tables_.restart_interval == 0) {
      bits_.restart(static_cast<int>(done_ / tables_.restart_interval - 1) % 8);
      end_of_band_ = 0;
    }
    ++done_;
  }

  void mcu(int mcu_x, int mcu_y) {
    for (const Part& part : parts_) {
      const JpegComponent& c = *part.component;
      for (int y = 0; y < c.vertical; ++y) {
        for (int x = 0; x < c.horizontal; ++x) {
          block(part, mcu_x * c.horizontal + x, mcu_y * c.vertical + y);
        }
      }
    }
  }

  void block(const Part& part, int x, int y) {
    if (!frame_.progressive) {
      sequential(part);
    } else if (first_ == 0) {
      refining_ ? static_cast<void>(bits_.bits(1)) : dc_difference(part);
    } else {
      const std::size_t index =
          static_cast<std::size_t>(y) * static_cast<std::size_t>(part.component->stride) +
          static_cast<std::size_t>(x);
      std::uint64_t& nonzero = part.component->nonzero[index];
      refining_ ? refine_band(part, nonzero) : first_band(part, nonzero);
    }
  }

  void dc_difference(const Part& part) {
    const int size = bits_.symbol(dc(part));
    // T.81 allows 11 bits for 8-bit samples; 12 is what some encoders need for extreme tables.
    if (size > 15) {
      damaged("a code stands for a difference of " + std::to_string(size) + " bits");
    }
    bits_.bits(size);
  }

  void sequential(const Part& part) {
    dc_difference(part);
    for (int k = 1; k <= kLastCoefficient;) {
      const int code = bits_.symbol(ac(part));
      const int size = code & 15;
      if (size == 0) {
        if (code >> 4 != 15) {
          return;
        }
        k += 16;
        continue;
      }
      k += (code >> 4) + 1;
      check_inside(k - 1, kLastCoefficient);
      bits_.bits(size);
    }
  }

  void check_inside(int coefficient, int last) const {
    if (coefficient > last) {
      damaged("a block has a coefficient beyond its last one");
    }
  }

  // The number of blocks without further coefficients that a code EOB0 to EOB14 announces.
  int end_of_band_run(int exponent) {
    return (1 << exponent) + static_cast<int>(exponent > 0 ? bits_.bits(exponent) : 0);
  }

  void first_band(const Part& part, std::uint64_t& nonzero) {
    if (end_of_band_ > 0) {
      --end_of_band_;
      return;
    }
    for (int k = first_; k <= last_;) {
      const int code = bits_.symbol(ac(part));
      const int size = code & 15;
      const int run = code >> 4;
      if (size == 0) {
        if (run < 15) {
          end_of_band_ = end_of_band_run(run) - 1;
          return;
        }
        k += 16;
        continue;
      }
      k += run;
      check_inside(k, last_);
      bits_.bits(size);
      nonzero |= std::uint64_t{1} << k;
      ++k;
    }
  }

  void refine_band(const Part& part, std::uint64_t& nonzero) {
    int k = first_;
    if (end_of_band_ == 0) {
      while (k <= last_) {
        const int code = bits_.symbol(ac(part));
        const int size = code & 15;
        const int run = code >> 4;
        if (size == 0 && run < 15) {
          end_of_band_ = end_of_band_run(run);
          break;
        }
        if (size > 0) {
          bits_.bits(1);
        }
        k = refine_zeros(k, run, nonzero);
        if (size > 0) {
          check_inside(k, last_);
          nonzero |= std::uint64_t{1} << k;
        }
        ++k;
      }
    }
    if (end_of_band_ > 0) {
      refine_zeros(k, kLastCoefficient + 1, nonzero);
      --end_of_band_;
    }
  }

  // Passes `zeros` coefficients that are still zero and reads the bit of each other one on the way.
  // Returns the index of the zero coefficient after them, or one past the band.
  int refine_zeros(int k, int zeros, std::uint64_t nonzero) {
    for (; k <= last_; ++k) {
      if ((nonzero >> k & 1) != 0) {
        bits_.bits(1);
      } else if (zeros-- == 0) {
        break;
      }
    }
    return k;
  }

  const JpegTables& tables_;
  JpegFrame& frame_;
  const std::string& what_;
  ScanBits bits_;
  std::vector<Part> parts_;
  int first_ = 0;
  int last_ = 0;
  bool refining_ = false;
  std::int64_t done_ = 0;
  int end_of_band_ = 0;
};

}  // namespace

std::size_t check_jpeg_scan(Bytes file, Bytes header, std::size_t data, const std::string& what,
                            const JpegTables& tables, JpegFrame& frame) {
  return Scan(file, header, data, what, tables, frame).run();
}

}  // namespace run_model
