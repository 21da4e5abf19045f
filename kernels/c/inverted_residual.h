/* 1 x 1 convolution, depthwise convolution, 1 x 1 convolution, as one layer: the many channels
 * between them never go to memory.  The first of the three may be missing.
 *
 * A task is a part of the output's rows.  For a tile of expanded channels after the other it makes
 * GROUP_ROWS rows of the expanded picture, in a ring of RING_ROWS rows that fits the first-level
 * cache, and from them all rows of the depthwise convolution that have become possible.  These it
 * keeps for all channels, in scratch memory that fits the second-level cache, and at last
 * multiplies them with the last convolution's weights.  Tasks next to each other both make the
 * expanded rows around their border.
 *
 * What of a group of rows, or of a task's pixels, is too short for a register tile is made by a
 * tile that begins early and makes some pixels twice.
 *
 * Beside the macros of depthwise_row.h (with IN_HEIGHT, OUT_HEIGHT, STRIDE_Y, PAD_TOP; dilation 1):
 *   BLOCKS         of the expanded channels
 *   PARTS          tasks; PART_ROWS, the most rows of one
 *   EXPAND_LOW, EXPAND_HIGH, DEPTHWISE_LOW, ..., PROJECT_LOW, ...    bounds, maybe infinite
 *   EXPAND         the number of its constant, if there is a first convolution; then channels.h's
 *                  macros, EXPAND_PIXELS and EXPAND_VECTORS, a register tile, GROUP_ROWS, and
 *                  RING_ROWS, a multiple of it; else BLOCK_TENSOR and BLOCK_INDEX as in depthwise.h
 *   PROJECT        the number of the last convolution's constant; PROJECT_PIXELS and
 *                  PROJECT_VECTORS, a register tile, PROJECT_TILES, how many of its width;
 *                  PROJECT_HALF, if the last vector has only half its lanes in use; RESIDUAL as in
 *                  depthwise.h
 * A 1 x 1 convolution's constant is for each tile of output channels the bias and then the weights
 * [input channel][output channel]; constant 0 is the depthwise convolution's.
 */
#ifndef RUN_MODEL_KERNELS_INVERTED_RESIDUAL_H_
#define RUN_MODEL_KERNELS_INVERTED_RESIDUAL_H_

#include "half_tile.h"
#include "window.h"

KERNEL vec bounded(vec value, float low, float high) {
  if (low > -__builtin_inff()) value = maximum(value, splat(low));
  if (high < __builtin_inff()) value = minimum(value, splat(high));
  return value;
}

#define DEPTHWISE_CLAMPED(value) bounded(value, DEPTHWISE_LOW, DEPTHWISE_HIGH)
#include "depthwise_row.h"

#define IN_LINE (IN_WIDTH * LANES)
#define OUT_LINE (OUT_WIDTH * LANES)

KERNEL int smaller(int a, int b) { return a < b ? a : b; }

#ifdef EXPAND
#include "channels.h"

#define RING (RING_ROWS * IN_LINE)

/* Makes `rows` rows of the expanded picture from `row` on, for a tile of channels: `to` is where
 * the first of them goes, RING floats from one vector of channels to the next. */
KERNEL void expand_rows(const void* const* inputs, const void* const* constants, int tile, int row,
                        int rows, float* to) {
  const float* bias =
      (const float*)constants[EXPAND] + (long)tile * (DEPTH + 1) * EXPAND_VECTORS * LANES;
  const tile_channels channels = {0, RUNS, DEPTH, bias + EXPAND_VECTORS * LANES};
  NO_UNROLL for (int p = 0; p < rows * IN_WIDTH; p += EXPAND_PIXELS) {
    int pixel = smaller(p, rows * IN_WIDTH - EXPAND_PIXELS);
    tile_sums sums;
    tile_begin(sums, EXPAND_PIXELS, EXPAND_VECTORS, bias);
    channels_multiply(sums, 0, EXPAND_PIXELS, EXPAND_VECTORS, inputs, channels,
                      (long)(row * IN_WIDTH + pixel) * LANES, LANES, 0);
    UNROLL for (int v = 0; v < EXPAND_VECTORS; v++) {
      UNROLL for (int i = 0; i < EXPAND_PIXELS; i++) {
        store(to + v * RING + (pixel + i) * LANES, bounded(sums[i][v], EXPAND_LOW, EXPAND_HIGH));
      }
    }
  }
}
#endif

/* Rows y_begin to y_end of the depthwise convolution of one block: `out` is where the first goes.
 * Row r of the block is at rows + r % ring_rows lines, counted from `origin`. */
KERNEL void depthwise_rows(const float* rows, int origin, int ring_rows, const float* weights,
                           float* out, int y_begin, int y_end) {
  vec resident[WEIGHTS_IN_REGISTERS];
  depthwise_resident(resident, weights);
  NO_UNROLL for (int y = y_begin; y < y_end; y++) {
    int first = first_tap(y, STRIDE_Y, 1, PAD_TOP);
    int last = end_tap(y, STRIDE_Y, 1, PAD_TOP, IN_HEIGHT, TAPS_Y);
    const float* taps[TAPS_Y];
    UNROLL for (int t = 0; t < TAPS_Y; t++) {
      int row = y * STRIDE_Y - PAD_TOP + t - origin;
      taps[t] = rows + (t < first || t >= last ? 0 : (long)(row % ring_rows) * IN_LINE);
    }
    depthwise_row(taps, first, last, weights, resident, out + (long)(y - y_begin) * OUT_LINE, 0);
  }
}

/* Rows y_begin to y_end of the depthwise convolution of all blocks, to `out`
 * [block][row][column][lane]. `lines` is the ring. */
KERNEL void depthwise_blocks(const void* const* inputs, const void* const* constants, int y_begin,
                             int y_end, float* out, float* lines) {
  const float* weights = (const float*)constants[0];
  const long block_floats = (long)(y_end - y_begin) * OUT_LINE;
#ifdef EXPAND
  const int top = y_begin * STRIDE_Y - PAD_TOP > 0 ? y_begin * STRIDE_Y - PAD_TOP : 0;
  const int bottom = smaller(IN_HEIGHT, (y_end - 1) * STRIDE_Y - PAD_TOP + TAPS_Y);
  NO_UNROLL for (int tile = 0; tile < BLOCKS / EXPAND_VECTORS; tile++) {
    int y = y_begin;
    NO_UNROLL for (int row = top; row < bottom; row += GROUP_ROWS) {
      int next = smaller(row + GROUP_ROWS, bottom);
      expand_rows(inputs, constants, tile, row, next - row,
                  lines + (long)((row - top) % RING_ROWS) * IN_LINE);
      int possible = next + PAD_TOP < TAPS_Y ? 0 : (next + PAD_TOP - TAPS_Y) / STRIDE_Y + 1;
      int ready = next == bottom ? y_end : possible;
      if (ready <= y) continue;
      NO_UNROLL for (int v = 0; v < EXPAND_VECTORS; v++) {
        int block = tile * EXPAND_VECTORS + v;
        depthwise_rows(lines + v * RING, top, RING_ROWS, weights + (long)block * BLOCK_WEIGHTS,
                       out + block * block_floats + (long)(y - y_begin) * OUT_LINE, y, ready);
      }
      y = ready;
    }
  }
#else
  static const int tensors[BLOCKS] = BLOCK_TENSOR;
  static const int indices[BLOCKS] = BLOCK_INDEX;
  (void)lines;
  NO_UNROLL for (int block = 0; block < BLOCKS; block++) {
    const float* plane =
        (const float*)inputs[tensors[block]] + (long)indices[block] * IN_HEIGHT * IN_LINE;
    depthwise_rows(plane, 0, IN_HEIGHT, weights + (long)block * BLOCK_WEIGHTS,
                   out + block * block_floats, y_begin, y_end);
  }
#endif
}

/* The last convolution of `pixels` pixels, from `between` [block][pixel][lane] to `out`. */
KERNEL void project(const float* between, int pixels, const void* const* constants, float* out,
                    const float* residual) {
  const long depth = BLOCKS * LANES, out_block = (long)OUT_HEIGHT * OUT_LINE;
  const int whole = PROJECT_VECTORS - PROJECT_HALF;
  NO_UNROLL for (int tile = 0; tile < PROJECT_TILES; tile++) {
    const float* bias =
        (const float*)constants[PROJECT] + tile * (depth + 1) * PROJECT_VECTORS * LANES;
    NO_UNROLL for (int p = 0; p < pixels; p += PROJECT_PIXELS) {
      const int pixel = smaller(p, pixels - PROJECT_PIXELS);
      const float* weights = bias + PROJECT_VECTORS * LANES;
      tile_sums sums;
      half_vec halves[PROJECT_PIXELS];
      tile_begin(sums, PROJECT_PIXELS, whole, bias);
      UNROLL for (int i = 0; i < PROJECT_PIXELS * PROJECT_HALF; i++) {
        halves[i] = load_half(bias + whole * LANES);
      }
      NO_UNROLL for (int block = 0; block < BLOCKS; block++) {
        const float* from = between + ((long)block * pixels + pixel) * LANES;
        if (PROJECT_HALF) {
          half_tile_multiply(sums, halves, PROJECT_PIXELS, PROJECT_VECTORS, from, LANES, weights,
                             LANES);
        } else {
          tile_multiply(sums, 0, PROJECT_PIXELS, PROJECT_VECTORS, from, LANES, weights, LANES);
        }
        weights += LANES * PROJECT_VECTORS * LANES;
      }
      UNROLL for (int v = 0; v < PROJECT_VECTORS; v++) {
        const long to = (tile * PROJECT_VECTORS + v) * out_block + (long)pixel * LANES;
        UNROLL for (int i = 0; i < PROJECT_PIXELS; i++) {
          vec sum = v < whole ? sums[i][v] : widened(halves[i]);
          if (residual) sum += load(residual + to + i * LANES);
          store(out + to + i * LANES, bounded(sum, PROJECT_LOW, PROJECT_HIGH));
        }
      }
    }
  }
}
KERNEL void inverted_residual(int task, const void* const* inputs, const void* const* constants,
                              void* output, void* shared, void* scratch) {
  (void)shared;
  const int y_begin = part_start(task, PARTS, OUT_HEIGHT);
  const int y_end = part_start(task + 1, PARTS, OUT_HEIGHT);
  const long before = (long)y_begin * OUT_LINE;
  float* between = (float*)scratch;
#ifdef RESIDUAL
  const float* residual = (const float*)inputs[RESIDUAL] + before;
#else
  const float* residual = 0;
#endif
  depthwise_blocks(inputs, constants, y_begin, y_end, between,
                   between + (long)BLOCKS * PART_ROWS * OUT_LINE);
  project(between, (y_end - y_begin) * OUT_WIDTH, constants, (float*)output + before, residual);
}

#endif /* RUN_MODEL_KERNELS_INVERTED_RESIDUAL_H_ */
