/* k x k convolution of a planar picture, [channel][row][column], the first layer of a network.
 *
 * What is summed up over a row of the kernel lies in successive floats of a row of the picture, as
 * the channels do in a block elsewhere; so a step of the register tile is one tap of one plane, and
 * two neighbouring pixels are STRIDE_X floats apart.  Where there is padding, a task first copies
 * the rows it needs, with their zeros, to its scratch memory: (STRIDE_Y x rows + k) rows, little
 * beside what is then done with them.
 *
 * A task is a part of the rows.  Weights: [tile][plane][tap][output channel].
 *
 * Macros: PLANES; and as in direct.h INPUT_*, OUTPUT_*, KERNEL_*, STRIDE_*, DILATION_*, PAD_*,
 * column and vector tiles, ROW_PARTS, RESIDUAL; PADDED_WIDTH, if there is padding: floats in a row
 * of the copy, and PADDED_ROWS, the rows of a plane in the copy; LAST_HALF, if there is one tile of
 * vectors, whose last vector has outputs in its first half only.
 */
#include "tile.h"
#ifdef LAST_HALF
#include "half_tile.h"
#endif

#ifdef PADDED_WIDTH
#define PATCH_WIDTH PADDED_WIDTH
#else
#define PATCH_WIDTH INPUT_WIDTH
#endif

/* Rows first ... first + PADDED_ROWS of every plane, in the rows and columns of the padded picture.
 */
KERNEL void planar_patch(float* patch, const float* picture, int first, int rows) {
#ifdef PADDED_WIDTH
  for (int plane = 0; plane < PLANES; plane++) {
    for (int y = 0; y < rows; y++) {
      const int row = first + y - PAD_TOP;
      float* to = patch + ((long)plane * PADDED_ROWS + y) * PADDED_WIDTH;
      if (row < 0 || row >= INPUT_HEIGHT) {
        for (int x = 0; x < PADDED_WIDTH; x++) to[x] = 0;
        continue;
      }
      const float* from = picture + ((long)plane * INPUT_HEIGHT + row) * INPUT_WIDTH;
      const int inside =
          INPUT_WIDTH < PADDED_WIDTH - PAD_LEFT ? INPUT_WIDTH : PADDED_WIDTH - PAD_LEFT;
      for (int x = 0; x < PAD_LEFT; x++) to[x] = 0;
      for (int x = 0; x < inside; x++) to[PAD_LEFT + x] = from[x];
      for (int x = PAD_LEFT + inside; x < PADDED_WIDTH; x++) to[x] = 0;
    }
  }
#else
  (void)patch, (void)picture, (void)first, (void)rows;
#endif
}

/* Whether the pixels a tile reads of a row are loaded as vectors, each once, to multiply by their
 * lanes. */
#if defined(MULTIPLIES_BY_LANE) && DILATION_X == 1
#define ROW_SPAN(columns) (((columns) - 1) * STRIDE_X + KERNEL_WIDTH)
#define MOST_ROW_VECTORS 8

/* The products of one row of the kernel with one row of the picture, as tile_multiply(). */
KERNEL void planar_multiply_row(tile_sums sums, int columns, int vectors, const float* input,
                                const float* weights) {
  const int span = ROW_SPAN(columns), full = span / 4;
  vec a[MOST_ROW_VECTORS];
  UNROLL for (int i = 0; i < full; i++) a[i] = load(input + 4 * i);
  /* The last vector overlaps the one before it, lest it reach over the end of the row. */
  if (span % 4) a[full] = load(input + span - 4);
  UNROLL for (int j = 0; j < KERNEL_WIDTH; j++) {
    vec w[MOST_TILE_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) w[v] = load(weights + (j * vectors + v) * LANES);
    UNROLL for (int p = 0; p < columns; p++) {
      const int at = p * STRIDE_X + j;
      UNROLL for (int v = 0; v < vectors; v++) {
        sums[p][v] = multiply_add_lane(sums[p][v], a[at / 4],
                                       at / 4 < full ? at % 4 : at - (span - 4), w[v]);
      }
    }
  }
}
#endif

/* `depth` taps of a row of the kernel.  `halves` are the last vector's sums with LAST_HALF. */
#ifdef LAST_HALF
KERNEL void planar_multiply(tile_sums sums, half_vec* halves, int columns, int vectors,
                            const float* input, const float* weights, int depth) {
  half_tile_multiply(sums, halves, columns, vectors, input, STRIDE_X, weights, depth);
}
#else
KERNEL void planar_multiply(tile_sums sums, void* halves, int columns, int vectors,
                            const float* input, const float* weights, int depth) {
  (void)halves;
  tile_multiply(sums, 0, columns, vectors, input, STRIDE_X, weights, depth);
}
#endif

/* `planes`: the first row of the picture, or its copy, that output row `row` needs, of which there
 * are `plane_rows` a plane. */
KERNEL void planar_tile(const float* planes, long plane_rows, const void* const* constants,
                        float* output, const float* residual, int row, int column, int vector_tile,
                        int columns, int vectors) {
  const int vector = tile_start(vector_tile, LARGER_VECTOR_TILES, TILE_VECTORS);
  const long to = (((long)vector * OUTPUT_HEIGHT + row) * OUTPUT_WIDTH + column) * LANES;
  const float* weights =
      (const float*)constants[0] + (long)vector * LANES * PLANES * KERNEL_HEIGHT * KERNEL_WIDTH;
  tile_sums sums;
  tile_begin(sums, columns, vectors, (const float*)constants[1] + vector * LANES);
#ifdef LAST_HALF
  half_vec halves[MOST_TILE_PIXELS];
  UNROLL for (int p = 0; p < columns; p++) halves[p] =
      load_half((const float*)constants[1] + (vector + vectors - 1) * LANES);
#else
  void* halves = 0;
#endif
  NO_UNROLL for (int plane = 0; plane < PLANES; plane++) {
    const float* input = planes + plane * plane_rows * PATCH_WIDTH + column * STRIDE_X;
    NO_UNROLL for (int i = 0; i < KERNEL_HEIGHT; i++) {
#ifdef ROW_SPAN
      if (ROW_SPAN(columns) >= 4 && ROW_SPAN(columns) <= 4 * MOST_ROW_VECTORS)
        planar_multiply_row(sums, columns, vectors, input, weights);
      else
        planar_multiply(sums, halves, columns, vectors, input, weights, KERNEL_WIDTH);
#elif DILATION_X == 1
      planar_multiply(sums, halves, columns, vectors, input, weights, KERNEL_WIDTH);
#else
      NO_UNROLL for (int j = 0; j < KERNEL_WIDTH; j++) {
        planar_multiply(sums, halves, columns, vectors, input + j * DILATION_X,
                        weights + j * vectors * LANES, 1);
      }
#endif
      input += DILATION_Y * PATCH_WIDTH;
      weights += KERNEL_WIDTH * vectors * LANES;
    }
  }
#ifdef LAST_HALF
  UNROLL for (int p = 0; p < columns; p++) sums[p][vectors - 1] = widened(halves[p]);
#endif
  tile_end(sums, columns, vectors, output + to, (long)OUTPUT_HEIGHT * OUTPUT_WIDTH * LANES,
           residual ? residual + to : 0);
}

KERNEL void planar_row(const float* planes, long plane_rows, const void* const* constants,
                       float* output, const float* residual, int row, int vector_tile,
                       int vectors) {
  NO_UNROLL for (int tile = 0; tile < LARGER_COLUMN_TILES; tile++) {
    planar_tile(planes, plane_rows, constants, output, residual, row, tile * (TILE_COLUMNS + 1),
                vector_tile, TILE_COLUMNS + 1, vectors);
  }
  NO_UNROLL for (int tile = LARGER_COLUMN_TILES; tile < COLUMN_TILES; tile++) {
    planar_tile(planes, plane_rows, constants, output, residual, row,
                tile_start(tile, LARGER_COLUMN_TILES, TILE_COLUMNS), vector_tile, TILE_COLUMNS,
                vectors);
  }
}

KERNEL void planar(int task, const void* const* inputs, const void* const* constants, void* output,
                   void* shared, void* scratch) {
  (void)shared;
  const int first_row = part_start(task, ROW_PARTS, OUTPUT_HEIGHT);
  const int end_row = part_start(task + 1, ROW_PARTS, OUTPUT_HEIGHT);
#ifdef RESIDUAL
  const float* residual = inputs[RESIDUAL];
#else
  const float* residual = 0;
#endif
#ifdef PADDED_WIDTH
  planar_patch(scratch, inputs[0], first_row * STRIDE_Y,
               (end_row - first_row - 1) * STRIDE_Y + (KERNEL_HEIGHT - 1) * DILATION_Y + 1);
  const float* planes = scratch;
  const long plane_rows = PADDED_ROWS;
#else
  (void)scratch;
  const float* planes = (const float*)inputs[0] + (long)first_row * STRIDE_Y * INPUT_WIDTH;
  const long plane_rows = INPUT_HEIGHT;
#endif
  NO_UNROLL for (int v = 0; v < VECTOR_TILES; v++) {
    NO_UNROLL for (int row = first_row; row < end_row; row++) {
      const float* from = planes + (long)(row - first_row) * STRIDE_Y * PATCH_WIDTH;
      if (LARGER_VECTOR_TILES && v < LARGER_VECTOR_TILES)
        planar_row(from, plane_rows, constants, output, residual, row, v, TILE_VECTORS + 1);
      else
        planar_row(from, plane_rows, constants, output, residual, row, v, TILE_VECTORS);
    }
  }
}
