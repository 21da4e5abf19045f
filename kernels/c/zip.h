/* Numbers of two vectors that change places: every second one, and one of each by turns. */
#ifndef RUN_MODEL_KERNELS_ZIP_H_
#define RUN_MODEL_KERNELS_ZIP_H_

#include "vector.h"

#if LANES == 16
#define EVEN_NUMBERS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_NUMBERS 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOWER_BY_TURNS 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define UPPER_BY_TURNS 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif LANES == 8
#define EVEN_NUMBERS 0, 2, 4, 6, 8, 10, 12, 14
#define ODD_NUMBERS 1, 3, 5, 7, 9, 11, 13, 15
#define LOWER_BY_TURNS 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER_BY_TURNS 4, 12, 5, 13, 6, 14, 7, 15
#else
#define EVEN_NUMBERS 0, 2, 4, 6
#define ODD_NUMBERS 1, 3, 5, 7
#define LOWER_BY_TURNS 0, 4, 1, 5
#define UPPER_BY_TURNS 2, 6, 3, 7
#endif

/* a and b become the even and the odd ones of what they were one after the other. */
KERNEL void unzip(vec* a, vec* b) {
  const vec first = *a, second = *b;
  *a = __builtin_shufflevector(first, second, EVEN_NUMBERS);
  *b = __builtin_shufflevector(first, second, ODD_NUMBERS);
}

/* The inverse. */
KERNEL void zip(vec* a, vec* b) {
  const vec even = *a, odd = *b;
  *a = __builtin_shufflevector(even, odd, LOWER_BY_TURNS);
  *b = __builtin_shufflevector(even, odd, UPPER_BY_TURNS);
}

/* Columns of pictures by their rest in four: numbers[r] gets every fourth number from r on of the
 * four vectors from `from` on. */
KERNEL void unzip_by_four(const float* from, vec numbers[4]) {
  UNROLL for (int i = 0; i < 4; i++) numbers[i] = load(from + i * LANES);
  unzip(&numbers[0], &numbers[1]);
  unzip(&numbers[2], &numbers[3]);
  unzip(&numbers[0], &numbers[2]);
  unzip(&numbers[1], &numbers[3]);
  /* Even of even are rests 0, odd of even 2, even of odd 1. */
}

/* The inverse. */
KERNEL void zip_by_four(vec numbers[4], float* to) {
  zip(&numbers[0], &numbers[2]);
  zip(&numbers[1], &numbers[3]);
  zip(&numbers[0], &numbers[1]);
  zip(&numbers[2], &numbers[3]);
  UNROLL for (int i = 0; i < 4; i++) store(to + i * LANES, numbers[i]);
}

#endif /* RUN_MODEL_KERNELS_ZIP_H_ */
