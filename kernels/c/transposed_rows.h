/* Rows whose numbers lie apart, beside those of the next rows: put one after the other. */
#ifndef RUN_MODEL_KERNELS_TRANSPOSED_ROWS_H_
#define RUN_MODEL_KERNELS_TRANSPOSED_ROWS_H_

#include "reductions.h"
#include "transpose.h"

/* `rows` that begin at from, from + 1 and so on.  Each has `groups` of `columns` numbers, which are
 * `stride` apart, the groups `group_stride`.  Each goes to a row of `to`, which are `to_stride`
 * apart.
 */
KERNEL void transposed_rows(const float* from, float* to, long to_stride, int rows, int groups,
                            long group_stride, int columns, long stride) {
  NO_UNROLL for (int group = 0; group < groups; group++) {
    NO_UNROLL for (int column = 0; column < columns; column += LANES) {
      const float* source = from + group * group_stride + column * stride;
      float* target = to + (long)group * columns + column;
      const int wide = columns - column < LANES ? columns - column : LANES;
      NO_UNROLL for (int row = 0; row < rows; row += LANES) {
        const int high = rows - row < LANES ? rows - row : LANES;
        vec square[LANES];
        if (wide == LANES && high == LANES) {
          UNROLL for (int i = 0; i < LANES; i++) square[i] = load_floats(source + row + i * stride);
          transpose(square);
          UNROLL for (int i = 0; i < LANES; i++) {
            store_floats(target + (row + i) * to_stride, square[i]);
          }
        } else {
          UNROLL for (int i = 0; i < LANES; i++) {
            square[i] = i < wide ? load_some(source + row + i * stride, high) : (vec){0};
          }
          transpose(square);
          UNROLL for (int i = 0; i < LANES; i++) {
            if (i < high) store_some(target + (row + i) * to_stride, square[i], wide);
          }
        }
      }
    }
  }
}

#endif /* RUN_MODEL_KERNELS_TRANSPOSED_ROWS_H_ */
