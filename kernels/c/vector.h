/* Vectors of LANES float32 numbers, in the vector extensions that Clang and GCC share.
 *
 * LANES is also the number of channels in a block of the activation layout [block][row][column][lane],
 * so one vector is one pixel's channels of a block.  Loads and stores need no alignment.
 */
#ifndef RUN_MODEL_KERNELS_VECTOR_H_
#define RUN_MODEL_KERNELS_VECTOR_H_

#ifndef LANES
#error "LANES is the number of float32 numbers in a vector: 4, 8 or 16"
#endif

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float vec_in_memory __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

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

KERNEL vec load(const float *from) { return *(const vec_in_memory *)from; }

KERNEL void store(float *to, vec value) { *(vec_in_memory *)to = value; }

/* Subtracting zero, which changes no number, makes a scalar a vector in both compilers. */
KERNEL vec splat(float value) { return value - (vec){0}; }

KERNEL vec maximum(vec a, vec b) {
#if defined(__clang__)
  return __builtin_elementwise_max(a, b);
#else
  for (int i = 0; i < LANES; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
  return a;
#endif
}

KERNEL vec minimum(vec a, vec b) {
#if defined(__clang__)
  return __builtin_elementwise_min(a, b);
#else
  for (int i = 0; i < LANES; i++) a[i] = a[i] < b[i] ? a[i] : b[i];
  return a;
#endif
}

/* What a layer does to its results: CLAMP_LOW and CLAMP_HIGH are there where it has such a bound. */
KERNEL vec clamped(vec value) {
#ifdef CLAMP_LOW
  value = maximum(value, splat(CLAMP_LOW));
#endif
#ifdef CLAMP_HIGH
  value = minimum(value, splat(CLAMP_HIGH));
#endif
  return value;
}

#endif /* RUN_MODEL_KERNELS_VECTOR_H_ */
