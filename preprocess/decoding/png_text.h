// What text chunks of a PNG say of how the picture lies.
// Source: PNG specification, second edition (ISO/IEC 15948), clause 11.3.4; the profiles are
// ImageMagick's, the XMP's keyword is Adobe's (XMP specification, part 3).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "preprocess/decoding/decoders.h"

namespace run_model {

// The TIFF structure in a tEXt or zTXt chunk "Raw profile type exif", where programs put it before
// there was an eXIf chunk; the packet in an iTXt chunk "XML:com.adobe.xmp". Empty in all others,
// and in damaged ones or ones of more than 1 MiB, none of which makes a picture unreadable.
std::vector<std::uint8_t> exif_in_text(std::string_view chunk, Bytes body);
std::vector<std::uint8_t> xmp_in_text(std::string_view chunk, Bytes body);

}  // namespace run_model
