// What tests ask of the stand-in for NVIDIA's driver (stand_in.cc): what it was told, what was
// wrong about it, and how it shall fail.
//
// It checks every call: handles that live, copies within bounds, launches within the GPU's and the
// kernel's limits, arguments that are addresses of live memory or numbers, a context that is
// current, frees that are due. Like a GPU it does nothing before somebody waits, so that a wait
// that is missing shows. A kernel does what a test has it do; or it is CUDA C++ compiled for the
// CPU (emulation.h), which proves what the text computes, and not what NVIDIA's compiler and GPUs
// make of it.
#pragma once

#include <cstdint>

extern "C" {

// Of a launch: the values of its arguments, each in the first bytes of 8, and {grid, block}.
using StandInKernel = void (*)(const std::uint64_t* arguments, const unsigned* sizes,
                               unsigned shared_bytes);

struct StandInGpu {
  int driver_version = 12040;
  int major = 8;
  int minor = 0;
  int devices = 1;
  std::uint64_t memory_bytes = 1 << 20;
  int kernel_threads = 1024;       // that each kernel can have in a block
  int static_shared_bytes = 1024;  // of each kernel
};

// Forgets everything, and is the GPU that is given.
void stand_in_reset(const StandInGpu* gpu);
// One line for each call, "cuMemAlloc_v2 bytes=64"; valid until the next call of anything.
const char* stand_in_log();
// One line for each call that was wrong; empty where none was.
const char* stand_in_problems();
// One line for each thing that was not given back.
const char* stand_in_leaks();
// The next call of `function` gives `result`, and after a sticky one all others do.
void stand_in_fail(const char* function, int result);
// What launches of the kernel do. Device addresses are those of memory that it may read and write.
void stand_in_kernel(const char* name, StandInKernel kernel);
}
