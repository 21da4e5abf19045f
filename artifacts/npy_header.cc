#include "artifacts/npy_header.h"

#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <string_view>

#include <run_model/error.h>
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy itself refuses more than 64 dimensions.
constexpr std::size_t kMaxDimensions = 64;

struct DescrType {
  char kind;
  std::uint8_t bytes;
  DLDataType dtype;
};

constexpr std::array<DescrType, 12> kDescrTypes{{
    {'b', 1, {kDLUInt, 1, 1}},
    {'i', 1, {kDLInt, 8, 1}},
    {'i', 2, {kDLInt, 16, 1}},
    {'i', 4, {kDLInt, 32, 1}},
    {'i', 8, {kDLInt, 64, 1}},
    {'u', 1, {kDLUInt, 8, 1}},
    {'u', 2, {kDLUInt, 16, 1}},
    {'u', 4, {kDLUInt, 32, 1}},
    {'u', 8, {kDLUInt, 64, 1}},
    {'f', 2, {kDLFloat, 16, 1}},
    {'f', 4, {kDLFloat, 32, 1}},
    {'f', 8, {kDLFloat, 64, 1}},
}};

std::optional<DLDataType> dtype_of_descr(std::string_view descr) {
  if (descr.size() != 3) return std::nullopt;
  for (const DescrType& type : kDescrTypes) {
    if (descr[1] != type.kind || descr[2] != '0' + type.bytes) continue;
    // '|' means that byte order does not apply.
    const bool order_known = descr[0] == '<' || (descr[0] == '|' && type.bytes == 1);
    if (order_known || (descr[0] == '>' && type.bytes == 1)) return type.dtype;
  }
  return std::nullopt;
}

// The Python literal {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }.
class DictParser {
 public:
  DictParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    bool have_descr = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !have_descr) {
        header.dtype = descr();
        have_descr = true;
      } else if (key == "fortran_order" && !have_order) {
        header.fortran_order = boolean();
        have_order = true;
      } else if (key == "shape" && !have_shape) {
        header.shape = shape();
        have_shape = true;
      } else {
        fail("the unexpected or repeated key " + in_quotes(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (position_ != text_.size()) fail("text after the closing brace");
    if (!have_descr || !have_order || !have_shape) {
      fail("no 'descr', 'fortran_order' or 'shape'");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw Error(ErrorKind::kFormat,
                name_ + " is not a usable NumPy file: its description holds " + found);
  }

  void skip_spaces() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) {
      ++position_;
    }
  }

  bool accept(char wanted) {
    skip_spaces();
    if (position_ >= text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  void expect(char wanted) {
    if (accept(wanted)) return;
    fail(in_quotes(text_.substr(position_), 20) + " where '" + wanted + "' was expected");
  }

  std::string_view string() {
    skip_spaces();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') fail("no quoted string where one was expected");
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail("an unterminated string");
    const std::string_view value = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return value;
  }

  DLDataType descr() {
    skip_spaces();
    if (position_ < text_.size() && text_[position_] == '[') fail("a structured element type");
    const std::string_view text = string();
    if (const std::optional<DLDataType> dtype = dtype_of_descr(text)) return *dtype;
    fail("the element type " + in_quotes(text) +
         ", but only little-endian bool, integers and floats of up to 64 bits can be read");
  }

  bool boolean() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(position_, word.size()) != word) continue;
      position_ += word.size();
      return word == "True";
    }
    fail("neither True nor False for 'fortran_order'");
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> dimensions;
    expect('(');
    while (!accept(')')) {
      if (dimensions.size() == kMaxDimensions) fail("more than 64 dimensions");
      dimensions.push_back(dimension());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return dimensions;
  }

  std::int64_t dimension() {
    skip_spaces();
    const std::size_t start = position_;
    std::int64_t value = 0;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
      const int digit = text_[position_++] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) {
        fail("a dimension beyond 63 bits");
      }
      value = value * 10 + digit;
    }
    if (position_ == start) fail("a dimension that is no whole number");
    // Python 2 wrote long integers as 224L.
    if (position_ < text_.size() && text_[position_] == 'L') ++position_;
    return value;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text = as_text(bytes);
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorKind::kFormat, name + " is not a usable NumPy file: " + why);
  };
  if (!text.starts_with(kMagic)) {
    fail(text.empty() ? "it is empty" : "it does not begin with the bytes \\x93NUMPY");
  }
  // Magic, two version bytes, then the description's length in 2 bytes (version 1) or 4.
  if (text.size() < kMagic.size() + 6) fail("it ends inside its header");
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const std::size_t version = byte_at(6);
  if (version < 1 || version > 3) {
    fail("its format version is " + std::to_string(version) + ", and versions 1 to 3 are known");
  }
  std::size_t length = byte_at(8) | byte_at(9) << 8;
  std::size_t start = 10;
  if (version >= 2) {
    length |= byte_at(10) << 16 | byte_at(11) << 24;
    start = 12;
  }
  if (length > text.size() - start) fail("it ends inside its header");

  NpyHeader header = DictParser(text.substr(start, length), name).parse();
  header.data_offset = start + length;
  return header;
}

std::string npy_descr(DLDataType dtype) {
  for (const DescrType& type : kDescrTypes) {
    if (!same_dtype(type.dtype, dtype)) continue;
    return std::string(1, type.bytes == 1 ? '|' : '<') + type.kind + std::to_string(type.bytes);
  }
  throw Error(ErrorKind::kMismatch, "a tensor of " + dtype_name(dtype) +
                                        " cannot be written as a NumPy file, which has "
                                        "no such element type");
}

}  // namespace run_model
