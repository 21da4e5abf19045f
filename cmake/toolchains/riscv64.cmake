# 64-bit RISC-V: Debian's riscv64, that is RV64GC without vectors.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(preset riscv64)
set(triplet riscv64-linux-gnu)
set(emulator riscv64)
set(emulator_cpu rv64)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
