// Undoing PNG's filters. Source: PNG specification, second edition (ISO/IEC 15948), clause 9.
#pragma once

#include <cstdint>

#include "preprocess/picture_reader.h"

namespace run_model {

// Restores one row of 8-bit samples, `channels` (1 to 4) of them a pixel, from its filtered bytes
// and the restored row above it (zeros above the first). `to` may be the filtered bytes themselves.
// Returns false when `filter` is none of the five.
bool unfilter_png_row(int filter, int channels, Bytes filtered, const std::uint8_t* above,
                      std::uint8_t* to);

}  // namespace run_model
