/* Fully connected layer on one vector.
 *
 * Every weight is used once, so all depends on how fast they are read: a task reads its weights
 * from the first to the last, [part of 1 ... DENSE_VECTORS vectors of outputs][input][output].  Two
 * halves of the inputs are summed up apart, so that there are enough sums to hide the latency of
 * adding to one, and two places that are read at a time.
 *
 * Macros: INPUTS, OUTPUTS; VECTOR_TILES, LARGER_VECTOR_TILES, TILE_VECTORS: tiles of vectors of
 * outputs, see tile_start(); PARTS, the number of tasks.
 */
#include "tile.h"

#define HALF (INPUTS / 2)

/* Brings what the loop comes to in a while nearer; beyond the weights' end this does nothing. */
#define AHEAD 4096

KERNEL void dense_step(tile_sums sums, int half, int vectors, float input, const float* weights) {
  vec a = splat(input);
  UNROLL for (int v = 0; v < vectors; v++) {
    __builtin_prefetch((const char*)(weights + v * LANES) + AHEAD);
    sums[half][v] += a * load(weights + v * LANES);
  }
}

KERNEL void dense_tile(const float* input, const float* weights, const float* bias, float* output,
                       int vector, int vectors) {
  tile_sums sums;
  weights += (long)vector * LANES * INPUTS;
  tile_begin(sums, 1, vectors, bias + vector * LANES);
  UNROLL for (int v = 0; v < vectors; v++) sums[1][v] = (vec){0};
  NO_UNROLL for (int k = 0; k < HALF; k++) {
    dense_step(sums, 0, vectors, input[k], weights + k * vectors * LANES);
    dense_step(sums, 1, vectors, input[HALF + k], weights + (HALF + k) * vectors * LANES);
  }
  if (INPUTS % 2)
    dense_step(sums, 0, vectors, input[INPUTS - 1], weights + (INPUTS - 1) * vectors * LANES);
  UNROLL for (int v = 0; v < vectors; v++) {
    const vec value = clamped(sums[0][v] + sums[1][v]);
    const int first = (vector + v) * LANES;
    if (first + LANES <= OUTPUTS) {
      store(output + first, value);
    } else {
      for (int lane = 0; first + lane < OUTPUTS; lane++) output[first + lane] = value[lane];
    }
  }
}

KERNEL void dense(int task, const void* const* inputs, const void* const* constants, void* output,
                  void* shared, void* scratch) {
  (void)shared, (void)scratch;
  const int first = part_start(task, PARTS, VECTOR_TILES);
  const int end = part_start(task + 1, PARTS, VECTOR_TILES);
  NO_UNROLL for (int tile = first; tile < end; tile++) {
    const int vector = tile_start(tile, LARGER_VECTOR_TILES, TILE_VECTORS);
    if (LARGER_VECTOR_TILES && tile < LARGER_VECTOR_TILES)
      dense_tile(inputs[0], constants[0], constants[1], output, vector, TILE_VECTORS + 1);
    else
      dense_tile(inputs[0], constants[0], constants[1], output, vector, TILE_VECTORS);
  }
}
