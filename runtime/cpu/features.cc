#include "runtime/cpu/features.h"

#include "runtime/cpu/feature_bits.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#elif defined(__riscv)
#include <sys/auxv.h>

#include <fstream>
#endif

namespace run_model {
namespace {

#if defined(__x86_64__) || defined(__i386__)

// XCR0, which user code may read where the system has set OSXSAVE (CPUID leaf 1, ECX bit 27).
// By the instruction's name: the intrinsic needs a compiler flag.
std::uint64_t read_xcr0() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

CpuFeatures read_cpu() {
  constexpr std::uint32_t kOsXsave = 1U << 27;
  X86Words words;
  std::uint32_t eax = 0;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 0;
  std::uint32_t edx = 0;
  // __get_cpuid… give 0 and leave the words alone where the CPU has no such leaf.
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) words.leaf1_ecx = ecx;
  if ((words.leaf1_ecx & kOsXsave) != 0) words.xcr0 = read_xcr0();
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    words.leaf7_ebx = ebx;
    words.leaf7_ecx = ecx;
    words.leaf7_edx = edx;
    const std::uint32_t last_subleaf = eax;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
      words.leaf7_1_eax = eax;
      words.leaf7_1_edx = edx;
    }
  }
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0) words.extended1_ecx = ecx;
  return x86_features(words);
}

#elif defined(__aarch64__)

CpuFeatures read_cpu() { return aarch64_features(getauxval(AT_HWCAP), getauxval(AT_HWCAP2)); }

#elif defined(__arm__)

CpuFeatures read_cpu() {
  const auto* platform = reinterpret_cast<const char*>(getauxval(AT_PLATFORM));
  return arm_features(getauxval(AT_HWCAP), getauxval(AT_HWCAP2),
                      platform == nullptr ? "" : platform);
}

#elif defined(__riscv)

// Of the first CPU; the line is "isa\t\t: rv64imafdc_zicsr_zifencei".
std::string isa_in_cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("isa")) continue;
    const std::size_t name = line.find("rv");
    return name == std::string::npos ? "" : line.substr(name);
  }
  return "";
}

CpuFeatures read_cpu() { return riscv_features(getauxval(AT_HWCAP), isa_in_cpuinfo()); }

#else

CpuFeatures read_cpu() { return {}; }

#endif

}  // namespace

const CpuFeatures& this_cpu() {
  static const CpuFeatures kFeatures = read_cpu();
  return kFeatures;
}

std::vector<std::string> missing_features(std::span<const std::string> wanted,
                                          const CpuFeatures& cpu) {
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    const auto known = cpu.find(name);
    if (known != cpu.end() && !known->second) missing.push_back(name);
  }
  return missing;
}

}  // namespace run_model
