/* Products by tiles (amx.h): of bytes, added up exactly in 32 bits as dot() does, or with BFLOAT16
 * of numbers of bfloat16, added up in float32.
 *
 * Of the left matrix (unsigned bytes, or bfloat16) a product reads AMX_ROWS rows for each tile,
 * STEP_BYTES bytes of each in a step, a multiple of 4 up to 64.  What is multiplied lies in RUNS
 * runs of RUN_STEPS steps each, the first byte of run i RUN_OFFSET[i] bytes from the row's. Weights
 * are [run][step][word][tile of columns][16 columns][4 signed bytes, or 2 numbers].
 */
#ifndef RUN_MODEL_KERNELS_AMX_PRODUCTS_H_
#define RUN_MODEL_KERNELS_AMX_PRODUCTS_H_

#include "amx.h"

#ifdef BFLOAT16
#include "bfloat16.h"
#define multiply_tile __builtin_ia32_tdpbf16ps
KERNEL ivec add_products(ivec sums, ivec a, ivec w) { return (ivec)add_bfloat16((vec)sums, a, w); }
#else
#include "words.h"
#define multiply_tile __builtin_ia32_tdpbusd
KERNEL ivec add_products(ivec sums, ivec a, ivec w) { return dot(sums, a, w); }
#endif

static const int run_offset[] = RUN_OFFSET;

/* sums[row * columns + c] = start[c] + a row of the left matrix times the tile c of columns, 32-bit
 * numbers of whichever type, for one tile of columns or two, and one tile of rows or two, one after
 * the other: constants at every call. Rows of a tile are row_bytes apart. */
KERNEL void multiply_tiles(int tiles, int rows, int columns, const unsigned char* const left[2],
                           long row_bytes, const signed char* weights, const void* start,
                           ivec* sums) {
#ifdef HAS_TILES
  if (tiles) {
    /* With no bytes between rows, each is the same. */
    __builtin_ia32_tileloadd64(0, start, 0);
    if (columns == 2) __builtin_ia32_tileloadd64(1, (const char*)start + 64, 0);
    if (rows == 2) __builtin_ia32_tileloadd64(2, start, 0);
    if (rows == 2 && columns == 2) __builtin_ia32_tileloadd64(3, (const char*)start + 64, 0);
    NO_UNROLL for (int run = 0; run < RUNS; run++) {
      const unsigned char *a = left[0] + run_offset[run], *b = left[1] + run_offset[run];
      NO_UNROLL for (int step = 0; step < RUN_STEPS; step++) {
        __builtin_ia32_tileloadd64(6, weights, columns * 64);
        __builtin_ia32_tileloadd64(4, a + step * STEP_BYTES, row_bytes);
        multiply_tile(0, 4, 6);
        if (columns == 2) {
          __builtin_ia32_tileloadd64(7, weights + 64, columns * 64);
          multiply_tile(1, 4, 7);
        }
        if (rows == 2) {
          __builtin_ia32_tileloadd64(5, b + step * STEP_BYTES, row_bytes);
          multiply_tile(2, 5, 6);
          if (columns == 2) multiply_tile(3, 5, 7);
        }
        weights += columns * 16 * STEP_BYTES;
      }
    }
    ivec* second = sums + AMX_ROWS * columns;
    __builtin_ia32_tilestored64(0, sums, columns * 64);
    if (columns == 2) __builtin_ia32_tilestored64(1, sums + 1, columns * 64);
    if (rows == 2) __builtin_ia32_tilestored64(2, second, columns * 64);
    if (rows == 2 && columns == 2) __builtin_ia32_tilestored64(3, second + 1, columns * 64);
    return;
  }
#endif
  (void)tiles;
  enum { TOGETHER = 8 }; /* rows; past the last one the first again */
  NO_UNROLL for (int first = 0; first < rows * AMX_ROWS; first += TOGETHER) {
    const unsigned char* from[TOGETHER];
    int row[TOGETHER];
    ivec together[TOGETHER][2];
    UNROLL for (int r = 0; r < TOGETHER; r++) {
      row[r] = first + r < rows * AMX_ROWS ? first + r : first;
      from[r] = left[row[r] / AMX_ROWS] + row[r] % AMX_ROWS * row_bytes;
      UNROLL for (int c = 0; c < columns; c++) together[r][c] =
          load_words((const char*)start + c * 64);
    }
    const signed char* w = weights;
    NO_UNROLL for (int run = 0; run < RUNS; run++) {
      NO_UNROLL for (int at = 0; at < RUN_STEPS * STEP_BYTES; at += 4, w += columns * 64) {
        UNROLL for (int r = 0; r < TOGETHER; r++) {
          const ivec a = splat_word(from[r] + run_offset[run] + at);
          UNROLL for (int c = 0; c < columns; c++) {
            together[r][c] = add_products(together[r][c], a, load_words(w + c * 64));
          }
        }
      }
    }
    UNROLL for (int r = 0; r < TOGETHER; r++) {
      UNROLL for (int c = 0; c < columns; c++) sums[row[r] * columns + c] = together[r][c];
    }
  }
}

#endif /* RUN_MODEL_KERNELS_AMX_PRODUCTS_H_ */
