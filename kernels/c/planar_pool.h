/* A maximum pooling of what f32-conv-planar.c.in computes, a few rows at a time: with MAX_POOL,
 * rows of the convolution lie in a ring of POOL_TAPS_Y rows and never in the layer's output.
 *
 * Macros: OUTPUT_HEIGHT, OUTPUT_WIDTH, of the convolution; POOL_HEIGHT, POOL_WIDTH, of the result;
 * POOL_TAPS_Y, POOL_TAPS_X, POOL_STRIDE_Y, POOL_STRIDE_X, POOL_PAD_TOP, POOL_PAD_LEFT.
 */
#ifndef RUN_MODEL_KERNELS_PLANAR_POOL_H_
#define RUN_MODEL_KERNELS_PLANAR_POOL_H_

#include "tile.h"

#define POOL_LINE (OUTPUT_WIDTH * LANES)

/* The rows of the convolution that row `y` of the result needs: from the first to before the end.
 */
KERNEL int pool_first_row(int y) {
  const int row = y * POOL_STRIDE_Y - POOL_PAD_TOP;
  return row < 0 ? 0 : row;
}

KERNEL int pool_end_row(int y) {
  const int row = y * POOL_STRIDE_Y - POOL_PAD_TOP + POOL_TAPS_Y;
  return row < OUTPUT_HEIGHT ? row : OUTPUT_HEIGHT;
}

/* The maximum of the columns from `left` on.  A window that begins or ends outside of the picture,
 * which it touches, has the first or the last column in it: that may count several times. */
KERNEL stored_vec pool_columns(const number* line, int left, int checked) {
  stored_vec most;
  UNROLL for (int i = 0; i < POOL_TAPS_X; i++) {
    int column = left + i;
    if (checked && column < 0) column = 0;
    if (checked && column >= OUTPUT_WIDTH) column = OUTPUT_WIDTH - 1;
    const stored_vec value = load_stored(line + column * LANES);
    most = i == 0 ? value : stored_maximum(most, value);
  }
  return most;
}

/* Row `y` of one vector of the result, of the vector's ring, [row % POOL_TAPS_Y][column][lane].
 * `line`, a row, is scratch: what the rows have in common is compared once. */
KERNEL void pool_row(const number* ring, number* line, int y, number* out) {
  const int first = pool_first_row(y), end = pool_end_row(y);
  const number* rows[POOL_TAPS_Y];
  UNROLL for (int i = 0; i < POOL_TAPS_Y; i++) {
    rows[i] = ring + (long)((first + i < end ? first + i : first) % POOL_TAPS_Y) * POOL_LINE;
  }
  NO_UNROLL for (int x = 0; x < OUTPUT_WIDTH; x++) {
    stored_vec most = load_stored(rows[0] + x * LANES);
    UNROLL for (int i = 1; i < POOL_TAPS_Y; i++) {
      most = stored_maximum(most, load_stored(rows[i] + x * LANES));
    }
    store_stored(line + x * LANES, most);
  }
  NO_UNROLL for (int x = 0; x < POOL_WIDTH; x++) {
    const int left = x * POOL_STRIDE_X - POOL_PAD_LEFT;
    if (left >= 0 && left + POOL_TAPS_X <= OUTPUT_WIDTH)
      store_stored(out + x * LANES, pool_columns(line, left, 0));
    else
      store_stored(out + x * LANES, pool_columns(line, left, 1));
  }
}

#endif /* RUN_MODEL_KERNELS_PLANAR_POOL_H_ */
