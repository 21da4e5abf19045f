#include "runtime/quoted.h"

namespace run_model {

std::string in_quotes(std::string_view text, std::size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i >= limit) {
      // Not in the middle of a UTF-8 sequence.
      if ((byte & 0xC0) == 0x80) {
        out += text[i];
        continue;
      }
      return out + "…'";
    }
    if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += text[i];
    }
  }
  return out + "'";
}

std::string path_in_quotes(const std::filesystem::path& path) {
  // PATH_MAX of Linux.
  return in_quotes(path.string(), 4096);
}

}  // namespace run_model
