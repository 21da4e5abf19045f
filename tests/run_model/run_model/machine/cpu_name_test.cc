#include "run_model/run_model/machine/cpu_name.h"

#include <gtest/gtest.h>

#include "tests/boards.h"

namespace run_model {
namespace {

std::string name_of(const Board& board) {
  return cpu_name(cpu_clusters(board.cpus(), board.root()), board.root());
}

TEST(ArmCore, Names) {
  EXPECT_EQ(arm_core_name(0x41, 0xc09), "Cortex-A9");
  EXPECT_EQ(arm_core_name(0x41, 0xd0b), "Cortex-A76");
  EXPECT_EQ(arm_core_name(0x51, 0x803), "Kryo 3xx Silver");
  EXPECT_EQ(arm_core_name(0x41, 0xfff), "implementer 0x41, part 0xfff");
  EXPECT_EQ(arm_core_name(0, 0), "implementer 0x00, part 0x000");
}

TEST(CpuName, ArmCoresByTheirRegisters) {
  EXPECT_EQ(name_of(raspberry_pi_4()), "4 x Cortex-A72");
  EXPECT_EQ(name_of(rk3399()), "2 x Cortex-A72 + 4 x Cortex-A53");
}

TEST(CpuName, ArmCoresByCpuinfo) {
  const Board board = odroid_xu4();
  std::string cpuinfo;
  for (int cpu = 0; cpu < 8; ++cpu) {
    cpuinfo += "processor\t: " + std::to_string(cpu) +
               "\nmodel name\t: ARMv7 Processor rev 3 (v7l)\nCPU implementer\t: 0x41\n"
               "CPU architecture: 7\nCPU part\t: " +
               (cpu < 4 ? "0xc07" : "0xc0f") + "\n\n";
  }
  board.write("proc/cpuinfo", cpuinfo + "Hardware\t: ODROID-XU4\n");
  EXPECT_EQ(name_of(board), "4 x Cortex-A15 + 4 x Cortex-A7");
}

TEST(CpuName, OldKernelsNameTheCoreOnce) {
  const Board board = pynq_z1();
  board.write("proc/cpuinfo",
              "Processor\t: ARMv7 Processor rev 0 (v7l)\nprocessor\t: 0\n\nprocessor\t: 1\n\n"
              "CPU implementer\t: 0x41\nCPU part\t: 0xc09\n");
  EXPECT_EQ(name_of(board), "2 x Cortex-A9");
}

TEST(CpuName, X86AndRiscV) {
  const Board x86 = server_with_hyper_threads();
  x86.write(
      "proc/cpuinfo",
      "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.2GHz\n");
  EXPECT_EQ(name_of(x86), "Intel(R) Xeon(R) CPU @ 2.2GHz");
  const Board riscv(std::vector<BoardCpu>(4));
  riscv.write("proc/cpuinfo",
              "processor\t: 0\nhart\t: 1\nisa\t: rv64imafdc\nuarch\t: sifive,u74-mc\n");
  EXPECT_EQ(name_of(riscv), "sifive,u74-mc");
}

TEST(CpuName, NothingIsEmpty) {
  EXPECT_EQ(name_of(pynq_z1()), "");
  const Board nonsense = pynq_z1();
  nonsense.write("proc/cpuinfo", "CPU part\t: zz\nCPU implementer\t:\n\n\n:::\n");
  EXPECT_EQ(name_of(nonsense), "");
}

}  // namespace
}  // namespace run_model
