// Follows the codes of a JPEG scan block by block, for jpeg_check. Source: ITU-T T.81, annexes F,
// G.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "preprocess/jpeg_huffman.h"

namespace run_model {

struct JpegComponent {
  int id = 0;
  int horizontal = 1;  // sampling factors, 1..4
  int vertical = 1;
  int blocks_wide = 0;  // that the picture needs
  int blocks_high = 0;
  int stride = 0;  // blocks of a row when the rows are filled up to whole MCUs
  bool scanned = false;
  std::vector<std::uint64_t> nonzero;  // progressive: one bit a coefficient, one word a block
};

struct JpegFrame {
  bool progressive = false;
  int mcus_wide = 0;
  int mcus_high = 0;
  std::vector<JpegComponent> components;
};

struct JpegTables {
  std::array<HuffmanTable, 4> dc;
  std::array<HuffmanTable, 4> ac;
  int restart_interval = 0;  // MCUs between restart markers, 0: none
};

// Reads a scan: its header, at which `reader` stands, and its compressed data from `reader`'s end
// on. `header` is the body of the SOS segment and `data` the file offset after it. Returns the
// offset of the marker after the scan. Throws Error(kImage).
std::size_t check_jpeg_scan(Bytes file, Bytes header, std::size_t data, const std::string& what,
                            const JpegTables& tables, JpegFrame& frame);

}  // namespace run_model
