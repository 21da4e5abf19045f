#include "runtime/elf/host.h"

#include <dlfcn.h>
#include <elf.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include <bit>

#include "base/text.h"

namespace run_model {
namespace {

constexpr std::uint16_t compiled_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__i386__)
  return EM_386;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__arm__)
  return EM_ARM;
#elif defined(__riscv)
  return EM_RISCV;
#elif defined(__powerpc64__)
  return EM_PPC64;
#elif defined(__s390__)
  return EM_S390;
#elif defined(__loongarch__)
  return 258;  // EM_LOONGARCH, missing from older elf.h
#elif defined(__mips__)
  return EM_MIPS;
#else
#error "runtime/elf/host.cc does not know this machine's ELF number"
#endif
}

constexpr FloatAbi compiled_float_abi() {
#if defined(__arm__) && defined(__ARM_PCS_VFP)
  return FloatAbi::kHard;
#elif defined(__arm__)
  return FloatAbi::kSoft;
#elif defined(__riscv_float_abi_quad)
  return FloatAbi::kQuad;
#elif defined(__riscv_float_abi_double)
  return FloatAbi::kHard;
#elif defined(__riscv_float_abi_single)
  return FloatAbi::kSingle;
#elif defined(__riscv)
  return FloatAbi::kSoft;
#else
  return FloatAbi::kUnspecified;
#endif
}

SymbolSearch find_loaded_symbol(const std::string& symbol,
                                std::span<const std::string_view> libraries) {
  if (::dlsym(RTLD_DEFAULT, symbol.c_str()) != nullptr) {
    return SymbolSearch::kFound;
  }
  SymbolSearch result = SymbolSearch::kMissing;
  for (const std::string_view library : libraries) {
    void* handle = ::dlopen(std::string(library).c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
      result = SymbolSearch::kUnknown;
      continue;
    }
    const bool found = ::dlsym(handle, symbol.c_str()) != nullptr;
    ::dlclose(handle);
    if (found) {
      return SymbolSearch::kFound;
    }
  }
  return result;
}

}  // namespace

std::optional<GlibcVersion> parse_glibc_version(std::string_view text) {
  const auto major = take_number<int>(text);
  if (!major || *major < 0 || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = take_number<int>(text);
  if (!minor || *minor < 0 || (!text.empty() && text.front() != '.')) return std::nullopt;
  return GlibcVersion{*major, *minor};
}

Host Host::current() {
  Host host;
  host.target.machine = compiled_machine();
  host.target.bits = static_cast<int>(sizeof(void*)) * 8;
  host.target.little_endian = std::endian::native == std::endian::little;
  host.target.float_abi = compiled_float_abi();
#ifdef __GLIBC__
  host.glibc = parse_glibc_version(::gnu_get_libc_version());
#endif
  host.find_symbol = find_loaded_symbol;
  return host;
}

}  // namespace run_model
