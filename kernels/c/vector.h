/* Vectors of LANES float32 numbers, in the vector extensions that Clang and GCC share.
 *
 * LANES is also the number of channels in a block of the activation layout
 * [block][row][column][lane], so one vector is one pixel's channels of a block.  Loads and stores
 * need no alignment.
 *
 * `number` is what activations and weights are stored as, float32 or with HALF float16 (half.h),
 * and stored_vec LANES of them.  load() makes float32 of either, and store() rounds to what it is
 * given a place for.
 */
#ifndef RUN_MODEL_KERNELS_VECTOR_H_
#define RUN_MODEL_KERNELS_VECTOR_H_

#ifndef LANES
#error "LANES is the number of float32 numbers in a vector: 4, 8 or 16"
#endif

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float vec_in_memory __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int ivec __attribute__((vector_size(4 * LANES)));

/* Vectors of RISC-V: four lanes are scalars (isa.py), whatever Clang is told. */
#if defined(__riscv_vector) && LANES == 8
#define RISCV_VECTORS 1
#endif

/* TVM gives every function of imported code external names, so all but a layer's entry functions
 * must disappear by inlining: two layers compiled with other macros would share one body. */
#define KERNEL static inline __attribute__((always_inline))

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#define NO_UNROLL _Pragma("GCC unroll 1")
#endif

/* Where part `part` of `parts` begins, if `count` things are shared out; sizes differ by one at
 * most, and larger parts are spread among the others. */
KERNEL int part_start(int part, int parts, int count) { return (int)((long)part * count / parts); }

/* Conditions of loops that go round about a thousand times, or a few times: registers are given to
 * what is expected to run most, and without a word the innermost loop is, as few rounds as it has.
 */
#define MANY_TIMES(condition) __builtin_expect_with_probability(condition, 1, 0.999)
#define FEW_TIMES(condition) __builtin_expect_with_probability(condition, 1, 0.7)
#define SELDOM(condition) __builtin_expect(condition, 0)

KERNEL vec load_floats(const float* from) { return *(const vec_in_memory*)from; }

KERNEL void store_floats(float* to, vec value) { *(vec_in_memory*)to = value; }

#ifndef HALF
typedef float number;
typedef vec stored_vec;
#define load load_floats
#define store store_floats
#define load_stored load_floats
#define store_stored store_floats
#define stored_splat splat
#define stored_maximum maximum
#define to_floats(value) (value)
#define to_stored(value) (value)
#endif

/* Subtracting zero, which changes no number, makes a scalar a vector in both compilers. */
KERNEL vec splat(float value) { return value - (vec){0}; }

/* Numbers between -2^22 and 2^22, rounded to whole ones in the last bits: 1.5 * 2^23 more leaves
 * none for fractions, so that the addition rounds (halves to even, as every float32 sum does), and
 * no CPU or emulator of one needs a conversion. */
KERNEL ivec last_bits(vec value) { return (ivec)(value + splat(12582912.0f)); }

/* A product as it is stored, never part of a fused multiply-add: code generation for the CPU fuses
 * what it sees, whatever flags or pragmas say here. */
KERNEL vec rounded(vec value) {
#if defined(__AVX512F__) || defined(__AVX__) && LANES <= 8 || defined(__SSE2__) && LANES == 4
  __asm__("" : "+v"(value));
#elif defined(__ARM_NEON)
  __asm__("" : "+w"(value));
#elif defined(RISCV_VECTORS)
  __asm__("" : "+m"(value));
#else
  for (int i = 0; i < LANES; i++) {
    float number = value[i];
#if defined(__riscv_flen)
    __asm__("" : "+f"(number));
#else
    __asm__("" : "+m"(number));
#endif
    value[i] = number;
  }
#endif
  return value;
}

/* Where a comparison holds (all bits set) a, elsewhere b. */
KERNEL vec chosen(ivec where, vec a, vec b) {
  return (vec)((where & (ivec)a) | (~where & (ivec)b));
}

KERNEL int has_nan(vec value) {
  const ivec is_nan = value != value;
  int found = 0;
  for (int i = 0; i < LANES; i++) found |= is_nan[i];
  return found != 0;
}

#if defined(__arm__) && defined(__ARM_NEON) && LANES == 4
#define NEON_ARMV7 1
#endif
#if defined(__clang__) && defined(__ARM_NEON) && LANES <= 8
#define NEON_CLANG 1
typedef signed char neon_bytes __attribute__((vector_size(16)));
/* A vector as the registers that hold it. */
typedef union {
  vec whole;
  neon_bytes part[LANES / 4];
} neon_vec;
#endif

/* NaN if one of both is, as ONNX has it.  NEON has an instruction for that, which Clang takes from
 * Arm's intrinsic only (41 means float32x4_t); x86's gives its second operand where one is NaN, so
 * that a constant as `b` costs nothing more; RISC-V's prefers the number, so that its scalars are
 * looked at for NaN, and its vectors compared as x86's would be. */
KERNEL vec maximum(vec a, vec b) {
#if defined(NEON_CLANG)
  neon_vec x = {a}, y = {b};
  UNROLL for (int i = 0; i < LANES / 4; i++) {
    x.part[i] = (neon_bytes)__builtin_neon_vmaxq_v(x.part[i], y.part[i], 41);
  }
  return x.whole;
#elif defined(__riscv) && !defined(RISCV_VECTORS)
  for (int i = 0; i < LANES; i++) {
    a[i] = a[i] == a[i] && b[i] == b[i] ? __builtin_fmaxf(a[i], b[i]) : a[i] + b[i];
  }
  return a;
#else
  return chosen(b != b, b, chosen(b > a, b, a));
#endif
}

KERNEL vec minimum(vec a, vec b) {
#if defined(NEON_CLANG)
  neon_vec x = {a}, y = {b};
  UNROLL for (int i = 0; i < LANES / 4; i++) {
    x.part[i] = (neon_bytes)__builtin_neon_vminq_v(x.part[i], y.part[i], 41);
  }
  return x.whole;
#elif defined(__riscv) && !defined(RISCV_VECTORS)
  for (int i = 0; i < LANES; i++) {
    a[i] = a[i] == a[i] && b[i] == b[i] ? __builtin_fminf(a[i], b[i]) : a[i] + b[i];
  }
  return a;
#else
  return chosen(b != b, b, chosen(b < a, b, a));
#endif
}

/* What a layer does to its results: CLAMP_LOW and CLAMP_HIGH are there where it has such a bound.
 */
KERNEL vec clamped(vec value) {
#ifdef CLAMP_LOW
  value = maximum(value, splat(CLAMP_LOW));
#endif
#ifdef CLAMP_HIGH
  value = minimum(value, splat(CLAMP_HIGH));
#endif
  return value;
}

#ifdef NEON_ARMV7
/* Loads that move the pointer on, which an instruction of armv7 can do but not add an offset.
 * Volatile, as multiply_add_lane() is: they keep their order, for Clang else has more loaded than
 * registers hold. */
KERNEL vec load_next(const float** from) {
  vec value;
  __asm__ volatile("vld1.32 {%e0, %f0}, [%1]!" : "=w"(value), "+r"(*from) : : "memory");
  return value;
}

KERNEL vec load_stepping(const float** from, long bytes) {
  vec value;
  __asm__ volatile("vld1.32 {%e0, %f0}, [%1], %2"
                   : "=t"(value), "+r"(*from)
                   : "r"(bytes)
                   : "memory");
  return value;
}
#endif

#if defined(HALF)
#define MULTIPLIES_BY_LANE 1
#elif LANES == 4 && defined(__ARM_NEON)
/* NEON multiplies by a lane of a register, which saves making a vector of a number. */
#define MULTIPLIES_BY_LANE 1

/* sum + a[lane] * b; `lane` is a constant at every call. */
KERNEL vec multiply_add_lane(vec sum, vec a, int lane, vec b) {
#if defined(NEON_ARMV7)
  /* Armv7 has the lane in VMLA only, which rounds the product, not in the fused VFMA: that one
   * Clang would take, and a VDUP for every product; without VFPv4 a VMUL and a VADD.  A lane is
   * that of one of the first 16 D registers: constraint t, in its halves e and f. */
  if (lane == 0) __asm__ volatile("vmla.f32 %q0, %q1, %e2[0]" : "+w"(sum) : "w"(b), "t"(a));
  if (lane == 1) __asm__ volatile("vmla.f32 %q0, %q1, %e2[1]" : "+w"(sum) : "w"(b), "t"(a));
  if (lane == 2) __asm__ volatile("vmla.f32 %q0, %q1, %f2[0]" : "+w"(sum) : "w"(b), "t"(a));
  if (lane == 3) __asm__ volatile("vmla.f32 %q0, %q1, %f2[1]" : "+w"(sum) : "w"(b), "t"(a));
  return sum;
#else
  return sum + splat(a[lane]) * b;
#endif
}
#endif

#ifdef HALF
#include "half.h"
#endif

#endif /* RUN_MODEL_KERNELS_VECTOR_H_ */
