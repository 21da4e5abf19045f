/* A register tile whose last vector of output channels is half a vector.
 *
 * Where 24 channels lie in two blocks of 16 lanes, a processor that takes a vector of 16 in two
 * steps saves a quarter of them.  Registers: `pixels * vectors` sums, `vectors` weights and an
 * input.
 */
#ifndef RUN_MODEL_KERNELS_HALF_TILE_H_
#define RUN_MODEL_KERNELS_HALF_TILE_H_

#include "tile.h"

typedef float half_vec __attribute__((vector_size(2 * LANES)));
typedef float half_vec_in_memory __attribute__((vector_size(2 * LANES), aligned(4), may_alias));

KERNEL half_vec load_half(const float* from) { return *(const half_vec_in_memory*)from; }

/* The sums of vector `vectors - 1` are in `halves`; weights lie as for tile_multiply. */
KERNEL void half_tile_multiply(tile_sums sums, half_vec* halves, int pixels, int vectors,
                               const float* input, long pixel_stride, const float* weights,
                               int depth) {
  NO_UNROLL for (int k = 0; k < depth; k++) {
    const float* from = weights + (long)k * vectors * LANES;
    vec w[MOST_TILE_VECTORS];
    UNROLL for (int v = 0; v < vectors - 1; v++) w[v] = load(from + v * LANES);
    half_vec last = load_half(from + (vectors - 1) * LANES);
    UNROLL for (int p = 0; p < pixels; p++) {
      float a = input[p * pixel_stride + k];
      UNROLL for (int v = 0; v < vectors - 1; v++) sums[p][v] += splat(a) * w[v];
      halves[p] += (a - (half_vec){0}) * last;
    }
  }
}

/* The half as a vector, with zeros behind it. */
KERNEL vec widened(half_vec half) {
  union {
    half_vec half[2];
    vec whole;
  } both = {{half, (half_vec){0}}};
  return both.whole;
}

#endif /* RUN_MODEL_KERNELS_HALF_TILE_H_ */
