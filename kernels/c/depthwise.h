/* Depthwise convolution: every channel by itself, so every block by itself.
 *
 * A unit of work is a strip of rows of one block, a task an equal part of the units, which lie in
 * the order of strips: where threads also cut the layers before and after by rows, each finds the
 * rows it made in its own cache.
 *
 * Beside depthwise_row.h's macros: BLOCKS; BLOCK_TENSOR and BLOCK_INDEX, braced lists of which
 * input tensor and which block of it each block reads; IN_HEIGHT, OUT_HEIGHT, STRIDE_Y, DILATION_Y,
 * PAD_TOP; STRIPS; TASKS; RESIDUAL, the input to add, if there is one.  With PLAIN every pixel
 * looks for its taps itself, for kernels so wide, or pictures so narrow, that there is no telling
 * edges from the middle.
 */
#ifndef RUN_MODEL_KERNELS_DEPTHWISE_H_
#define RUN_MODEL_KERNELS_DEPTHWISE_H_

#include "window.h"

#ifndef PLAIN
#include "depthwise_row.h"
#else
#define BLOCK_WEIGHTS ((TAPS_Y * TAPS_X + 1) * LANES)
#endif

#ifdef PLAIN
KERNEL void depthwise_plain_row(const float* const* rows, int first, int last, const float* weights,
                                float* out, const float* residual) {
  NO_UNROLL for (int x = 0; x < OUT_WIDTH; x++) {
    vec sum = load(weights + TAPS_Y * TAPS_X * LANES);
    int left = first_tap(x, STRIDE_X, DILATION_X, PAD_LEFT);
    int right = end_tap(x, STRIDE_X, DILATION_X, PAD_LEFT, IN_WIDTH, TAPS_X);
    NO_UNROLL for (int t = first; t < last; t++) {
      NO_UNROLL for (int i = left; i < right; i++) {
        sum += load(rows[t] + (x * STRIDE_X - PAD_LEFT + i * DILATION_X) * LANES) *
               load(weights + (t * TAPS_X + i) * LANES);
      }
    }
    if (residual) sum += load(residual + x * LANES);
    store(out + x * LANES, clamped(sum));
  }
}
#endif

KERNEL void depthwise_strip(const float* plane, const float* weights, float* out,
                            const float* residual, int y_begin, int y_end) {
#ifndef PLAIN
  vec resident[WEIGHTS_IN_REGISTERS];
  depthwise_resident(resident, weights);
#endif
  NO_UNROLL for (int y = y_begin; y < y_end; y++) {
    int first = first_tap(y, STRIDE_Y, DILATION_Y, PAD_TOP);
    int last = end_tap(y, STRIDE_Y, DILATION_Y, PAD_TOP, IN_HEIGHT, TAPS_Y);
    const float* rows[TAPS_Y];
    UNROLL for (int t = 0; t < TAPS_Y; t++) {
      /* Of rows outside only those between `first` and `last` are read; none is pointed to. */
      int row = y * STRIDE_Y - PAD_TOP + t * DILATION_Y;
      rows[t] = plane + (t < first || t >= last ? 0 : (long)row * IN_WIDTH * LANES);
    }
    float* to = out + (long)y * OUT_WIDTH * LANES;
    const float* add = residual ? residual + (long)y * OUT_WIDTH * LANES : 0;
#ifdef PLAIN
    depthwise_plain_row(rows, first, last, weights, to, add);
#else
    depthwise_row(rows, first, last, weights, resident, to, add);
#endif
  }
}

KERNEL void depthwise(int task, const void* const* inputs, const void* const* constants,
                      void* output, void* shared, void* scratch) {
  static const int tensors[BLOCKS] = BLOCK_TENSOR;
  static const int indices[BLOCKS] = BLOCK_INDEX;
  (void)shared, (void)scratch;
  const long out_plane = (long)OUT_HEIGHT * OUT_WIDTH * LANES;
  NO_UNROLL for (int unit = part_start(task, TASKS, STRIPS * BLOCKS);
                 unit < part_start(task + 1, TASKS, STRIPS * BLOCKS); unit++) {
    int strip = unit / BLOCKS, block = unit % BLOCKS;
    const float* plane =
        (const float*)inputs[tensors[block]] + (long)indices[block] * IN_HEIGHT * IN_WIDTH * LANES;
#ifdef RESIDUAL
    const float* residual = (const float*)inputs[RESIDUAL] + block * out_plane;
#else
    const float* residual = 0;
#endif
    depthwise_strip(plane, (const float*)constants[0] + (long)block * BLOCK_WEIGHTS,
                    (float*)output + block * out_plane, residual,
                    part_start(strip, STRIPS, OUT_HEIGHT),
                    part_start(strip + 1, STRIPS, OUT_HEIGHT));
  }
}

#endif /* RUN_MODEL_KERNELS_DEPTHWISE_H_ */
