/* The register tile: PIXELS pixels x VECTORS vectors of output channels, accumulated in registers.
 *
 * Register budget (vectors): PIXELS * VECTORS sums, VECTORS weights and one or two inputs must fit:
 *   AVX-512  32 registers: 14 x 2 sums + 2 + 2
 *   AVX2     16 registers:  6 x 2 sums + 2 + 1
 *   NEON 64  32 registers:  8 x 3 or 12 x 2 sums + weights + inputs
 *   NEON 32  16 registers:  6 x 2 sums + 2 + 2
 *
 * `pixels` and `vectors` are constants at every call, so that the loops unroll and `sums` lives in
 * registers.
 */
#ifndef RUN_MODEL_KERNELS_TILE_H_
#define RUN_MODEL_KERNELS_TILE_H_

#include "vector.h"

#define MOST_TILE_PIXELS 16
#define MOST_TILE_VECTORS 4

typedef vec tile_sums[MOST_TILE_PIXELS][MOST_TILE_VECTORS];

KERNEL void tile_clear(tile_sums sums, int pixels, int vectors) {
  UNROLL for (int p = 0; p < pixels; p++) {
    UNROLL for (int v = 0; v < vectors; v++) sums[p][v] = (vec){0};
  }
}

/* sums[p][v] += input[p * pixel_stride + k] * weights[k * weight_stride + v * LANES ...] over
 * `depth` values of k.  Strides count floats. */
KERNEL void tile_multiply(tile_sums sums, int pixels, int vectors, const float *input,
                          long pixel_stride, const float *weights, long weight_stride, int depth) {
  NO_UNROLL for (int k = 0; k < depth; k++) {
    vec w[MOST_TILE_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) w[v] = load(weights + k * weight_stride + v * LANES);
    UNROLL for (int p = 0; p < pixels; p++) {
      vec a = splat(input[p * pixel_stride + k]);
      UNROLL for (int v = 0; v < vectors; v++) sums[p][v] += a * w[v];
    }
  }
}

#endif /* RUN_MODEL_KERNELS_TILE_H_ */
