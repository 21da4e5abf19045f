/* One output row of a depthwise convolution, COLUMNS columns at a time.
 *
 * Every vector of an input row that a group of columns needs is loaded once and goes to all the
 * sums that want it, so a 3x3 takes 3 * (COLUMNS + 2) loads for 9 * COLUMNS multiply-adds.
 * Register budget:
 *
 *   COLUMNS sums + TAPS_X weights of a kernel row + 1 or 2 inputs, or, with RESIDENT_WEIGHTS,
 *   COLUMNS sums + TAPS_Y * TAPS_X weights + 1 or 2 inputs (8 + 9 + 2 of AVX-512's and NEON's 32).
 *
 * There is no padded copy: the first and the last group of a row know their place when they are
 * compiled, so taps that fall outside are never written as code; the groups between them touch
 * neither edge.  Rows of the picture's upper and lower edge get fewer rows of taps.
 *
 * The layer defines TAPS_Y, TAPS_X, STRIDE_X, DILATION_X, PAD_LEFT, IN_WIDTH, OUT_WIDTH, COLUMNS
 * and RESIDENT_WEIGHTS, and promises that
 *   COLUMNS <= OUT_WIDTH; no column from COLUMNS on needs an input left of the picture and none
 *   before OUT_WIDTH - COLUMNS one right of it; and if there are groups between the first and the
 *   last, MIDDLE_LAST, where the last of them begins, is not a column of the left edge either.
 */
#ifndef RUN_MODEL_KERNELS_DEPTHWISE_ROW_H_
#define RUN_MODEL_KERNELS_DEPTHWISE_ROW_H_

#include "epilogue.h"

#define WINDOW_TAPS (TAPS_Y * TAPS_X)
/* Of a block's weights, in numbers: [TAPS_Y][TAPS_X][LANES], then as float32 the bias and what
 * epilogue.h has by channel. */
#define BLOCK_WEIGHTS ((WINDOW_TAPS + CHANNEL_FLOATS * sizeof(float) / sizeof(number)) * LANES)
#define COLUMNS_SPAN ((COLUMNS - 1) * STRIDE_X + (TAPS_X - 1) * DILATION_X + 1)
#define MIDDLE_LAST (OUT_WIDTH - 2 * COLUMNS)

/* Layers with several epilogues say here which. */
#ifdef HALF
#define DEPTHWISE_STORE store_run
#else
#ifndef DEPTHWISE_FINISHED
#define DEPTHWISE_FINISHED finished
#endif
#define DEPTHWISE_STORE(to, sum, residual, channel) \
  store(to, DEPTHWISE_FINISHED(sum, residual, channel))
#endif

#if RESIDENT_WEIGHTS
#define WEIGHTS_IN_REGISTERS WINDOW_TAPS
#else
#define WEIGHTS_IN_REGISTERS 1
#endif

/* Adds one row of taps to the sums of output columns x to x + COLUMNS. */
KERNEL void depthwise_tap_row(stored_vec* sums, const number* row, const stored_vec* weights, int x,
                              int checked) {
  UNROLL for (int i = 0; i < COLUMNS_SPAN; i++) {
    int column = x * STRIDE_X - PAD_LEFT + i;
    if (checked && (column < 0 || column >= IN_WIDTH)) continue;
    stored_vec input = load_stored(row + column * LANES);
    UNROLL for (int c = 0; c < COLUMNS; c++) {
      int offset = i - c * STRIDE_X;
      if (offset >= 0 && offset % DILATION_X == 0 && offset / DILATION_X < TAPS_X) {
        sums[c] += input * weights[offset / DILATION_X];
      }
    }
  }
}

/* Output columns x to x + COLUMNS of the row `out` (and `residual`, if there is one) from the input
 * rows rows[first] to rows[last - 1], one for each row of taps. */
KERNEL void depthwise_columns(const number* const* rows, int first, int last, const number* weights,
                              const stored_vec* resident, number* out, const number* residual,
                              int x, int checked) {
  const float* channel = (const float*)(weights + WINDOW_TAPS * LANES);
  stored_vec sums[COLUMNS];
  stored_vec bias = to_stored(load(channel));
  UNROLL for (int c = 0; c < COLUMNS; c++) sums[c] = bias;
  if (RESIDENT_WEIGHTS && first == 0 && last == TAPS_Y) {
    UNROLL for (int t = 0; t < TAPS_Y; t++) {
      depthwise_tap_row(sums, rows[t], resident + t * TAPS_X * RESIDENT_WEIGHTS, x, checked);
    }
  } else {
    NO_UNROLL for (int t = first; t < last; t++) {
      stored_vec row_weights[TAPS_X];
      UNROLL for (int i = 0; i < TAPS_X; i++) {
        row_weights[i] = load_stored(weights + (t * TAPS_X + i) * LANES);
      }
      depthwise_tap_row(sums, rows[t], row_weights, x, checked);
    }
  }
  UNROLL for (int c = 0; c < COLUMNS; c++) {
    const number* other = residual ? residual + (x + c) * LANES : 0;
    DEPTHWISE_STORE(out + (x + c) * LANES, sums[c], other, channel);
  }
}

/* A block's weights, as depthwise_row wants them. */
KERNEL void depthwise_resident(stored_vec* resident, const number* weights) {
  UNROLL for (int t = 0; t < WEIGHTS_IN_REGISTERS; t++) resident[t] =
      load_stored(weights + t * LANES);
}

KERNEL void depthwise_groups(const number* const* rows, int first, int last, const number* weights,
                             const stored_vec* resident, number* out, const number* residual) {
  depthwise_columns(rows, first, last, weights, resident, out, residual, 0, 1);
  if (MIDDLE_LAST > 0) {
    NO_UNROLL for (int x = COLUMNS; x < OUT_WIDTH - COLUMNS; x += COLUMNS) {
      /* The last group between may begin early and make some columns twice. */
      int begin = x < MIDDLE_LAST ? x : MIDDLE_LAST;
      depthwise_columns(rows, first, last, weights, resident, out, residual, begin, 0);
    }
  }
  if (OUT_WIDTH > COLUMNS) {
    depthwise_columns(rows, first, last, weights, resident, out, residual, OUT_WIDTH - COLUMNS, 1);
  }
}

/* A whole row.  Rows with all taps, which most are, get their own code. */
KERNEL void depthwise_row(const number* const* rows, int first, int last, const number* weights,
                          const stored_vec* resident, number* out, const number* residual) {
  if (RESIDENT_WEIGHTS && first == 0 && last == TAPS_Y) {
    depthwise_groups(rows, 0, TAPS_Y, weights, resident, out, residual);
  } else {
    depthwise_groups(rows, first, last, weights, resident, out, residual);
  }
}

#endif /* RUN_MODEL_KERNELS_DEPTHWISE_ROW_H_ */
