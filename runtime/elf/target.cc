#include "runtime/elf/target.h"

#include <elf.h>

#include <cstdint>
#include <optional>

namespace run_model {
namespace {

// Machine numbers that older C libraries' elf.h lacks, from the registry at
// https://www.sco.com/developers/gabi/latest/ch4.eheader.html and its successors.
constexpr std::uint16_t kMachineHexagon = 164;
constexpr std::uint16_t kMachineLoongArch = 258;

bool soft(const ElfTarget& target) { return target.float_abi == FloatAbi::kSoft; }

std::string base_name(const ElfTarget& target) {
  const bool wide = target.bits == 64;
  switch (target.machine) {
    case EM_X86_64:
      return wide ? "x86_64" : "x86_64 with 32-bit pointers (x32)";
    case EM_386:
      return "i386";
    case EM_AARCH64:
      return wide ? "aarch64" : "aarch64 with 32-bit pointers (ilp32)";
    case EM_ARM:
      // The header does not tell the version; this is the one that Linux distributions build for.
      return "armv7l";
    case EM_RISCV:
      return wide ? "riscv64" : "riscv32";
    case EM_PPC64:
      return target.little_endian ? "ppc64le" : "ppc64";
    case EM_PPC:
      return "ppc";
    case EM_MIPS:
      return wide ? "mips64" : "mips";
    case EM_S390:
      return wide ? "s390x" : "s390";
    case kMachineLoongArch:
      return wide ? "loongarch64" : "loongarch32";
    case kMachineHexagon:
      return "hexagon";
    default:
      return "machine " + std::to_string(target.machine);
  }
}

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

bool target_fits(const ElfTarget& library, const ElfTarget& host) {
  const bool float_abi = library.float_abi == host.float_abi ||
                         library.float_abi == FloatAbi::kUnspecified ||
                         host.float_abi == FloatAbi::kUnspecified;
  return library.machine == host.machine && library.bits == host.bits &&
         library.little_endian == host.little_endian && float_abi;
}

std::string target_name(const ElfTarget& target) {
  std::string name = base_name(target);
  switch (target.float_abi) {
    case FloatAbi::kUnspecified:
      break;
    case FloatAbi::kSoft:
      name += " soft-float";
      break;
    case FloatAbi::kSingle:
      name += " single-float";
      break;
    case FloatAbi::kHard:
      name += target.machine == EM_RISCV ? " double-float" : " hard-float";
      break;
    case FloatAbi::kQuad:
      name += " quad-float";
      break;
  }
  if (!target.little_endian && target.machine != EM_PPC64 && target.machine != EM_PPC &&
      target.machine != EM_S390) {
    name += " big-endian";
  }
  return name;
}

std::string target_triple(const ElfTarget& target) {
  switch (target.machine) {
    case EM_X86_64:
      return target.bits == 64 ? "x86_64-linux-gnu" : "x86_64-linux-gnux32";
    case EM_386:
      return "i686-linux-gnu";
    case EM_AARCH64:
      return target.little_endian && target.bits == 64 ? "aarch64-linux-gnu" : "";
    case EM_ARM:
      if (!target.little_endian) {
        return "";
      }
      return soft(target) ? "arm-linux-gnueabi" : "armv7a-linux-gnueabihf";
    case EM_RISCV:
      return target.bits == 64 ? "riscv64-linux-gnu" : "riscv32-linux-gnu";
    case EM_PPC64:
      return target.little_endian ? "powerpc64le-linux-gnu" : "";
    case EM_S390:
      return target.bits == 64 ? "s390x-linux-gnu" : "";
    case kMachineLoongArch:
      return target.bits == 64 ? "loongarch64-linux-gnu" : "";
    default:
      return "";
  }
}

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
