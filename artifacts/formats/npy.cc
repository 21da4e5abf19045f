#include <run_model/npy.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include <run_model/npz.h>
#include "artifacts/formats/zip.h"
#include "base/byte_reader.h"
#include "base/file.h"
#include "base/text.h"
#include "base/write_file.h"

namespace run_model {
namespace {

struct NpyHeader {
  DLDataType dtype{};
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  // from the start of the file
};

constexpr std::string_view kNpyMagic = "\x93NUMPY";
// NumPy itself refuses more than 64 dimensions.
constexpr std::size_t kMaxDimensions = 64;

struct DescrType {
  char kind;
  std::uint8_t bytes;
  DLDataType dtype;
};

// NumPy has no bfloat16 of its own: ml_dtypes, which TVM's arrays come with, writes it as two bytes
// of no type ("<V2").
constexpr std::array<DescrType, 13> kDescrTypes{{
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
    {'V', 2, {kDLBfloat, 16, 1}},
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

// The description at the start of a .npy file.
NpyHeader parse_header(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text = as_text(bytes);
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorKind::kFormat, name + " is not a usable NumPy file: " + why);
  };
  if (!text.starts_with(kNpyMagic)) {
    fail(text.empty() ? "it is empty" : "it does not begin with the bytes \\x93NUMPY");
  }
  // Magic, two version bytes, then the description's length in 2 bytes (version 1) or 4.
  if (text.size() < kNpyMagic.size() + 6) fail("it ends inside its header");
  ByteReader reader(bytes, name);
  reader.skip(kNpyMagic.size());
  const int version = reader.u8();
  if (version < 1 || version > 3) {
    fail("its format version is " + std::to_string(version) + ", and versions 1 to 3 are known");
  }
  reader.skip(1);  // the minor version
  const std::uint32_t length = version == 1 ? reader.u16() : reader.u32();
  if (length > reader.remaining()) fail("it ends inside its header");

  NpyHeader header = DictParser(as_text(reader.bytes(length)), name).parse();
  header.data_offset = static_cast<std::size_t>(reader.position());
  return header;
}

// NumPy's name of an element type, such as "<f4". Throws Error(kMismatch) where NumPy has none.
std::string npy_descr(DLDataType dtype) {
  for (const DescrType& type : kDescrTypes) {
    if (!same_dtype(type.dtype, dtype)) continue;
    return std::string(1, type.bytes == 1 ? '|' : '<') + type.kind + std::to_string(type.bytes);
  }
  throw Error(ErrorKind::kMismatch, "a tensor of " + dtype_name(dtype) +
                                        " cannot be written as a NumPy file, which has "
                                        "no such element type");
}

constexpr std::size_t kHeaderAlignment = 64;

// Copies an array whose first index varies fastest to one whose last index does.
void copy_from_fortran_order(const std::byte* source, const Tensor& target) {
  const std::vector<std::int64_t>& shape = target.shape();
  const std::size_t item = dtype_bytes(target.dtype());
  std::vector<std::size_t> stride(shape.size());
  std::size_t elements = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    stride[axis] = elements;
    elements *= static_cast<std::size_t>(shape[axis]);
  }
  std::vector<std::int64_t> index(shape.size(), 0);
  auto* out = static_cast<std::byte*>(target.data());
  for (std::size_t i = 0; i < elements; ++i, out += item) {
    std::size_t from = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      from += static_cast<std::size_t>(index[axis]) * stride[axis];
    }
    std::memcpy(out, source + from * item, item);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

constexpr std::string_view kSuffix = ".npy";

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  const NpyHeader header = parse_header(bytes, name);
  const std::span<const std::byte> data = bytes.subspan(header.data_offset);
  const std::string claim = tensor_form_name(header.dtype, header.shape);
  std::size_t wanted = 0;
  try {
    wanted = tensor_bytes(header.shape, header.dtype);
  } catch (const Error&) {
    throw Error(ErrorKind::kFormat, name + " claims the impossible shape " + claim);
  }
  // The data is already in memory, so this bounds the allocation below.
  if (data.size() != wanted) {
    throw Error(ErrorKind::kFormat,
                name + " holds " + std::to_string(data.size()) + " bytes of data, but " + claim +
                    " needs " + std::to_string(wanted),
                "the file is truncated or damaged");
  }

  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  if (header.fortran_order && header.shape.size() > 1) {
    copy_from_fortran_order(data.data(), tensor);
  } else if (wanted > 0) {
    std::memcpy(tensor.data(), data.data(), wanted);
  }
  return tensor;
}

Tensor read_npy(const std::filesystem::path& path) {
  return parse_npy(read_file(path, kMaxArrayFileBytes, "a NumPy file"), path_in_quotes(path));
}

std::string npy_header(const Tensor& tensor) {
  if (!tensor.defined() && tensor.nbytes() > 0) {
    throw Error(ErrorKind::kMismatch, "an empty tensor cannot be written as an array");
  }
  std::string shape;
  for (const std::int64_t dimension : tensor.shape()) {
    shape += std::to_string(dimension) + ", ";
  }
  // Python writes a tuple of one as "(5,)" and longer ones without the last comma.
  if (tensor.shape().size() == 1) shape.pop_back();
  if (tensor.shape().size() > 1) shape.resize(shape.size() - 2);
  std::string description = "{'descr': '" + npy_descr(tensor.dtype()) +
                            "', 'fortran_order': False, 'shape': (" + shape + "), }";

  const std::size_t prefix = 10;
  const std::size_t unpadded = prefix + description.size() + 1;
  description.append((kHeaderAlignment - unpadded % kHeaderAlignment) % kHeaderAlignment, ' ');
  description += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(description.size() & 0xFF);
  header += static_cast<char>(description.size() >> 8);
  return header + description;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const std::string header = npy_header(tensor);
  const std::span data(static_cast<const std::byte*>(tensor.data()), tensor.nbytes());
  write_file(path, {std::as_bytes(std::span(header)), data});
}

std::vector<NamedTensor> read_npz(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxArrayFileBytes, "a NumPy archive");
  const ZipReader archive(bytes, path_in_quotes(path));
  std::vector<NamedTensor> tensors;
  for (const ZipEntry& entry : archive.entries()) {
    const std::string member = path_in_quotes(path) + ", member " + in_quotes(entry.name);
    if (!entry.name.ends_with(kSuffix)) {
      throw Error(ErrorKind::kFormat, member + " is not an array: its name does not end in .npy",
                  "write the archive with numpy.savez");
    }
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    tensors.push_back({name, parse_npy(archive.read(entry), member)});
  }
  return tensors;
}

void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  ZipWriter archive;
  std::set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    if (!names.insert(named.name).second) {
      throw Error(
          ErrorKind::kMismatch,
          "two arrays of " + path_in_quotes(path) + " would be called " + in_quotes(named.name),
          "NumPy gives one of them only");
    }
    const std::string header = npy_header(named.tensor);
    const std::span data(static_cast<const std::byte*>(named.tensor.data()), named.tensor.nbytes());
    archive.add(named.name + std::string(kSuffix), {std::as_bytes(std::span(header)), data});
  }
  archive.write(path);
}

}  // namespace run_model
