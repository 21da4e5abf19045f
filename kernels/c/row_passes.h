/* One pass of a program along a row (programs/code.py): BEGIN_S starts it, STEP_S is done for each
 * vector of `count` numbers from `column` on, and END_S completes sums along the row for the next
 * pass.  Sums are made in CHAINS parts, so that one addition need not wait for the one before.
 *
 * Macros: COLUMNS; PASSES (1 to 6).
 */
#ifndef RUN_MODEL_KERNELS_ROW_PASSES_H_
#define RUN_MODEL_KERNELS_ROW_PASSES_H_

#include "reductions.h"

#define PASS(S)                                                                     \
  BEGIN_##S NO_UNROLL for (int c = 0; c < COLUMNS / (CHAINS * LANES); c++) {        \
    UNROLL for (int chain = 0; chain < CHAINS; chain++) {                           \
      const int column = (c * CHAINS + chain) * LANES, count = LANES;               \
      (void)column, (void)count;                                                    \
      STEP_##S                                                                      \
    }                                                                               \
  }                                                                                 \
  NO_UNROLL for (int column = COLUMNS / (CHAINS * LANES) * (CHAINS * LANES);        \
                 column + LANES <= COLUMNS; column += LANES) {                      \
    const int chain = 0, count = LANES;                                             \
    (void)chain, (void)count;                                                       \
    STEP_##S                                                                        \
  }                                                                                 \
  if (COLUMNS % LANES) {                                                            \
    const int chain = 0, count = COLUMNS % LANES, column = COLUMNS / LANES * LANES; \
    (void)chain, (void)count, (void)column;                                         \
    STEP_##S                                                                        \
  }                                                                                 \
  END_##S

#if PASSES > 5
#define ALL_PASSES PASS(0) PASS(1) PASS(2) PASS(3) PASS(4) PASS(5)
#elif PASSES > 4
#define ALL_PASSES PASS(0) PASS(1) PASS(2) PASS(3) PASS(4)
#elif PASSES > 3
#define ALL_PASSES PASS(0) PASS(1) PASS(2) PASS(3)
#elif PASSES > 2
#define ALL_PASSES PASS(0) PASS(1) PASS(2)
#elif PASSES > 1
#define ALL_PASSES PASS(0) PASS(1)
#else
#define ALL_PASSES PASS(0)
#endif

#endif /* RUN_MODEL_KERNELS_ROW_PASSES_H_ */
