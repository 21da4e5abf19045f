/* A square of LANES x LANES numbers in vectors, transposed in registers. */
#ifndef RUN_MODEL_KERNELS_TRANSPOSE_H_
#define RUN_MODEL_KERNELS_TRANSPOSE_H_

#include "vector.h"

/* Of two rows that are `s` apart, the lanes that change places are those `s` apart. */
#define LOWER(lane, s) ((lane) & (s) ? LANES + (lane) - (s) : (lane))
#define UPPER(lane, s) ((lane) & (s) ? LANES + (lane) : (lane) + (s))

#if LANES == 16
#define MIXED(a, b, LANE, s)                                                                       \
  __builtin_shufflevector(a, b, LANE(0, s), LANE(1, s), LANE(2, s), LANE(3, s), LANE(4, s),        \
                          LANE(5, s), LANE(6, s), LANE(7, s), LANE(8, s), LANE(9, s), LANE(10, s), \
                          LANE(11, s), LANE(12, s), LANE(13, s), LANE(14, s), LANE(15, s))
#elif LANES == 8
#define MIXED(a, b, LANE, s)                                                                \
  __builtin_shufflevector(a, b, LANE(0, s), LANE(1, s), LANE(2, s), LANE(3, s), LANE(4, s), \
                          LANE(5, s), LANE(6, s), LANE(7, s))
#else
#define MIXED(a, b, LANE, s) \
  __builtin_shufflevector(a, b, LANE(0, s), LANE(1, s), LANE(2, s), LANE(3, s))
#endif

#define EXCHANGE(rows, s)                                             \
  UNROLL for (int i = 0; i < LANES; i++) {                            \
    if (!(i & (s))) {                                                 \
      const vec a = rows[i], b = rows[i + (s) < LANES ? i + (s) : 0]; \
      rows[i] = MIXED(a, b, LOWER, s);                                \
      rows[i + (s) < LANES ? i + (s) : 0] = MIXED(a, b, UPPER, s);    \
    }                                                                 \
  }

KERNEL void transpose(vec rows[LANES]) {
#if LANES > 8
  EXCHANGE(rows, 8)
#endif
#if LANES > 4
  EXCHANGE(rows, 4)
#endif
  EXCHANGE(rows, 2)
  EXCHANGE(rows, 1)
}

#endif /* RUN_MODEL_KERNELS_TRANSPOSE_H_ */
