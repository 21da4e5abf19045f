#include "runtime/cpu/features.h"

#include <initializer_list>

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

struct NamedBit {
  const char* name;
  int bit;
};

bool has_bit(std::uint64_t word, int bit) { return ((word >> bit) & 1) != 0; }

void add_bits(CpuFeatures& features, std::uint64_t word, std::initializer_list<NamedBit> bits) {
  for (const NamedBit& named : bits) features[named.name] = has_bit(word, named.bit);
}

void add_present_bits(CpuFeatures& features, std::uint64_t word,
                      std::initializer_list<NamedBit> bits) {
  for (const NamedBit& named : bits) {
    if (has_bit(word, named.bit)) features[named.name] = true;
  }
}

constexpr int kVectorBit = 'v' - 'a';

}  // namespace

CpuFeatures x86_features(const X86Words& words) {
  // XCR0: 1 and 2 are the SSE and AVX registers; 5 to 7 the masks and the wider and additional
  // registers of AVX-512; 17 and 18 the tiles of AMX. A bit of CPUID alone does not make an
  // instruction usable.
  constexpr std::uint64_t kAvxState = 0x6;
  constexpr std::uint64_t kAvx512State = kAvxState | 0xE0;
  constexpr std::uint64_t kTileState = 0x60000;
  const auto if_saved = [&](std::uint64_t state, std::uint32_t word) {
    return (words.xcr0 & state) == state ? word : 0U;
  };

  CpuFeatures features;
  add_bits(features, words.leaf1_ecx,
           {{"sse3", 0},
            {"ssse3", 9},
            {"cx16", 13},
            {"sse4.1", 19},
            {"sse4.2", 20},
            {"movbe", 22},
            {"popcnt", 23}});
  add_bits(features, if_saved(kAvxState, words.leaf1_ecx),
           {{"fma", 12}, {"avx", 28}, {"f16c", 29}});
  add_bits(features, words.leaf7_ebx, {{"bmi", 3}, {"bmi2", 8}, {"adx", 19}});
  add_bits(features, if_saved(kAvxState, words.leaf7_ebx), {{"avx2", 5}});
  add_bits(features, if_saved(kAvx512State, words.leaf7_ebx),
           {{"avx512f", 16},
            {"avx512dq", 17},
            {"avx512ifma", 21},
            {"avx512cd", 28},
            {"avx512bw", 30},
            {"avx512vl", 31}});
  add_bits(features, words.leaf7_ecx, {{"gfni", 8}});
  add_bits(features, if_saved(kAvx512State, words.leaf7_ecx),
           {{"avx512vbmi", 1},
            {"avx512vbmi2", 6},
            {"avx512vnni", 11},
            {"avx512bitalg", 12},
            {"avx512vpopcntdq", 14}});
  add_bits(features, if_saved(kAvx512State, words.leaf7_edx),
           {{"avx512vp2intersect", 8}, {"avx512fp16", 23}});
  add_bits(features, if_saved(kTileState, words.leaf7_edx),
           {{"amx-bf16", 22}, {"amx-tile", 24}, {"amx-int8", 25}});
  add_bits(features, if_saved(kAvxState, words.leaf7_1_eax), {{"avxvnni", 4}, {"avxifma", 23}});
  add_bits(features, if_saved(kAvx512State, words.leaf7_1_eax), {{"avx512bf16", 5}});
  add_bits(features, if_saved(kAvxState, words.leaf7_1_edx),
           {{"avxvnniint8", 4}, {"avxneconvert", 5}, {"avxvnniint16", 10}});
  add_bits(features, words.extended1_ecx, {{"sahf", 0}, {"lzcnt", 5}, {"sse4a", 6}, {"tbm", 21}});
  add_bits(features, if_saved(kAvxState, words.extended1_ecx), {{"xop", 11}, {"fma4", 16}});
  return features;
}

CpuFeatures aarch64_features(std::uint64_t hwcap, std::uint64_t hwcap2) {
  CpuFeatures features;
  add_bits(features, hwcap,
           {{"fp-armv8", 0},
            {"neon", 1},
            {"lse", 8},
            {"rdm", 12},
            {"jsconv", 13},
            {"complxnum", 14},
            {"rcpc", 15},
            {"dotprod", 20},
            {"sve", 22},
            {"fp16fml", 23}});
  // Half precision comes in two bits, for scalars and for vectors.
  features["fullfp16"] = has_bit(hwcap, 9) && has_bit(hwcap, 10);
  add_bits(features, hwcap2, {{"sve2", 1}, {"i8mm", 13}, {"bf16", 14}, {"sme", 23}});
  return features;
}

CpuFeatures arm_features(std::uint64_t hwcap, std::uint64_t hwcap2, std::string_view platform) {
  CpuFeatures features;
  add_bits(features, hwcap, {{"neon", 12}, {"vfp4", 16}, {"hwdiv-arm", 17}, {"hwdiv", 18}});
  // 14 is VFPv3 with 16 registers.
  features["vfp3"] = has_bit(hwcap, 13) || has_bit(hwcap, 14);
  add_present_bits(features, hwcap, {{"dotprod", 24}, {"fp16fml", 25}, {"bf16", 26}, {"i8mm", 27}});
  if (has_bit(hwcap, 22) && has_bit(hwcap, 23)) features["fullfp16"] = true;
  // No bit stands for the floating-point instructions of Armv8; those of HWCAP2 (AES … CRC32) are
  // there on Armv8 only.
  constexpr std::uint64_t kArmv8Bits = 0x1F;
  if (platform.starts_with("v8") || (hwcap2 & kArmv8Bits) != 0) {
    features["fp-armv8"] = features["neon"];
  } else if (platform.starts_with('v')) {
    features["fp-armv8"] = false;
  }
  return features;
}

CpuFeatures riscv_features(std::uint64_t hwcap, std::string_view isa, std::uint64_t vector_bits) {
  CpuFeatures features;
  for (const char letter : {'m', 'a', 'f', 'd', 'c'}) {
    features[std::string(1, letter)] = has_bit(hwcap, letter - 'a');
  }
  features["v"] = has_bit(hwcap, kVectorBit) && vector_bits >= 128;
  for (const std::uint64_t bits : {256, 512, 1024}) {
    features["zvl" + std::to_string(bits) + "b"] = features["v"] && vector_bits >= bits;
  }
  if (isa.empty()) return features;
  for (const char* name : {"zfh", "zfhmin", "zvfh", "zba", "zbb", "zbc", "zbs", "zicond"}) {
    features[name] = false;
  }
  // After the letters, names follow an underscore each.
  for (std::size_t start = isa.find('_'); start != std::string_view::npos;) {
    const std::size_t end = isa.find('_', start + 1);
    const std::string_view name = isa.substr(start + 1, end - start - 1);
    if (const auto known = features.find(name); known != features.end()) known->second = true;
    start = end;
  }
  // The larger extensions hold the smaller.
  if (features["zfh"]) features["zfhmin"] = true;
  return features;
}

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

// Kernels of boards whose vectors are of version 0.7, with other instructions, set the bit of 'v'
// too. These take the type of the first instruction, vsetvli t0, zero, e8, m1, ta, ma, for one that
// there is not, which the first bit of the register vtype (0xc21) says; 0xc22 is vlenb. All by
// numbers: the assembler has not been told of vectors.
std::uint64_t read_vector_bits(std::uint64_t hwcap) {
  if (!has_bit(hwcap, kVectorBit)) return 0;
  std::intptr_t type = 0;
  std::uintptr_t bytes = 0;
  __asm__ volatile(".word 0x0c0072d7\n\tcsrr %0, 0xc21\n\tcsrr %1, 0xc22"
                   : "=r"(type), "=r"(bytes)
                   :
                   : "t0");
  return type < 0 ? 0 : 8 * std::uint64_t{bytes};
}

CpuFeatures read_cpu() {
  const std::uint64_t hwcap = getauxval(AT_HWCAP);
  return riscv_features(hwcap, isa_in_cpuinfo(), read_vector_bits(hwcap));
}

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
