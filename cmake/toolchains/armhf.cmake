# 32-bit Arm: Debian's armhf, that is ARMv7 with floating-point registers (VFPv3-D16), which are the
# defaults of Debian's compiler. NEON is not taken for granted.
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(preset armhf)
set(triplet arm-linux-gnueabihf)
set(emulator arm)
set(emulator_cpu cortex-a9)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
