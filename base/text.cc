#include "base/text.h"

namespace run_model {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

struct Character {
  std::uint32_t code;
  std::size_t bytes;
};

// The character that begins `text`, which is not empty; nothing where its bytes are no UTF-8.
std::optional<Character> first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return Character{lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return std::nullopt;
  std::uint32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte & 0x3F);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return std::nullopt;
  }
  return Character{code, length};
}

// U+0080 to U+009F are control characters too.
bool is_printable(std::uint32_t code) { return code >= 0xA0 || (code >= 0x20 && code < 0x7F); }

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::optional<Character> character = first_character(text);
    if (!character) return false;
    text.remove_prefix(character->bytes);
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kHexDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kHexDigits[std::to_integer<unsigned>(byte) & 0xF];
  }
  return text;
}

std::string hex(std::uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kHexDigits[number >> shift & 0xF];
  return text;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of(kHexDigits) == text.npos;
}

std::string in_quotes(std::string_view text, std::size_t limit) {
  std::string out = "'";
  for (std::size_t i = 0; i < text.size();) {
    if (i >= limit) return out + "…'";
    const std::optional<Character> character = first_character(text.substr(i));
    if (character && is_printable(character->code)) {
      out += text.substr(i, character->bytes);
      i += character->bytes;
    } else {
      out += "\\x" + hex(std::as_bytes(std::span(text).subspan(i, 1)));
      ++i;
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
