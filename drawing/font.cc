#include "drawing/font.h"

#include <string_view>

namespace run_model {
namespace {

// From the space to '~', then the box: seven rows for each, a row as a digit of base 32.
constexpr std::string_view kGlyphs = "0000000"
                                     "4444404"
                                     "aaa0000"
                                     "aavavaa"
                                     "4fke5u4"
                                     "op248j3"
                                     "cik8lid"
                                     "4400000"
                                     "2488842"
                                     "8422248"
                                     "04lel40"
                                     "044v440"
                                     "0000c48"
                                     "000v000"
                                     "00000cc"
                                     "01248g0"
                                     "ehjlphe"
                                     "4c4444e"
                                     "eh1248v"
                                     "v2421he"
                                     "26aiv22"
                                     "vgu11he"
                                     "68guhhe"
                                     "v124888"
                                     "ehhehhe"
                                     "ehhf12c"
                                     "0cc0cc0"
                                     "0cc0c48"
                                     "248g842"
                                     "00v0v00"
                                     "8421248"
                                     "eh12404"
                                     "eh1dlle"
                                     "ehhvhhh"
                                     "uhhuhhu"
                                     "ehggghe"
                                     "sihhhis"
                                     "vgguggv"
                                     "vgguggg"
                                     "ehgnhhf"
                                     "hhhvhhh"
                                     "e44444e"
                                     "72222ic"
                                     "hikokih"
                                     "ggggggv"
                                     "hrllhhh"
                                     "hhpljhh"
                                     "ehhhhhe"
                                     "uhhuggg"
                                     "ehhhlid"
                                     "uhhukih"
                                     "fgge11u"
                                     "v444444"
                                     "hhhhhhe"
                                     "hhhhha4"
                                     "hhhllla"
                                     "hha4ahh"
                                     "hhha444"
                                     "v1248gv"
                                     "e88888e"
                                     "0g84210"
                                     "e22222e"
                                     "4ah0000"
                                     "000000v"
                                     "8420000"
                                     "00e1fhf"
                                     "ggmphhu"
                                     "00egghe"
                                     "11djhhf"
                                     "00ehvge"
                                     "698s888"
                                     "0fhhf1e"
                                     "ggmphhh"
                                     "40c444e"
                                     "20622ic"
                                     "ggikoki"
                                     "c44444e"
                                     "00qllhh"
                                     "00mphhh"
                                     "00ehhhe"
                                     "00uhugg"
                                     "00djf11"
                                     "00mpggg"
                                     "00ege1u"
                                     "88s8896"
                                     "00hhhjd"
                                     "00hhha4"
                                     "00hhlla"
                                     "00ha4ah"
                                     "00hhf1e"
                                     "00v248v"
                                     "2448442"
                                     "4444444"
                                     "8442448"
                                     "08l2000"
                                     "vhhhhhv";

}  // namespace

std::array<std::uint8_t, kGlyphHeight> glyph(char character) {
  constexpr unsigned kFirst = ' ', kBox = 0x7F;
  auto code = static_cast<unsigned char>(character);
  if (code < kFirst || code > kBox) code = kBox;
  std::array<std::uint8_t, kGlyphHeight> rows{};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const char digit = kGlyphs[(code - kFirst) * rows.size() + row];
    rows[row] = static_cast<std::uint8_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return rows;
}

std::string drawable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // The bytes of UTF-8 that continue a character.
    if ((byte & 0xC0U) == 0x80U) continue;
    result += byte < 0x80 ? c : '\x7F';
  }
  return result;
}

}  // namespace run_model
