/* Products of tiles of bytes: up to 16 rows of up to 64 bytes times as many words of 16 columns, which
 * Intel's AMX does in one instruction (TDPBUSD), added up exactly in 32 bits as dot() does.
 *
 * Of the left matrix (unsigned bytes) a product reads TILE_ROWS rows for each tile, STEP_BYTES bytes
 * of each in a step, a multiple of 4 up to 64.  The bytes that are multiplied lie in RUNS runs of
 * STEPS steps each, the first byte of run i RUN_OFFSET[i] bytes from the row's.  Weights are
 * [run][step][tile of columns][word][16 columns][4], signed.
 *
 * Linux lets a process use the tiles after it has asked (arch_prctl(ARCH_REQ_XCOMP_PERM), since 5.16),
 * which the first task does.  Where it says no, or another compiler than Clang makes the code, the
 * sums are those of dot().
 */
#ifndef RUN_MODEL_KERNELS_AMX_H_
#define RUN_MODEL_KERNELS_AMX_H_

#include "words.h"

static const int run_offset[] = RUN_OFFSET;

#if defined(__clang__) && defined(__AMX_INT8__) && LANES == 16
#define HAS_TILES

/* Tiles 0 to 3 are sums, 4 and 5 of the left matrix, 6 and 7 of weights. */
static const struct {
  unsigned char palette, start_row, reserved[14];
  unsigned short bytes_of_row[16];
  unsigned char rows[16];
} tile_shapes = {1,
                 0,
                 {0},
                 {64, 64, 64, 64, STEP_BYTES, STEP_BYTES, 64, 64},
                 {TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, STEP_BYTES / 4,
                  STEP_BYTES / 4}};

KERNEL int may_use_tiles(void) {
  enum { UNKNOWN, YES, NO, ARCH_PRCTL = 158, ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
  static int answer;
  int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
  if (known == UNKNOWN) {
    long result = ARCH_PRCTL;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(ARCH_REQ_XCOMP_PERM), "S"(XTILEDATA)
                     : "rcx", "r11", "memory");
    known = result == 0 ? YES : NO;
    __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
  }
  return known == YES;
}

/* Between these two the tiles are set up, if it says so. */
KERNEL int begin_tiles(void) {
  const int tiles = may_use_tiles();
  if (tiles) __builtin_ia32_tile_loadconfig(&tile_shapes);
  return tiles;
}
KERNEL void end_tiles(int tiles) {
  if (tiles) __builtin_ia32_tilerelease();
}
#else
KERNEL int begin_tiles(void) { return 0; }
KERNEL void end_tiles(int tiles) { (void)tiles; }
#endif

/* sums[c][r][i] = start[c] + the row r of tile i of the left matrix times the tile c of columns, for
 * one tile or two of each, which are constants at every call.  Rows of a tile are row_bytes apart. */
KERNEL void multiply_tiles(int tiles, int rows, int columns, const unsigned char* const left[2],
                           long row_bytes, const signed char* weights, const int* start,
                           ivec sums[2][2][TILE_ROWS]) {
#ifdef HAS_TILES
  if (tiles) {
    /* With no bytes between rows, each is the same. */
    __builtin_ia32_tileloadd64(0, start, 0);
    if (columns == 2) __builtin_ia32_tileloadd64(1, start + LANES, 0);
    if (rows == 2) __builtin_ia32_tileloadd64(2, start, 0);
    if (rows == 2 && columns == 2) __builtin_ia32_tileloadd64(3, start + LANES, 0);
    NO_UNROLL for (int run = 0; run < RUNS; run++) {
      const unsigned char *a = left[0] + run_offset[run], *b = left[1] + run_offset[run];
      NO_UNROLL for (int step = 0; step < STEPS; step++) {
        __builtin_ia32_tileloadd64(6, weights, 64);
        __builtin_ia32_tileloadd64(4, a + step * STEP_BYTES, row_bytes);
        __builtin_ia32_tdpbusd(0, 4, 6);
        if (columns == 2) {
          __builtin_ia32_tileloadd64(7, weights + 16 * STEP_BYTES, 64);
          __builtin_ia32_tdpbusd(1, 4, 7);
        }
        if (rows == 2) {
          __builtin_ia32_tileloadd64(5, b + step * STEP_BYTES, row_bytes);
          __builtin_ia32_tdpbusd(2, 5, 6);
          if (columns == 2) __builtin_ia32_tdpbusd(3, 5, 7);
        }
        weights += columns * 16 * STEP_BYTES;
      }
    }
    __builtin_ia32_tilestored64(0, sums[0][0], 64);
    if (columns == 2) __builtin_ia32_tilestored64(1, sums[1][0], 64);
    if (rows == 2) __builtin_ia32_tilestored64(2, sums[0][1], 64);
    if (rows == 2 && columns == 2) __builtin_ia32_tilestored64(3, sums[1][1], 64);
    return;
  }
#endif
  (void)tiles;
  NO_UNROLL for (int column = 0; column < columns; column++) {
    NO_UNROLL for (int row = 0; row < rows * TILE_ROWS; row++) {
      const unsigned char* from = left[row / TILE_ROWS] + row % TILE_ROWS * row_bytes;
      const signed char* w = weights + column * 16 * STEP_BYTES;
      ivec sum = load_words(start + column * LANES);
      NO_UNROLL for (int run = 0; run < RUNS; run++) {
        NO_UNROLL for (int step = 0; step < STEPS; step++, w += columns * 16 * STEP_BYTES) {
          NO_UNROLL for (int word = 0; word < STEP_BYTES / 4; word++) {
            const ivec a = splat_word(from + run_offset[run] + step * STEP_BYTES + 4 * word);
            sum = dot(sum, a, load_words(w + word * 4 * LANES));
          }
        }
      }
      sums[column][row / TILE_ROWS][row % TILE_ROWS] = sum;
    }
  }
}

#endif /* RUN_MODEL_KERNELS_AMX_H_ */
