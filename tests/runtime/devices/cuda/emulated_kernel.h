// A kernel whose CUDA C++ was compiled for the CPU (emulation.h), as the stand-in finds it.
#pragma once

#include <cstdint>

struct EmulatedKernel {
  const char* name;  // null ends a table
  const unsigned* parameter_bytes;
  unsigned parameters;
  // False where the threads of a group did not all come to the same barriers.
  bool (*launch)(const std::uint64_t* arguments, const unsigned* sizes);
};

// A library of such kernels has a table of them, `extern "C" const EmulatedKernel
// emulated_kernels[]`.
