#include "rpc/encoding.h"

#include <algorithm>
#include <array>

#include <run_model/packed_function.h>

namespace run_model::rpc {
namespace {

// Type indices of tvm-ffi.
constexpr std::int32_t kSmallText = 11;
constexpr std::int32_t kSmallBytes = 12;
constexpr std::int32_t kObjects = 64;
constexpr std::int32_t kTextObject = 65;
constexpr std::int32_t kBytesObject = 66;

struct Codes {
  std::int32_t tvm08;
  std::int32_t tvm021;
  std::int32_t result_of_tvm021;
};

// In the order of WireType.
constexpr std::array<Codes, 14> kCodes{{
    {kTypeNull, 0, 0},
    {kTypeInt, 1, 1},
    {kTypeBool, 2, 2},
    {kTypeFloat, 3, 3},
    {kTypeString, 8, kTextObject},
    {kTypeBytes, 9, kBytesObject},
    {kTypeDataType, 5, 5},
    {kTypeDevice, 6, 6},
    {kTypeOpaqueHandle, 4, 4},
    {kTypeTensorHandle, 7, 7},
    {kTypeModuleHandle, 73, 73},
    {kTypePackedFunctionHandle, 68, 68},
    {kTypeObjectHandle, kObjects, kObjects},
    {kTypeNDArrayHandle, 70, 70},
}};

const Codes& codes_of(WireType type) { return kCodes.at(static_cast<std::size_t>(type)); }

}  // namespace

std::int32_t type_code(Encoding encoding, WireType type) {
  return encoding == Encoding::kTvm08 ? codes_of(type).tvm08 : codes_of(type).tvm021;
}

std::int32_t result_code(Encoding encoding, WireType type) {
  return encoding == Encoding::kTvm08 ? codes_of(type).tvm08 : codes_of(type).result_of_tvm021;
}

std::optional<WireType> wire_type(Encoding encoding, std::int32_t code) {
  if (encoding == Encoding::kTvm08) {
    if (code == kTypeUInt) return WireType::kInteger;
    if (code == kTypeObjectRValueReference) return WireType::kObject;
  } else if (code == kSmallText || code == kSmallBytes) {
    return WireType::kObject;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(WireType::kArray); ++i) {
    const auto type = static_cast<WireType>(i);
    if (type_code(encoding, type) == code) return type;
  }
  if (encoding == Encoding::kTvm021 && code > kObjects &&
      code != type_code(encoding, WireType::kArray)) {
    return WireType::kObject;
  }
  return std::nullopt;
}

WireType object_type(std::uint32_t index) {
  if (index == kTextObject) return WireType::kText;
  return index == kBytesObject ? WireType::kBytes : WireType::kObject;
}

// A client's first requests look for a function, whose name is a text, or ask about a device or for
// memory. Where they begin with what has the same code in both encodings, the next word is the code
// of the second value in kTvm08, and in kTvm021 the beginning of the first: the kind of a device,
// which is not 0, or the memory of a tensor that has none yet.
std::optional<Encoding> encoding_of(RequestCode request, std::span<const std::int32_t> words) {
  if (words.size() < 2 || words[0] < 1) return std::nullopt;
  if (words[1] == kTypeString) return Encoding::kTvm08;
  if (words[1] == type_code(Encoding::kTvm021, WireType::kText) || words[1] == kTextObject) {
    return Encoding::kTvm021;
  }
  if (words.size() < kTellingWords || words[0] < 2) return std::nullopt;
  const bool takes_number =
      request == RequestCode::kDevGetAttr || request == RequestCode::kDevAllocData;
  const auto is_second = [&](std::int32_t code) {
    if (words[1] == kTypeTensorHandle) return code == kTypeNull || code == kTypeString;
    return takes_number ? code == kTypeInt : code == kTypeNull || code == kTypeOpaqueHandle;
  };
  if (words[1] != kTypeDevice && words[1] != kTypeTensorHandle) return std::nullopt;
  return is_second(words[2]) ? Encoding::kTvm08 : Encoding::kTvm021;
}

}  // namespace run_model::rpc
