/* The average of each channel's whole plane, written as plain (channels) in the order of the
 * pieces.
 *
 * A piece is some lanes of a block.  The layer defines PIECES and for each of them in braced lists
 * PIECE_TENSOR and PIECE_BLOCK (what it reads), PIECE_FIRST and PIECE_COUNT (lanes), PIECE_CHANNEL
 * (where its first channel is written); PIXELS of a plane; TASKS.
 */
#ifndef RUN_MODEL_KERNELS_GLOBAL_POOLING_H_
#define RUN_MODEL_KERNELS_GLOBAL_POOLING_H_

#include "window.h"

/* Sums at a time, so that one addition need not wait for the one before. */
#define CHAINS 4

KERNEL vec plane_sum(const float* plane) {
  vec sums[CHAINS];
  UNROLL for (int i = 0; i < CHAINS; i++) sums[i] = (vec){0};
  NO_UNROLL for (int pixel = 0; pixel < PIXELS / CHAINS * CHAINS; pixel += CHAINS) {
    UNROLL for (int i = 0; i < CHAINS; i++) sums[i] += load(plane + (long)(pixel + i) * LANES);
  }
  UNROLL for (int i = 0; i < PIXELS % CHAINS; i++) {
    sums[i] += load(plane + (long)(PIXELS / CHAINS * CHAINS + i) * LANES);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

KERNEL void global_average(int task, const void* const* inputs, const void* const* constants,
                           void* output, void* shared, void* scratch) {
  static const int tensors[PIECES] = PIECE_TENSOR;
  static const int blocks[PIECES] = PIECE_BLOCK;
  static const int firsts[PIECES] = PIECE_FIRST;
  static const int counts[PIECES] = PIECE_COUNT;
  static const int channels[PIECES] = PIECE_CHANNEL;
  (void)constants, (void)shared, (void)scratch;
  NO_UNROLL for (int piece = part_start(task, TASKS, PIECES);
                 piece < part_start(task + 1, TASKS, PIECES); piece++) {
    const float* plane =
        (const float*)inputs[tensors[piece]] + (long)blocks[piece] * PIXELS * LANES;
    float* out = (float*)output + channels[piece];
    float averages[LANES];
    store(averages, plane_sum(plane) * splat(1.0f / PIXELS));
    if (counts[piece] == LANES) {
      store(out, load(averages));
    } else {
      NO_UNROLL for (int i = 0; i < counts[piece]; i++) out[i] = averages[firsts[piece] + i];
    }
  }
}

#endif /* RUN_MODEL_KERNELS_GLOBAL_POOLING_H_ */
