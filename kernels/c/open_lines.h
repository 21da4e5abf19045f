/* Lines of pictures whose lengths are known only when code runs. */
#ifndef RUN_MODEL_KERNELS_OPEN_LINES_H_
#define RUN_MODEL_KERNELS_OPEN_LINES_H_

#include "zip.h"

/* Numbers rounded up to whole units. */
static inline long whole(long numbers, long unit) { return (numbers + unit - 1) / unit * unit; }

KERNEL void copy_numbers(float* to, const float* from, long count) {
  for (; count >= LANES; count -= LANES, to += LANES, from += LANES) store(to, load(from));
  UNROLL for (int part = LANES / 2; part; part /= 2) {
    if (!(count & part)) continue;
    __builtin_memcpy(to, from, part * sizeof(float));
    to += part, from += part;
  }
}

/* Columns of a line apart by their rest, for windows that go `stride` columns at a time: number i
 * of rest r, which becomes to[r * pitch + i], is column i * stride + r.  `pitch` is whole vectors,
 * and the line is as long as all of them. */
KERNEL void columns_apart(const float* line, int stride, int rests, long pitch, float* to) {
  for (long at = 0; at < pitch; at += LANES) {
    if (stride == 2 && rests == 2) {
      vec even = load(line + 2 * at), odd = load(line + 2 * at + LANES);
      unzip(&even, &odd);
      store(to + at, even);
      store(to + pitch + at, odd);
      continue;
    }
    for (int rest = 0; rest < rests; ++rest) {
      for (int i = 0; i < LANES; ++i) to[rest * pitch + at + i] = line[(at + i) * stride + rest];
    }
  }
}

#endif /* RUN_MODEL_KERNELS_OPEN_LINES_H_ */
