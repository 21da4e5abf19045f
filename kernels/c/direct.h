/* k x k convolution with any stride and dilation, summed up by its definition.
 *
 * A register tile lies within one row of the output.  A tap that reads a row outside of the picture
 * is left out; in the first and the last tile of a row, each tap is done only for the pixels that
 * are inside, which is why the loop over its columns is unrolled there.  So no padded copy is
 * needed, unless the first or last tile is narrower than what the padding reaches: then PADDED says
 * that a phase before this one has made a copy (padded_copy.h), and there are no edges.
 *
 * A task is a part of the rows times a part of the output channels.
 *
 * Macros, beside those of channels.h:
 *   INPUT_HEIGHT, INPUT_WIDTH, OUTPUT_HEIGHT, OUTPUT_WIDTH
 *   KERNEL_HEIGHT, KERNEL_WIDTH, STRIDE_Y, STRIDE_X, DILATION_Y, DILATION_X, PAD_TOP, PAD_LEFT
 *   COLUMN_TILES, LARGER_COLUMN_TILES, TILE_COLUMNS    tiles of a row, see tile_start()
 *   ROW_PARTS, CHANNEL_PARTS                           tasks in each direction
 *   CHANNELS_OUTSIDE    whether the loop over output channels goes around that over rows
 *   RESIDUAL            the number of the input that is added, if there is one
 */
#include "channels.h"
#include "padded_copy.h"

/* The number of output columns at the row's begin, and at its end, that tap column j reads outside.
 */
KERNEL int columns_before(int j) {
  const int outside = PAD_LEFT - j * DILATION_X;
  return outside > 0 ? (outside + STRIDE_X - 1) / STRIDE_X : 0;
}

KERNEL int columns_after(int j) {
  const int inside = INPUT_WIDTH + PAD_LEFT - j * DILATION_X; /* in steps of one */
  const int columns = (inside + STRIDE_X - 1) / STRIDE_X;
  return columns < OUTPUT_WIDTH ? OUTPUT_WIDTH - columns : 0;
}

/* One tap, without the `before` first and `after` last columns of the tile. */
KERNEL void direct_tap(tile_sums sums, int columns, int vectors, int before, int after,
                       const void* const* inputs, tile_channels channels, int input_row, int column,
                       int i, int j) {
  const int input_column = (column + before) * STRIDE_X - PAD_LEFT + j * DILATION_X;
  channels_multiply(sums, before, columns - before - after, vectors, inputs, channels,
                    ((long)input_row * INPUT_WIDTH + input_column) * LANES, STRIDE_X * LANES,
                    i * KERNEL_WIDTH + j);
}

/* `first`, `last`: whether the tile is the first or the last of its row.  `residual` or null: what
 * is added to the output. */
KERNEL void direct_tile(const void* const* inputs, const void* const* constants, float* output,
                        const float* residual, int row, int column, int vector_tile, int columns,
                        int vectors, int first, int last) {
  const int vector = first_vector(vector_tile);
  const tile_channels channels = channels_of_tile(constants[0], vector_tile, vector);
  const long to = (((long)vector * OUTPUT_HEIGHT + row) * OUTPUT_WIDTH + column) * LANES;
  tile_sums sums;
  tile_begin(sums, columns, vectors, (const float*)constants[1] + vector * LANES);
  NO_UNROLL for (int i = 0; i < KERNEL_HEIGHT; i++) {
    const int input_row = row * STRIDE_Y - PAD_TOP + i * DILATION_Y;
    if (input_row < 0 || input_row >= INPUT_HEIGHT) continue;
    if (first || last) {
      UNROLL for (int j = 0; j < KERNEL_WIDTH; j++) {
        direct_tap(sums, columns, vectors, first ? columns_before(j) : 0,
                   last ? columns_after(j) : 0, inputs, channels, input_row, column, i, j);
      }
    } else {
      NO_UNROLL for (int j = 0; j < KERNEL_WIDTH; j++) {
        direct_tap(sums, columns, vectors, 0, 0, inputs, channels, input_row, column, i, j);
      }
    }
  }
  tile_end(sums, columns, vectors, output + to, (long)OUTPUT_HEIGHT * OUTPUT_WIDTH * LANES,
           residual ? residual + to : 0);
}

KERNEL void direct_row(const void* const* inputs, const void* const* constants, float* output,
                       const float* residual, int row, int vector_tile, int vectors) {
  /* The last tile is never a larger one, unless it is the first too. */
  const int one = COLUMN_TILES == 1;
  const int first_columns = LARGER_COLUMN_TILES ? TILE_COLUMNS + 1 : TILE_COLUMNS;
  direct_tile(inputs, constants, output, residual, row, 0, vector_tile, first_columns, vectors, 1,
              one);
  if (one) return;
  NO_UNROLL for (int tile = 1; tile < LARGER_COLUMN_TILES; tile++) {
    direct_tile(inputs, constants, output, residual, row, tile * (TILE_COLUMNS + 1), vector_tile,
                TILE_COLUMNS + 1, vectors, 0, 0);
  }
  NO_UNROLL for (int tile = LARGER_COLUMN_TILES ? LARGER_COLUMN_TILES : 1; tile < COLUMN_TILES - 1;
                 tile++) {
    direct_tile(inputs, constants, output, residual, row,
                tile_start(tile, LARGER_COLUMN_TILES, TILE_COLUMNS), vector_tile, TILE_COLUMNS,
                vectors, 0, 0);
  }
  direct_tile(inputs, constants, output, residual, row, OUTPUT_WIDTH - TILE_COLUMNS, vector_tile,
              TILE_COLUMNS, vectors, 0, 1);
}

KERNEL void direct(int task, const void* const* inputs, const void* const* constants, void* output,
                   void* shared, void* scratch) {
  (void)shared, (void)scratch;
#ifdef RESIDUAL
  const float* residual = inputs[RESIDUAL];
#else
  const float* residual = 0;
#endif
#ifdef PADDED
  const void* padded = shared;
  inputs = &padded;
#endif
  const int row_part = task % ROW_PARTS, channel_part = task / ROW_PARTS;
  const int first_row = part_start(row_part, ROW_PARTS, OUTPUT_HEIGHT);
  const int end_row = part_start(row_part + 1, ROW_PARTS, OUTPUT_HEIGHT);
  const int first_vectors = part_start(channel_part, CHANNEL_PARTS, VECTOR_TILES);
  const int end_vectors = part_start(channel_part + 1, CHANNEL_PARTS, VECTOR_TILES);
#if CHANNELS_OUTSIDE
  NO_UNROLL for (int v = first_vectors; v < end_vectors; v++) {
    NO_UNROLL for (int row = first_row; row < end_row; row++) {
#else
  NO_UNROLL for (int row = first_row; row < end_row; row++) {
    NO_UNROLL for (int v = first_vectors; v < end_vectors; v++) {
#endif
      if (has_more_vectors(v))
        direct_row(inputs, constants, output, residual, row, v, TILE_VECTORS + 1);
      else
        direct_row(inputs, constants, output, residual, row, v, TILE_VECTORS);
    }
  }
}
