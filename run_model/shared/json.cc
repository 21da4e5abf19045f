#include "run_model/shared/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace run_model {
namespace {

constexpr std::size_t kLineWidth = 80;

// How many bytes the UTF-8 character takes that begins at `start`; 0 where none does.
std::size_t character_size(std::string_view text, std::size_t start) {
  const auto first = static_cast<unsigned char>(text[start]);
  const std::size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return is_utf8(text.substr(start, size)) && start + size <= text.size() ? size : 0;
}

void append_code_unit(std::string& text, unsigned unit) {
  std::array<char, 8> escape{};
  std::snprintf(escape.data(), escape.size(), "\\u%04x", unit);
  text += escape.data();
}

// Escapes beyond ASCII (RFC 8259, section 7); all of `text` is UTF-8.
std::string in_ascii(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = character_size(text, i);
    if (size == 1) {
      result += text[i++];
      continue;
    }
    unsigned code = static_cast<unsigned char>(text[i++]) & (0xFFU >> (size + 1));
    for (std::size_t more = 1; more < size; ++more) {
      code = code << 6 | (static_cast<unsigned char>(text[i++]) & 0x3FU);
    }
    if (code < 0x10000) {
      append_code_unit(result, code);
    } else {
      append_code_unit(result, 0xD800 + ((code - 0x10000) >> 10));
      append_code_unit(result, 0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }
  return result;
}

// A string with its quotes. Bytes that are no UTF-8, as in file names, become U+FFFD.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = character_size(text, i);
    const char c = text[i];
    if (size > 1) {
      result += text.substr(i, size);
    } else if (size == 0) {
      result += "\uFFFD";
    } else if (c == '"' || c == '\\') {
      result += std::string("\\") + c;
    } else if (const std::size_t named = std::string_view("\b\f\n\r\t").find(c);
               named != std::string_view::npos) {
      result += std::string("\\") + "bfnrt"[named];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_code_unit(result, static_cast<unsigned char>(c));
    } else {
      result += c;
    }
    i += std::max<std::size_t>(size, 1);
  }
  return result + "\"";
}

// The shortest decimal that is this double, and always one that shows that it is no integer.
std::string decimal(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 40> buffer{};
  // Powers of ten where others write them too: below 1e-4 and from 1e15 on.
  const double size = std::fabs(value);
  const auto format = value == 0 || (size >= 1e-4 && size < 1e15) ? std::chars_format::fixed
                                                                  : std::chars_format::scientific;
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

}  // namespace

// Out of line: what the compiler makes of each in place takes hundreds of bytes, and a report sets
// a hundred members.
Json::Json() = default;
Json::~Json() = default;
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::Json(Kind kind) : kind_(kind) {}

Json::Json(std::string_view text) : scalar_(quoted(text)) {}

Json::Json(double number) : scalar_(decimal(number)) {}

Json Json::object(std::initializer_list<Member> members) {
  Json json(kObject);
  for (const Member& member : members) json.put(member.first, member.second);
  return json;
}

Json Json::array(std::initializer_list<Json> items) {
  Json json(kArray);
  json.items_ = items;
  return json;
}

void Json::set_integer(std::int64_t value) { scalar_ = std::to_string(value); }

void Json::set_count(std::uint64_t value) { scalar_ = std::to_string(value); }

void Json::put(std::string_view key, Json value) {
  kind_ = kObject;
  const std::string name = quoted(key);
  const auto known = std::find(keys_.begin(), keys_.end(), name);
  if (known != keys_.end()) {
    items_[static_cast<std::size_t>(known - keys_.begin())] = std::move(value);
    return;
  }
  keys_.push_back(name);
  items_.push_back(std::move(value));
}

void Json::add(Json item) {
  kind_ = kArray;
  items_.push_back(std::move(item));
}

std::string Json::compact(bool ascii) const {
  if (kind_ == kScalar) return ascii ? in_ascii(scalar_) : scalar_;
  std::string text(kind_ == kObject ? "{" : "[");
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (i > 0) text += ",";
    if (kind_ == kObject) text += (ascii ? in_ascii(keys_[i]) : keys_[i]) + ":";
    text += items_[i].compact(ascii);
  }
  return text + (kind_ == kObject ? "}" : "]");
}

std::string Json::text() const {
  std::string text;
  append(text, 0);
  return text + "\n";
}

std::string Json::on_one_line() const {
  if (kind_ == kScalar) return scalar_;
  std::string text(kind_ == kObject ? "{" : "[");
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (i > 0) text += ", ";
    if (kind_ == kObject) text += keys_[i] + ": ";
    text += items_[i].on_one_line();
  }
  return text + (kind_ == kObject ? "}" : "]");
}

// A list of numbers or words that does not fit on one line fills several.
void Json::append_filled(std::string& text, std::size_t depth) const {
  const std::string indent(2 * depth + 2, ' ');
  std::string line = indent;
  text += "[\n";
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const std::string item = items_[i].scalar_ + (i + 1 < items_.size() ? "," : "");
    if (line.size() > indent.size() && line.size() + 1 + item.size() > kLineWidth) {
      text += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + item;
  }
  text += line + "\n" + std::string(2 * depth, ' ') + "]";
}

void Json::append(std::string& text, std::size_t depth) const {
  // What is far too long is not worth trying.
  const bool may_fit = kind_ != kArray || items_.size() <= kLineWidth;
  const std::string line = may_fit ? on_one_line() : std::string(kLineWidth + 1, ' ');
  if (kind_ == kScalar || (depth > 0 && 2 * depth + line.size() <= kLineWidth)) {
    text += line;
    return;
  }
  const bool scalars = std::all_of(items_.begin(), items_.end(),
                                   [](const Json& item) { return item.kind_ == kScalar; });
  if (kind_ == kArray && scalars) return append_filled(text, depth);
  const std::string indent(2 * depth, ' ');
  text += kind_ == kObject ? "{" : "[";
  const char* separator = "\n";
  for (std::size_t i = 0; i < items_.size(); ++i) {
    text += separator + indent + "  ";
    if (kind_ == kObject) text += keys_[i] + ": ";
    items_[i].append(text, depth + 1);
    separator = ",\n";
  }
  text += "\n" + indent + (kind_ == kObject ? "}" : "]");
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace run_model
