// Text from untrusted files: bytes as characters, UTF-8, hexadecimal digits, and quoting for
// messages.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace run_model {

// Bytes of a file seen as characters.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether the bytes are well-formed UTF-8 (RFC 3629): no overlong forms, surrogates or code points
// beyond U+10FFFF.
bool is_utf8(std::string_view text);

// The number that `text` begins with, which is taken off it; nothing, and nothing taken off, where
// there is none or it is beyond T. Neither spaces nor '+' may come first.
template <typename T>
std::optional<T> take_number(std::string_view& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The same where nothing follows it.
template <typename T>
std::optional<T> whole_number(std::string_view text) {
  const std::optional<T> value = take_number<T>(text);
  return text.empty() ? value : std::nullopt;
}

// The hexadecimal number that `text` begins with, without 0x.
inline std::optional<std::uint64_t> hex_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// Without the spaces and ends of lines around it.
std::string_view trimmed(std::string_view text);

// Lower-case hexadecimal digits: two for each byte, or 16 for a number.
std::string hex(std::span<const std::byte> bytes);
std::string hex(std::uint64_t number);

// Whether the text is that many lower-case hexadecimal digits.
bool is_hex(std::string_view text, std::size_t digits);

// `text` in single quotes on one line: control characters and bytes that are no UTF-8 become \xNN,
// so that a file cannot send escape sequences to a terminal and the result is always valid UTF-8.
// Everything after `limit` bytes becomes "…".
std::string in_quotes(std::string_view text, std::size_t limit = 80);

// What `text` says of each item, with the separator between.
template <typename Items, typename Text = std::identity>
std::string list_of(const Items& items, std::string_view separator, const Text& text = {}) {
  std::string list;
  bool first = true;
  for (const auto& item : items) {
    if (!first) list += separator;
    first = false;
    list += text(item);
  }
  return list;
}

// "a, b, c"
template <typename Items, typename Text = std::identity>
std::string comma_list(const Items& items, const Text& text = {}) {
  return list_of(items, ", ", text);
}

// A file's name as a person knows it: a file that exists in memory only (/proc/self/fd/7) goes by
// the name that it was made with.
std::string shown_path(const std::filesystem::path& path);

// The same in quotes, in full.
std::string path_in_quotes(const std::filesystem::path& path);

}  // namespace run_model
