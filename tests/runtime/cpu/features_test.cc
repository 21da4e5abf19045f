#include "runtime/cpu/features.h"
#include "tests/has_elements.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

namespace run_model {
namespace {

using ::testing::IsEmpty;

std::vector<std::string> present(const CpuFeatures& features) {
  std::vector<std::string> names;
  for (const auto& [name, there] : features) {
    if (there) names.push_back(name);
  }
  return names;
}

constexpr std::uint64_t kAvxState = 0x7;
constexpr std::uint64_t kAvx512State = 0xE7;

// Read from an AMD EPYC of the fourth generation.
X86Words zen4() {
  return {.leaf1_ecx = 0xFFFA3203,
          .leaf7_ebx = 0xF1BF07AB,
          .leaf7_ecx = 0x00405FC6,
          .leaf7_edx = 0x00000010,
          .leaf7_1_eax = 0x00000020,
          .extended1_ecx = 0x004003F3,
          .xcr0 = kAvx512State};
}

TEST(CpuFeatures, KnowsX86ByItsRegisters) {
  EXPECT_THAT(present(x86_features({})), IsEmpty());
  EXPECT_TRUE(
      has_elements(present(x86_features(zen4())),
                   {"adx",        "avx",         "avx2",     "avx512bf16", "avx512bitalg",
                    "avx512bw",   "avx512cd",    "avx512dq", "avx512f",    "avx512ifma",
                    "avx512vbmi", "avx512vbmi2", "avx512vl", "avx512vnni", "avx512vpopcntdq",
                    "bmi",        "bmi2",        "cx16",     "f16c",       "fma",
                    "gfni",       "lzcnt",       "movbe",    "popcnt",     "sahf",
                    "sse3",       "sse4.1",      "sse4.2",   "sse4a",      "ssse3"}));
}

TEST(CpuFeatures, NeedsTheSystemToSaveTheRegisters) {
  X86Words words = zen4();
  words.xcr0 = kAvxState;
  EXPECT_TRUE(x86_features(words)["avx2"]);
  EXPECT_FALSE(x86_features(words)["avx512f"]);
  EXPECT_FALSE(x86_features(words)["avx512vnni"]);
  words.xcr0 = 0;
  EXPECT_FALSE(x86_features(words)["avx"]);
  EXPECT_FALSE(x86_features(words)["fma"]);
  EXPECT_TRUE(x86_features(words)["sse4.2"]);
  EXPECT_TRUE(x86_features(words)["bmi2"]);
}

TEST(CpuFeatures, KnowsAarch64ByHwcap) {
  // /proc/cpuinfo of a Raspberry Pi 4: fp asimd evtstrm crc32 cpuid.
  EXPECT_TRUE(has_elements(present(aarch64_features(0x887, 0)), {"fp-armv8", "neon"}));
  // Of a Raspberry Pi 5: … aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm lrcpc asimddp.
  EXPECT_TRUE(has_elements(present(aarch64_features(0x119FFF, 0)),
                           {"dotprod", "fp-armv8", "fullfp16", "lse", "neon", "rcpc", "rdm"}));
  // Half precision for scalars only is not all of it.
  EXPECT_FALSE(aarch64_features(0x203, 0)["fullfp16"]);
  EXPECT_TRUE(
      has_elements(present(aarch64_features(0, (1U << 13) | (1U << 14))), {"bf16", "i8mm"}));
}

TEST(CpuFeatures, KnowsArmByHwcap) {
  // /proc/cpuinfo of a Zynq-7000: half thumb fastmult vfp edsp thumbee neon vfpv3 tls vfpd32.
  const CpuFeatures zynq = arm_features(0x0008B8D6, 0, "v7l");
  EXPECT_TRUE(has_elements(present(zynq), {"neon", "vfp3"}));
  EXPECT_FALSE(zynq.at("fp-armv8"));
  EXPECT_FALSE(zynq.contains("dotprod"));
  // Of a Raspberry Pi 2: … vfpv4 idiva idivt vfpd32 lpae evtstrm.
  EXPECT_TRUE(has_elements(present(arm_features(0x003FB0D6, 0, "v7l")),
                           {"hwdiv", "hwdiv-arm", "neon", "vfp3", "vfp4"}));
  // A Raspberry Pi 3 with a 32-bit system adds crc32 (HWCAP2).
  EXPECT_TRUE(arm_features(0x003FB0D6, 0x10, "")["fp-armv8"]);
  EXPECT_TRUE(arm_features(0x003FB0D6, 0, "v8l")["fp-armv8"]);
  EXPECT_FALSE(arm_features(0x003FB0D6, 0, "").contains("fp-armv8"));
}

TEST(CpuFeatures, KnowsRiscvByLettersAndNames) {
  const std::uint64_t gc = (1U << 0) | (1U << 2) | (1U << 3) | (1U << 5) | (1U << 8) | (1U << 12);
  EXPECT_TRUE(has_elements(present(riscv_features(gc, "", 0)), {"a", "c", "d", "f", "m"}));
  EXPECT_FALSE(riscv_features(gc, "", 0)["v"]);
  EXPECT_FALSE(riscv_features(gc, "", 0).contains("zba"));
  const std::uint64_t gcv = gc | (1U << 21);
  const CpuFeatures named = riscv_features(gcv, "rv64imafdcv_zicsr_zfh_zba", 128);
  EXPECT_TRUE(has_elements(present(named), {"a", "c", "d", "f", "m", "v", "zba", "zfh", "zfhmin"}));
  EXPECT_FALSE(named.at("zbb"));
  EXPECT_FALSE(named.at("zvl256b"));
  EXPECT_TRUE(has_elements(present(riscv_features(gcv, "", 512)),
                           {"a", "c", "d", "f", "m", "v", "zvl256b", "zvl512b"}));
  // Vectors of another version than 1.0.
  EXPECT_FALSE(riscv_features(gcv, "rv64imafdcv", 0)["v"]);
}

TEST(CpuFeatures, MissesWhatIsKnownToBeAbsent) {
  const CpuFeatures cpu{{"avx", true}, {"avx2", false}, {"fma", false}};
  const std::vector<std::string> wanted{"fma", "avx", "from-the-future", "avx2"};
  EXPECT_TRUE(has_elements(missing_features(wanted, cpu), {"fma", "avx2"}));
  EXPECT_THAT(missing_features({}, cpu), IsEmpty());
}

// The kernel's own list of the same CPU. Emulators show the file of the machine that they run on.
TEST(CpuFeatures, AgreesWithTheKernel) {
#if defined(__x86_64__)
  const std::map<std::string, std::string> names{
      {"sse4.2", "sse4_2"},   {"avx", "avx"},           {"avx2", "avx2"},
      {"fma", "fma"},         {"f16c", "f16c"},         {"bmi2", "bmi2"},
      {"lzcnt", "abm"},       {"movbe", "movbe"},       {"popcnt", "popcnt"},
      {"avx512f", "avx512f"}, {"avx512vl", "avx512vl"}, {"avx512vnni", "avx512_vnni"}};
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  std::istringstream words(line);
  const std::set<std::string> flags{std::istream_iterator<std::string>(words), {}};
  ASSERT_TRUE(flags.contains("sse2"));
  for (const auto& [ours, kernels] : names) {
    EXPECT_EQ(this_cpu().at(ours), flags.contains(kernels)) << ours;
  }
#elif defined(__aarch64__)
  EXPECT_TRUE(this_cpu().at("neon"));
#elif defined(__arm__)
  EXPECT_TRUE(this_cpu().at("vfp3"));
#elif defined(__riscv)
  EXPECT_TRUE(this_cpu().at("m"));
#else
  GTEST_SKIP() << "nothing is known of this machine's CPUs";
#endif
}

}  // namespace
}  // namespace run_model
