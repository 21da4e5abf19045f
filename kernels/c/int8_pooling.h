/* Pooling of bytes.
 *
 * MAXIMUM or AVERAGE; windows never reach only padding.  Blocks of differing scales become one:
 *   maximum  fma(byte, scale[channel], bias[channel]), rounded; the bytes as they are if !RESCALE
 *   average  fma(float32(sum) * float32(1 / count), scale[channel], bias[channel]), rounded, where
 * padding counts only with COUNT_PADDING and is the zero point then GLOBAL: pieces of a window that
 * is the whole picture become float32 (1, channels, 1, 1): fma(float32(sum), scale[channel],
 * bias[channel]). Constants: scale and bias [block][lane].
 */
#include "int8.h"

static const int block_tensor[] = BLOCK_TENSOR;
static const int block_index[] = BLOCK_INDEX;

KERNEL const unsigned char* block_start(int block, const void* const* inputs) {
  return (const unsigned char*)inputs[block_tensor[block]] +
         (long)block_index[block] * IN_HEIGHT * IN_WIDTH * LANES;
}

#ifdef GLOBAL
static const int piece_lane[] = PIECE_LANE;
static const int piece_count[] = PIECE_COUNT;
static const int piece_output[] = PIECE_OUTPUT;

KERNEL void int8_pool(int task, const void* const* inputs, const void* const* constants,
                      void* output, void* shared, void* scratch) {
  NO_UNROLL for (int b = task * TASK_BLOCKS; b < (task + 1) * TASK_BLOCKS && b < BLOCKS; b++) {
    const unsigned char* from = block_start(b, inputs);
    ivec sums = {0};
    for (int i = 0; i < IN_HEIGHT * IN_WIDTH; i++) {
      sums += __builtin_convertvector(load_bytes(from + i * LANES), ivec);
    }
    const vec value = fused(floats(sums), load((const float*)constants[0] + b * LANES),
                            load((const float*)constants[1] + b * LANES));
    float values[LANES], *to = (float*)output + piece_output[b];
    store(values, value);
    for (int i = 0; i < piece_count[b]; i++) to[i] = values[piece_lane[b] + i];
  }
}
#else
KERNEL lane_bytes larger(lane_bytes a, lane_bytes b) {
#if defined(__clang__)
  return __builtin_elementwise_max(a, b);
#else
  lane_bytes take_a = (lane_bytes)(a > b);
  return (a & take_a) | (b & ~take_a);
#endif
}

/* One pixel; `edge` says whether its window may leave the picture. */
KERNEL lane_bytes pooled(const unsigned char* from, int y, int x, int edge, vec scale, vec bias,
                         int fill) {
  const int top = y * STRIDE_Y - PAD_TOP, left = x * STRIDE_X - PAD_LEFT;
  lane_bytes most = {0};
  ivec sum = {0};
  int count = 0;
  UNROLL for (int i = 0; i < TAPS_Y; i++) {
    UNROLL for (int j = 0; j < TAPS_X; j++) {
      const int row = top + i, column = left + j;
      if (edge && (row < 0 || row >= IN_HEIGHT || column < 0 || column >= IN_WIDTH)) continue;
      const lane_bytes here = load_bytes(from + ((long)row * IN_WIDTH + column) * LANES);
#ifdef MAXIMUM
      most = larger(most, here);
#else
      sum += __builtin_convertvector(here, ivec);
#endif
      count++;
    }
  }
#ifdef MAXIMUM
#ifndef RESCALE
  return most;
#endif
  vec value = floats_of_bytes(most);
#else
#ifdef COUNT_PADDING
  sum += (TAPS_Y * TAPS_X - count) * fill - (ivec){0};
  count = TAPS_Y * TAPS_X;
#endif
  vec value = floats(sum) * splat(1.0f / (float)count);
#endif
  value = fused(value, scale, bias);
  return rounded_bytes(minimum(maximum(value, splat(0.0f)), splat(255.0f)));
}

/* A task is TASK_ROWS rows of a block. */
KERNEL void int8_pool(int task, const void* const* inputs, const void* const* constants,
                      void* output, void* shared, void* scratch) {
  static const int block_fill[] = BLOCK_FILL;
  const int bands = (OUT_HEIGHT + TASK_ROWS - 1) / TASK_ROWS;
  const int block = task / bands, first = task % bands * TASK_ROWS;
  const unsigned char* from = block_start(block, inputs);
  const vec scale = load((const float*)constants[0] + block * LANES);
  const vec bias = load((const float*)constants[1] + block * LANES);
  NO_UNROLL for (int y = first; y < first + TASK_ROWS && y < OUT_HEIGHT; y++) {
    const int inside = y * STRIDE_Y >= PAD_TOP && y * STRIDE_Y - PAD_TOP + TAPS_Y <= IN_HEIGHT;
    unsigned char* to = (unsigned char*)output + ((long)block * OUT_HEIGHT + y) * OUT_WIDTH * LANES;
    NO_UNROLL for (int x = 0; x < OUT_WIDTH; x++, to += LANES) {
      if (inside && x * STRIDE_X >= PAD_LEFT && x * STRIDE_X - PAD_LEFT + TAPS_X <= IN_WIDTH) {
        store_bytes(to, pooled(from, y, x, 0, scale, bias, block_fill[block]));
      } else {
        store_bytes(to, pooled(from, y, x, 1, scale, bias, block_fill[block]));
      }
    }
  }
}
#endif
