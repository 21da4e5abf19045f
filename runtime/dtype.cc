#include <run_model/dtype.h>

#include <array>
#include <limits>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

struct NamedCode {
  std::string_view prefix;
  std::uint8_t code;
};

// kDLBfloat is 4 in DLPack and in TVM.
constexpr std::array<NamedCode, 4> kCodes{
    {{"float", kDLFloat}, {"int", kDLInt}, {"uint", kDLUInt}, {"bfloat", kDLBfloat}}};

constexpr std::uint8_t kHandleCode = kDLOpaqueHandle;

[[noreturn]] void throw_unknown(std::string_view text) {
  throw Error(ErrorKind::kFormat,
              "unknown element type " + in_quotes(text) +
                  ", expected one like float32, int8, uint8, int64, bool or float16");
}

// Reads a positive number of at most `max` from the front of `text`.
int take_count(std::string_view& text, int max, std::string_view whole) {
  const auto value = take_number<int>(text);
  if (!value || *value <= 0 || *value > max) throw_unknown(whole);
  return *value;
}

}  // namespace

DLDataType parse_dtype(std::string_view text) {
  if (text == "bool") return {kDLUInt, 1, 1};
  if (text == "handle") return {kHandleCode, 64, 1};
  for (const NamedCode& named : kCodes) {
    if (!text.starts_with(named.prefix)) continue;
    std::string_view rest = text.substr(named.prefix.size());
    int bits = take_count(rest, 64, text);
    int lanes = 1;
    if (!rest.empty()) {
      if (rest[0] != 'x') throw_unknown(text);
      rest.remove_prefix(1);
      lanes = take_count(rest, 1024, text);
    }
    if (!rest.empty() || (bits % 8 != 0 && bits != 1 && bits != 4)) throw_unknown(text);
    return {named.code, static_cast<std::uint8_t>(bits), static_cast<std::uint16_t>(lanes)};
  }
  throw_unknown(text);
}

std::string dtype_name(DLDataType dtype) {
  if (same_dtype(dtype, {kDLUInt, 1, 1})) return "bool";
  if (dtype.code == kHandleCode) return "handle";
  std::string name = "type" + std::to_string(dtype.code) + "_";
  for (const NamedCode& named : kCodes) {
    if (named.code == dtype.code) name = named.prefix;
  }
  name += std::to_string(dtype.bits);
  if (dtype.lanes != 1) name += "x" + std::to_string(dtype.lanes);
  return name;
}

std::size_t dtype_bytes(DLDataType dtype) {
  std::size_t bits = std::size_t{dtype.bits} * dtype.lanes;
  return bits <= 8 ? 1 : (bits + 7) / 8;
}

bool same_dtype(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

std::int64_t element_count(std::span<const std::int64_t> shape) {
  // A zero anywhere makes the tensor empty, but the other dimensions must still be possible.
  std::int64_t count = 1;
  bool empty = false;
  for (std::int64_t dimension : shape) {
    if (dimension < 0) {
      throw Error(ErrorKind::kFormat, "shape " + shape_name(shape) + " has a negative dimension");
    }
    if (dimension == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, dimension, &count)) {
      throw Error(ErrorKind::kFormat, "shape " + shape_name(shape) + " has too many elements");
    }
  }
  return empty ? 0 : count;
}

std::size_t tensor_bytes(std::span<const std::int64_t> shape, DLDataType dtype) {
  std::int64_t bytes = 0;
  const auto name = [&] {
    return "a " + dtype_name(dtype) + " tensor of shape " + shape_name(shape);
  };
  if (__builtin_mul_overflow(element_count(shape), static_cast<std::int64_t>(dtype_bytes(dtype)),
                             &bytes)) {
    throw Error(ErrorKind::kFormat, name() + " is too large for any machine");
  }
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max()) {
    throw Error(ErrorKind::kIncompatible, name() + " needs " + std::to_string(bytes) +
                                              " bytes, and this machine has 32-bit addresses");
  }
  return static_cast<std::size_t>(bytes);
}

std::string shape_name(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::string tensor_form_name(DLDataType dtype, std::span<const std::int64_t> shape) {
  return dtype_name(dtype) + " " + shape_name(shape);
}

}  // namespace run_model
