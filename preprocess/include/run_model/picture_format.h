// Which kind of picture a file holds, by its first bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace run_model {

enum class PictureFormat { kPng, kJpeg, kBmp, kPnm, kGif, kPsd, kTga, kWebp };

// "PNG", "JPEG" …
std::string_view picture_format_name(PictureFormat format);

// Throws Error(kImage) for anything else, naming what the file is where its first bytes tell (TIFF,
// AVIF, a web page …) and what to do. TGA has no magic number, so any file would pass for one: it
// is taken only from a file whose footer or whose name (`path`) says so.
PictureFormat detect_picture_format(std::span<const std::uint8_t> file, const std::string& path);

}  // namespace run_model
