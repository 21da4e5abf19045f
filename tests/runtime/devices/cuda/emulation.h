// CUDA C++ as compile_model writes it, compiled for the CPU: what the compiler of NVIDIA knows by
// itself, and launches.
//
// The threads of a group are fibers which run one after the other from barrier to barrier, groups
// follow each other. RUN_MODEL_EMULATION_ORDER=backwards takes threads and groups from the last to
// the first: where a barrier is missing, or two groups need each other, one of the orders gives
// other numbers.
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/runtime/devices/cuda/emulated_kernel.h"

namespace emulation {

struct Index {
  int x, y, z;
};

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  Index thread{};
  bool done = false;
};

constexpr std::size_t kStackBytes = 256 << 10;

inline ucontext_t scheduler;
inline Fiber* running = nullptr;
inline void (*body)() = nullptr;

}  // namespace emulation

inline emulation::Index threadIdx, blockIdx;

inline void __syncthreads() {
  emulation::Fiber& self = *emulation::running;
  swapcontext(&self.context, &emulation::scheduler);
}
inline void __threadfence_block() {}

namespace emulation {

inline void run_fiber() {
  body();
  running->done = true;
  swapcontext(&running->context, &scheduler);
}

// All threads of one group; `body` is the kernel with its arguments.
inline bool run_group(std::vector<Fiber>& fibers, const unsigned* threads, bool backwards) {
  const std::size_t count = fibers.size();
  for (std::size_t i = 0; i < count; ++i) {
    Fiber& fiber = fibers[i];
    fiber.thread = {static_cast<int>(i % threads[0]), static_cast<int>(i / threads[0] % threads[1]),
                    static_cast<int>(i / threads[0] / threads[1])};
    fiber.done = false;
    if (fiber.stack == nullptr) fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_fiber, 0);
  }
  for (;;) {
    std::size_t done = 0;
    for (std::size_t i = 0; i < count; ++i) {
      running = &fibers[backwards ? count - 1 - i : i];
      threadIdx = running->thread;
      swapcontext(&scheduler, &running->context);
      done += running->done ? 1 : 0;
    }
    if (done == count) return true;
    if (done != 0) return false;
  }
}

inline bool run_groups(const unsigned* sizes) {
  const char* order = getenv("RUN_MODEL_EMULATION_ORDER");
  const bool backwards = order != nullptr && strcmp(order, "backwards") == 0;
  std::vector<Fiber> fibers(std::size_t{sizes[3]} * sizes[4] * sizes[5]);
  const std::size_t groups = std::size_t{sizes[0]} * sizes[1] * sizes[2];
  for (std::size_t i = 0; i < groups; ++i) {
    const std::size_t group = backwards ? groups - 1 - i : i;
    blockIdx = {static_cast<int>(group % sizes[0]), static_cast<int>(group / sizes[0] % sizes[1]),
                static_cast<int>(group / sizes[0] / sizes[1])};
    if (!run_group(fibers, sizes + 3, backwards)) return false;
  }
  return true;
}

template <auto Kernel>
struct Emulated;

template <typename... Arguments, void (*Kernel)(Arguments...)>
struct Emulated<Kernel> {
  static constexpr unsigned parameter_bytes[] = {sizeof(Arguments)..., 0};
  static inline const std::uint64_t* values = nullptr;

  template <typename Argument>
  static Argument argument(std::size_t& index) {
    Argument value;
    memcpy(&value, &values[index++], sizeof(value));
    return value;
  }

  static bool launch(const std::uint64_t* arguments, const unsigned* sizes) {
    values = arguments;
    body = [] {
      std::size_t index = 0;
      // Braces: evaluated from left to right.
      struct Call {
        Call(Arguments... each) { Kernel(each...); }
      };
      Call{argument<Arguments>(index)...};
    };
    return run_groups(sizes);
  }

  static constexpr EmulatedKernel entry(const char* name) {
    return {name, parameter_bytes, sizeof...(Arguments), launch};
  }
};

inline std::uint16_t half_bits(float value) {
  const auto half = static_cast<_Float16>(value);
  std::uint16_t bits;
  memcpy(&bits, &half, sizeof(bits));
  return bits;
}

inline float half_value(std::uint16_t bits) {
  _Float16 half;
  memcpy(&half, &bits, sizeof(half));
  return static_cast<float>(half);
}

template <typename To, typename From>
To same_bits(From from) {
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace emulation

#define EMULATED(space, name) emulation::Emulated<&space::name>::entry(#name)

inline int __float_as_int(float x) { return emulation::same_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emulation::same_bits<unsigned>(x); }
inline float __int_as_float(int x) { return emulation::same_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulation::same_bits<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

#define __global__
#define __launch_bounds__(threads)
// Groups follow each other, so what is a group's own may stand once.
#define __shared__ static
#define __align__(bytes) alignas(bytes)
// CUDA's int64_t is a long long, this machine's a long.
#define int64_t emulated_int64_t
#define uint64_t emulated_uint64_t
