#include "runtime/elf/arm_attributes.h"

#include <algorithm>
#include <string_view>

namespace run_model {
namespace {

// Tag numbers of the build attributes ABI.
constexpr std::uint64_t kTagFile = 1;
constexpr std::uint64_t kTagCpuRawName = 4;
constexpr std::uint64_t kTagCpuName = 5;
constexpr std::uint64_t kTagVfpArgs = 28;
constexpr std::uint64_t kTagCompatibility = 32;

// A window on the section. Every read past its end sets failed() and gives 0.
class AttributeReader {
 public:
  explicit AttributeReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  bool at_end() const { return bytes_.empty(); }

  std::uint64_t u8() {
    const auto view = take(1);
    return view.empty() ? 0 : static_cast<std::uint64_t>(view[0]);
  }

  std::uint64_t u32(bool little_endian) {
    const auto view = take(4);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < view.size(); ++i) {
      value = value << 8 | static_cast<std::uint64_t>(view[little_endian ? 3 - i : i]);
    }
    return value;
  }

  std::uint64_t uleb128() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t byte = u8();
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) {
        return value;
      }
    }
    failed_ = true;
    return 0;
  }

  std::string_view string() {
    const auto end = std::find(bytes_.begin(), bytes_.end(), std::byte{0});
    const auto length = static_cast<std::size_t>(end - bytes_.begin());
    const auto view = take(length);
    take(1);
    return {reinterpret_cast<const char*>(view.data()), view.size()};
  }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const auto view = bytes_.first(static_cast<std::size_t>(count));
    bytes_ = bytes_.subspan(view.size());
    return view;
  }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

std::optional<std::uint64_t> vfp_args(AttributeReader attributes) {
  while (!attributes.at_end() && !attributes.failed()) {
    const std::uint64_t tag = attributes.uleb128();
    if (tag == kTagCompatibility) {
      attributes.uleb128();
      attributes.string();
    } else if (tag == kTagCpuRawName || tag == kTagCpuName ||
               (tag > kTagCompatibility && tag % 2)) {
      attributes.string();
    } else {
      const std::uint64_t value = attributes.uleb128();
      if (tag == kTagVfpArgs && !attributes.failed()) {
        return value;
      }
    }
  }
  return std::nullopt;
}

// The value of the tag in the "aeabi" vendor's attributes for the whole file; 0, the ABI's default,
// where those are present without it.
std::optional<std::uint64_t> file_vfp_args(std::span<const std::byte> section, bool little_endian) {
  AttributeReader vendors(section);
  if (vendors.u8() != 'A') {  // the only version of the format
    return std::nullopt;
  }
  while (!vendors.at_end() && !vendors.failed()) {
    const std::uint64_t length = vendors.u32(little_endian);
    AttributeReader vendor(vendors.take(length < 4 ? ~std::uint64_t{0} : length - 4));
    if (vendors.failed() || vendor.string() != "aeabi") {
      continue;
    }
    while (!vendor.at_end() && !vendor.failed()) {
      const std::uint64_t scope = vendor.uleb128();
      const std::uint64_t scope_length = vendor.u32(little_endian);
      // The length counts the scope's tag (one byte for the three scopes that exist) and itself.
      const auto body = vendor.take(scope_length < 5 ? ~std::uint64_t{0} : scope_length - 5);
      if (scope == kTagFile && !vendor.failed()) {
        return vfp_args(AttributeReader(body)).value_or(0);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

FloatAbi arm_attributes_float_abi(std::span<const std::byte> section, bool little_endian) {
  const auto value = file_vfp_args(section, little_endian);
  if (!value) {
    return FloatAbi::kUnspecified;
  }
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
