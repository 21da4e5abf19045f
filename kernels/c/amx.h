/* Tiles of Intel's AMX: registers of up to 16 rows of up to 64 bytes, which one instruction
 * multiplies.
 *
 * Tiles 0 to 3 are sums, of two tiles of rows by two of columns; 4 and 5 hold AMX_ROWS rows of
 * STEP_BYTES bytes, and 6 and 7 a column of words for each of 16 columns.
 *
 * Linux lets a process use them after it has asked (arch_prctl(ARCH_REQ_XCOMP_PERM), since 5.16),
 * which the first task does.  Where it says no, or another compiler than Clang makes the code,
 * there are none: who uses them has code for that too.
 */
#ifndef RUN_MODEL_KERNELS_AMX_H_
#define RUN_MODEL_KERNELS_AMX_H_

#include "vector.h"

#if defined(__clang__) && LANES == 16 && defined(__AMX_INT8__) && \
    (!defined(BFLOAT16) || defined(__AMX_BF16__))
#define HAS_TILES

static const struct {
  unsigned char palette, start_row, reserved[14];
  unsigned short bytes_of_row[16];
  unsigned char rows[16];
} tile_shapes = {
    1,
    0,
    {0},
    {64, 64, 64, 64, STEP_BYTES, STEP_BYTES, 64, 64},
    {AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS, STEP_BYTES / 4, STEP_BYTES / 4}};

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

/* Between these two there are tiles, if it says so. */
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

#endif /* RUN_MODEL_KERNELS_AMX_H_ */
