/* A convolution by tiles (amx_products.h): 1x1 and k x k, any stride and dilation.
 *
 * A first phase makes rows of the input, with its border: [PADDED_HEIGHT][PADDED_WIDTH] pixels of
 * PIXEL_BYTES, so that a tile's rows are neighbouring pixels and a run the channels of a tap, or of
 * all taps of a row.  Tiles are of *positions*, ACROSS for each row of the output.  With strides of
 * one, those are all pixels of the padded row: tiles then go on from row to row, and what they make
 * of places that are none of the output's is not stored.
 *
 * Constants 0 and 1 are weights, [chunk of two blocks] of amx_products.h, and what sums start with,
 * one 32-bit number for each output channel.  Whoever includes this has said what becomes of sums:
 *   block_constants constants_of(block, inputs, constants)
 *   store_pixels(output, at, count, sums, step, of): results of `count` neighbouring pixels, 4 or
 * 1, of sums[0], sums[step] ..., from element `at` on
 */
#ifndef RUN_MODEL_KERNELS_AMX_CONVOLUTION_H_
#define RUN_MODEL_KERNELS_AMX_CONVOLUTION_H_

#include "amx_products.h"

#define POSITIONS ((OUTPUT_HEIGHT - 1) * ACROSS + OUTPUT_WIDTH)
#define TILES ((POSITIONS + AMX_ROWS - 1) / AMX_ROWS)
#define PAIRS ((TILES + 1) / 2)
#define CHUNKS ((OUTPUT_BLOCKS + 1) / 2)

KERNEL const unsigned char* first_pixel(const void* shared, int tile) {
  const int position = tile * AMX_ROWS;
  return (const unsigned char*)shared + (long)(position / ACROSS) * STRIDE_Y * ROW_BYTES +
         (long)(position % ACROSS) * STRIDE_X * PIXEL_BYTES;
}

/* The part of a tile's results that the output has; sums[i * step] is of row i. */
KERNEL void store_tile(int tile, int block, const ivec* sums, int step, const void* const* inputs,
                       const void* const* constants, void* output) {
  const block_constants of = constants_of(block, inputs, constants);
  int row = tile * AMX_ROWS / ACROSS, column = tile * AMX_ROWS % ACROSS;
  NO_UNROLL for (int i = 0; i < AMX_ROWS && row < OUTPUT_HEIGHT; row++, column = 0) {
    const int end = ACROSS - column < AMX_ROWS - i ? i + ACROSS - column : AMX_ROWS;
    const int there = OUTPUT_WIDTH - column < end - i ? i + OUTPUT_WIDTH - column : end;
    long at = (((long)block * OUTPUT_HEIGHT + row) * OUTPUT_WIDTH + column) * LANES;
    NO_UNROLL for (; i + 4 <= there; i += 4, at += 4 * LANES) {
      store_pixels(output, at, 4, sums + i * step, step, of);
    }
    NO_UNROLL for (; i < there; i++, at += LANES) {
      store_pixels(output, at, 1, sums + i * step, step, of);
    }
    i = end;
  }
}

KERNEL void convolve_pair(int tiles, int rows, int columns, int pair, int chunk,
                          const void* const* inputs, const void* const* constants, void* output,
                          const void* shared) {
  const int tile = 2 * pair, block = 2 * chunk;
  const unsigned char* const left[2] = {first_pixel(shared, tile), first_pixel(shared, tile + 1)};
  const signed char* weights =
      (const signed char*)constants[0] + (long)block * RUNS * RUN_STEPS * STEP_BYTES * 16;
  ivec sums[2 * AMX_ROWS * 2];
  multiply_tiles(tiles, rows, columns, left, STRIDE_X * PIXEL_BYTES, weights,
                 (const char*)constants[1] + (long)block * LANES * 4, sums);
  NO_UNROLL for (int c = 0; c < columns; c++) {
    NO_UNROLL for (int r = 0; r < rows; r++) {
      store_tile(tile + r, block + c, sums + r * AMX_ROWS * columns + c, columns, inputs, constants,
                 output);
    }
  }
}

/* A task is TASK_PAIRS pairs of tiles of TASK_CHUNKS chunks. */
KERNEL void tiles_convolve(int task, const void* const* inputs, const void* const* constants,
                           void* output, void* shared, void* scratch) {
  (void)scratch;
  const int parts = (PAIRS + TASK_PAIRS - 1) / TASK_PAIRS;
  const int pair = task % parts * TASK_PAIRS, chunk = task / parts * TASK_CHUNKS;
  const int pair_end = pair + TASK_PAIRS < PAIRS ? pair + TASK_PAIRS : PAIRS;
  const int chunk_end = chunk + TASK_CHUNKS < CHUNKS ? chunk + TASK_CHUNKS : CHUNKS;
  const int tiles = begin_tiles();
  NO_UNROLL for (int c = chunk; c < chunk_end; c++) {
    NO_UNROLL for (int p = pair; p < pair_end; p++) {
      const int one_row = TILES % 2 && p == PAIRS - 1;
      if (OUTPUT_BLOCKS % 2 && c == CHUNKS - 1) {
        if (one_row)
          convolve_pair(tiles, 1, 1, p, c, inputs, constants, output, shared);
        else
          convolve_pair(tiles, 2, 1, p, c, inputs, constants, output, shared);
      } else {
        if (one_row)
          convolve_pair(tiles, 1, 2, p, c, inputs, constants, output, shared);
        else
          convolve_pair(tiles, 2, 2, p, c, inputs, constants, output, shared);
      }
    }
  }
  end_tiles(tiles);
}

#endif /* RUN_MODEL_KERNELS_AMX_CONVOLUTION_H_ */
