#include "base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace run_model {

bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    // Number of bytes that follow, and the least code point that needs so many.
    std::size_t more = 0;
    std::uint32_t code = 0, least = 0;
    if ((first & 0xE0) == 0xC0) {
      more = 1, code = first & 0x1F, least = 0x80;
    } else if ((first & 0xF0) == 0xE0) {
      more = 2, code = first & 0x0F, least = 0x800;
    } else if ((first & 0xF8) == 0xF0) {
      more = 3, code = first & 0x07, least = 0x10000;
    } else {
      return false;
    }
    if (text.size() - i < more) return false;
    for (; more > 0; --more) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
  }
  return true;
}

}  // namespace run_model
