/* Parts of vectors, and the sum and the largest and smallest number of one.
 *
 * Macro: ANY_COUNT, where parts of vectors have counts that are known only when it runs.
 */
#ifndef RUN_MODEL_KERNELS_REDUCTIONS_H_
#define RUN_MODEL_KERNELS_REDUCTIONS_H_

#include "vector.h"

/* Parts that a sum along a row is made in, which chains_sum() and the like put together. */
#define CHAINS 4

#ifdef ANY_COUNT
/* The first `count` numbers, and zeros.  As a constant `count` is LANES. */
KERNEL vec load_some(const float* from, int count) {
  if (__builtin_constant_p(count) && count == LANES) return load(from);
  float some[LANES] = {0};
  NO_UNROLL for (int i = 0; i < count; i++) some[i] = from[i];
  return load(some);
}

KERNEL void store_some(float* to, vec value, int count) {
  if (__builtin_constant_p(count) && count == LANES) {
    store(to, value);
  } else {
    float some[LANES];
    store(some, value);
    NO_UNROLL for (int i = 0; i < count; i++) to[i] = some[i];
  }
}

/* `other` in all lanes from `count` on. */
KERNEL vec first_lanes(vec value, int count, float other) {
  if (__builtin_constant_p(count) && count == LANES) return value;
  ivec lane;
  UNROLL for (int i = 0; i < LANES; i++) lane[i] = i;
  return chosen(lane < count, value, splat(other));
}
#else
/* The first `count` numbers, and zeros; `count` is a constant at every call. */
KERNEL vec load_some(const float* from, int count) {
  if (count == LANES) return load(from);
  vec value = {0};
  UNROLL for (int i = 0; i < count; i++) value[i] = from[i];
  return value;
}

KERNEL void store_some(float* to, vec value, int count) {
  if (count == LANES) {
    store(to, value);
  } else {
    UNROLL for (int i = 0; i < count; i++) to[i] = value[i];
  }
}

/* `other` in all lanes from `count` on. */
KERNEL vec first_lanes(vec value, int count, float other) {
  UNROLL for (int i = count; i < LANES; i++) value[i] = other;
  return value;
}
#endif

/* Lane i is lane (i + step) % LANES of the vector. */
#if LANES == 16
#define ROTATED(v, s)                                                                           \
  __builtin_shufflevector(v, v, (0 + s) % 16, (1 + s) % 16, (2 + s) % 16, (3 + s) % 16,         \
                          (4 + s) % 16, (5 + s) % 16, (6 + s) % 16, (7 + s) % 16, (8 + s) % 16, \
                          (9 + s) % 16, (10 + s) % 16, (11 + s) % 16, (12 + s) % 16,            \
                          (13 + s) % 16, (14 + s) % 16, (15 + s) % 16)
#elif LANES == 8
#define ROTATED(v, s)                                                                            \
  __builtin_shufflevector(v, v, (0 + s) % 8, (1 + s) % 8, (2 + s) % 8, (3 + s) % 8, (4 + s) % 8, \
                          (5 + s) % 8, (6 + s) % 8, (7 + s) % 8)
#else
#define ROTATED(v, s) \
  __builtin_shufflevector(v, v, (0 + s) % 4, (1 + s) % 4, (2 + s) % 4, (3 + s) % 4)
#endif

#define ACROSS_LANES(v, JOIN)                \
  if (LANES > 8) v = JOIN(v, ROTATED(v, 8)); \
  if (LANES > 4) v = JOIN(v, ROTATED(v, 4)); \
  v = JOIN(v, ROTATED(v, 2));                \
  v = JOIN(v, ROTATED(v, 1));                \
  return v[0]

KERNEL vec sum_of(vec a, vec b) { return a + b; }

KERNEL float lanes_sum(vec v) { ACROSS_LANES(v, sum_of); }
KERNEL float lanes_max(vec v) { ACROSS_LANES(v, maximum); }
KERNEL float lanes_min(vec v) { ACROSS_LANES(v, minimum); }

KERNEL vec chains_sum(const vec* v) { return (v[0] + v[1]) + (v[2] + v[3]); }
KERNEL vec chains_max(const vec* v) { return maximum(maximum(v[0], v[1]), maximum(v[2], v[3])); }
KERNEL vec chains_min(const vec* v) { return minimum(minimum(v[0], v[1]), minimum(v[2], v[3])); }

#endif /* RUN_MODEL_KERNELS_REDUCTIONS_H_ */
