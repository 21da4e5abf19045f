# 64-bit Arm: Debian's arm64, as on a Raspberry Pi 4 or 5.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(preset aarch64)
set(triplet aarch64-linux-gnu)
set(emulator aarch64)
set(emulator_cpu cortex-a72)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
