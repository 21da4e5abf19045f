/* Maximum and average pooling of blocks; each output block reads one input block.
 *
 * As in depthwise_row.h, COLUMNS output columns are computed at once, so that every vector of an
 * input row is loaded once for all of them (registers: COLUMNS results, 1 or 2 inputs); the first
 * and the last group of a row know their place when compiled and leave out what is outside; a unit
 * of work is a strip of rows of a block and a task an equal part of all units in the order of
 * strips.
 *
 * The layer defines MAXIMUM or AVERAGE; BLOCKS, BLOCK_TENSOR, BLOCK_INDEX (which input tensor and
 * which of its blocks an output block reads); TAPS_Y, TAPS_X, STRIDE_*, DILATION_*, PAD_TOP,
 * PAD_LEFT; IN_HEIGHT, IN_WIDTH, OUT_HEIGHT, OUT_WIDTH; COLUMNS, under depthwise_row.h's
 * conditions, or 1 and PLAIN; COUNT_PADDING, if an average is of all taps, those outside being
 * zeros; STRIPS and TASKS.
 */
#ifndef RUN_MODEL_KERNELS_POOLING_H_
#define RUN_MODEL_KERNELS_POOLING_H_

#include "window.h"

#define COLUMNS_SPAN ((COLUMNS - 1) * STRIDE_X + (TAPS_X - 1) * DILATION_X + 1)
#define MIDDLE_LAST (OUT_WIDTH - 2 * COLUMNS)

KERNEL vec pooled(vec result, vec input) {
#ifdef MAXIMUM
  return maximum(result, input);
#else
  return result + input;
#endif
}

KERNEL vec pooling_start(void) {
#ifdef MAXIMUM
  return splat(-__builtin_inff());
#else
  return (vec){0};
#endif
}

/* The result for column x from that of `tap_rows` rows of taps. */
KERNEL vec pooling_result(vec result, int x, int tap_rows) {
#ifdef AVERAGE
#ifdef COUNT_PADDING
  (void)x, (void)tap_rows;
  return result * splat(1.0f / (TAPS_Y * TAPS_X));
#else
  int taps = end_tap(x, STRIDE_X, DILATION_X, PAD_LEFT, IN_WIDTH, TAPS_X) -
             first_tap(x, STRIDE_X, DILATION_X, PAD_LEFT);
  return result * splat(1.0f / (float)(tap_rows * taps));
#endif
#else
  (void)x, (void)tap_rows;
  return result;
#endif
}

#ifdef PLAIN
KERNEL void pooling_row(const float* plane, int top, int first, int last, float* out) {
  NO_UNROLL for (int x = 0; x < OUT_WIDTH; x++) {
    vec result = pooling_start();
    int left = first_tap(x, STRIDE_X, DILATION_X, PAD_LEFT);
    int right = end_tap(x, STRIDE_X, DILATION_X, PAD_LEFT, IN_WIDTH, TAPS_X);
    NO_UNROLL for (int t = first; t < last; t++) {
      const float* row = plane + (long)(top + t * DILATION_Y) * IN_WIDTH * LANES;
      NO_UNROLL for (int i = left; i < right; i++) {
        result = pooled(result, load(row + (x * STRIDE_X - PAD_LEFT + i * DILATION_X) * LANES));
      }
    }
    store(out + x * LANES, pooling_result(result, x, last - first));
  }
}
#else
KERNEL void pooling_columns(const float* plane, int top, int first, int last, float* out, int x,
                            int checked) {
  vec results[COLUMNS];
  UNROLL for (int c = 0; c < COLUMNS; c++) results[c] = pooling_start();
  NO_UNROLL for (int t = first; t < last; t++) {
    const float* row = plane + (long)(top + t * DILATION_Y) * IN_WIDTH * LANES;
    UNROLL for (int i = 0; i < COLUMNS_SPAN; i++) {
      int column = x * STRIDE_X - PAD_LEFT + i;
      if (checked && (column < 0 || column >= IN_WIDTH)) continue;
      vec input = load(row + column * LANES);
      UNROLL for (int c = 0; c < COLUMNS; c++) {
        int offset = i - c * STRIDE_X;
        if (offset >= 0 && offset % DILATION_X == 0 && offset / DILATION_X < TAPS_X) {
          results[c] = pooled(results[c], input);
        }
      }
    }
  }
  UNROLL for (int c = 0; c < COLUMNS; c++) {
    /* Columns that are not checked have all their taps, as column COLUMNS has. */
    store(out + (x + c) * LANES,
          pooling_result(results[c], checked ? x + c : COLUMNS, last - first));
  }
}

KERNEL void pooling_row(const float* plane, int top, int first, int last, float* out) {
  pooling_columns(plane, top, first, last, out, 0, 1);
  if (MIDDLE_LAST > 0) {
    NO_UNROLL for (int x = COLUMNS; x < OUT_WIDTH - COLUMNS; x += COLUMNS) {
      pooling_columns(plane, top, first, last, out, x < MIDDLE_LAST ? x : MIDDLE_LAST, 0);
    }
  }
  if (OUT_WIDTH > COLUMNS) {
    pooling_columns(plane, top, first, last, out, OUT_WIDTH - COLUMNS, 1);
  }
}
#endif

KERNEL void pooling(int task, const void* const* inputs, const void* const* constants, void* output,
                    void* shared, void* scratch) {
  static const int tensors[BLOCKS] = BLOCK_TENSOR;
  static const int indices[BLOCKS] = BLOCK_INDEX;
  (void)constants, (void)shared, (void)scratch;
  NO_UNROLL for (int unit = part_start(task, TASKS, STRIPS * BLOCKS);
                 unit < part_start(task + 1, TASKS, STRIPS * BLOCKS); unit++) {
    int strip = unit / BLOCKS, block = unit % BLOCKS;
    const float* plane =
        (const float*)inputs[tensors[block]] + (long)indices[block] * IN_HEIGHT * IN_WIDTH * LANES;
    float* out = (float*)output + (long)block * OUT_HEIGHT * OUT_WIDTH * LANES;
    NO_UNROLL for (int y = part_start(strip, STRIPS, OUT_HEIGHT);
                   y < part_start(strip + 1, STRIPS, OUT_HEIGHT); y++) {
      int first = first_tap(y, STRIDE_Y, DILATION_Y, PAD_TOP);
      int last = end_tap(y, STRIDE_Y, DILATION_Y, PAD_TOP, IN_HEIGHT, TAPS_Y);
      pooling_row(plane, y * STRIDE_Y - PAD_TOP, first, last, out + (long)y * OUT_WIDTH * LANES);
    }
  }
}

#endif /* RUN_MODEL_KERNELS_POOLING_H_ */
