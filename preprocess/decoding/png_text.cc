#include "preprocess/decoding/png_text.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string>

#include "base/text.h"
#include "preprocess/decoding/exif.h"

namespace run_model {
namespace {

constexpr std::size_t kLongestText = std::size_t{1} << 20;

// The bytes before the next 0, which are left behind with it; nothing where there is none.
std::optional<std::string_view> take_word(Bytes& bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), 0);
  if (end == bytes.end()) {
    return std::nullopt;
  }
  const auto length = static_cast<std::size_t>(end - bytes.begin());
  const std::string_view word(reinterpret_cast<const char*>(bytes.data()), length);
  bytes = bytes.subspan(length + 1);
  return word;
}

std::vector<std::uint8_t> text_of(Bytes stored, bool packed) {
  if (!packed) {
    return {stored.begin(), stored.end()};
  }
  std::vector<std::uint8_t> text(kLongestText);
  uLongf length = text.size();
  if (uncompress(text.data(), &length, stored.data(), stored.size()) != Z_OK) {
    return {};
  }
  text.resize(length);
  return text;
}

}  // namespace

std::vector<std::uint8_t> exif_in_text(std::string_view chunk, Bytes body) {
  const bool packed = chunk == "zTXt";
  if ((!packed && chunk != "tEXt") || take_word(body) != "Raw profile type exif" ||
      (packed && body.empty())) {
    return {};
  }
  const std::vector<std::uint8_t> text = text_of(body.subspan(packed ? 1 : 0), packed);
  // An empty line, the profile's name, its length, lines of hexadecimal digits.
  auto at = text.begin();
  for (int line = 0; line < 3; ++line) {
    at = std::find(at, text.end(), '\n');
    at += at != text.end() ? 1 : 0;
  }
  std::string digits;
  std::copy_if(at, text.end(), std::back_inserter(digits),
               [](std::uint8_t c) { return std::isxdigit(c) != 0; });
  std::vector<std::uint8_t> profile;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    profile.push_back(static_cast<std::uint8_t>(hex_number(digits.substr(i, 2)).value_or(0)));
  }
  const auto tiff = behind_mark(profile, kExifMark);
  return tiff ? std::vector<std::uint8_t>(tiff->begin(), tiff->end()) : profile;
}

std::vector<std::uint8_t> xmp_in_text(std::string_view chunk, Bytes body) {
  if (chunk != "iTXt" || take_word(body) != "XML:com.adobe.xmp" || body.size() < 2) {
    return {};
  }
  const bool packed = body[0] != 0;
  body = body.subspan(2);                                     // whether it is packed, and how
  const bool described = take_word(body) && take_word(body);  // the language, the keyword in it
  return described ? text_of(body, packed) : std::vector<std::uint8_t>();
}

}  // namespace run_model
