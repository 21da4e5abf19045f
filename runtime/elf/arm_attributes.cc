#include "runtime/elf/arm_attributes.h"

#include <cstdint>
#include <optional>

namespace run_model {
namespace {

// Tag numbers of the build attributes ABI.
constexpr std::uint64_t kTagFile = 1;
constexpr std::uint64_t kTagCpuRawName = 4;
constexpr std::uint64_t kTagCpuName = 5;
constexpr std::uint64_t kTagVfpArgs = 28;
constexpr std::uint64_t kTagCompatibility = 32;

std::optional<std::uint64_t> vfp_args(ByteReader attributes) {
  while (!attributes.at_end()) {
    const std::uint64_t tag = attributes.uleb128();
    if (tag == kTagCompatibility) {
      attributes.uleb128();
      attributes.zero_terminated();
    } else if (tag == kTagCpuRawName || tag == kTagCpuName ||
               (tag > kTagCompatibility && tag % 2)) {
      attributes.zero_terminated();
    } else {
      const std::uint64_t value = attributes.uleb128();
      if (tag == kTagVfpArgs) return value;
    }
  }
  return std::nullopt;
}

// The next length, which counts `before` bytes that have been read, and the bytes that it covers.
ByteReader block(ByteReader& reader, std::uint32_t before) {
  const std::uint32_t length = reader.u32();
  if (length < before) reader.fail("a length is too small");
  const ByteReader content = reader.part(reader.position(), length - before);
  reader.skip(length - before);
  return content;
}

// The value of the tag in the "aeabi" vendor's attributes for the whole file; 0, the ABI's default,
// where those are present without it.
std::optional<std::uint64_t> file_vfp_args(ByteReader vendors) {
  if (vendors.u8() != 'A') return std::nullopt;  // the only version of the format
  while (!vendors.at_end()) {
    ByteReader vendor = block(vendors, 4);
    if (vendor.zero_terminated() != "aeabi") continue;
    while (!vendor.at_end()) {
      const std::uint64_t scope = vendor.uleb128();
      // The length counts the scope's tag (one byte for the three scopes that exist) and itself.
      const ByteReader body = block(vendor, 5);
      if (scope == kTagFile) return vfp_args(body).value_or(0);
    }
  }
  return std::nullopt;
}

}  // namespace

FloatAbi arm_attributes_float_abi(ByteReader section) {
  std::optional<std::uint64_t> value;
  try {
    value = file_vfp_args(section);
  } catch (const Error&) {
    return FloatAbi::kUnspecified;
  }
  if (!value) return FloatAbi::kUnspecified;
  // 0 base standard, 1 VFP registers, 2 toolchain specific, 3 compatible with both.
  switch (*value) {
    case 0:
      return FloatAbi::kSoft;
    case 1:
      return FloatAbi::kHard;
    default:
      return FloatAbi::kUnspecified;
  }
}

}  // namespace run_model
