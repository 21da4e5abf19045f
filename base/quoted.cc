#include "base/quoted.h"

#include <cstdint>
#include <system_error>

namespace run_model {
namespace {

// Length of the well-formed UTF-8 sequence (RFC 3629) of a printable character at the start of
// `text`, which is not empty; 0 where there is none.
std::size_t printable_sequence(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7F ? 1 : 0;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3F);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  // U+0080 to U+009F are control characters too.
  const bool valid = code >= kSmallest[length] && code >= 0xA0 && code <= 0x10FFFF &&
                     (code < 0xD800 || code > 0xDFFF);
  return valid ? length : 0;
}

}  // namespace

std::string in_quotes(std::string_view text, std::size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (std::size_t i = 0; i < text.size();) {
    if (i >= limit) return out + "…'";
    const std::size_t length = printable_sequence(text.substr(i));
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(text[i]);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out + "'";
}

std::string shown_path(const std::filesystem::path& path) {
  // What the kernel shows for a file made by memfd_create(2).
  constexpr std::string_view kBefore = "/memfd:";
  constexpr std::string_view kBehind = " (deleted)";
  if (!path.string().starts_with("/proc/self/fd/")) return path.string();
  std::error_code error;
  const std::string link = std::filesystem::read_symlink(path, error).string();
  if (error || !link.starts_with(kBefore) || !link.ends_with(kBehind)) return path.string();
  return link.substr(kBefore.size(), link.size() - kBefore.size() - kBehind.size());
}

std::string path_in_quotes(const std::filesystem::path& path) {
  // PATH_MAX of Linux.
  return in_quotes(shown_path(path), 4096);
}

}  // namespace run_model
