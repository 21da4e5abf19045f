/* From vectors of float32 numbers to bytes, four vectors at a time, where the CPU's packing
 * instructions clamp numbers on the way: PACKS_FOUR says whether it has them. */
#ifndef RUN_MODEL_KERNELS_PACKING_H_
#define RUN_MODEL_KERNELS_PACKING_H_

#include "vector.h"

#if (LANES == 8 && defined(__AVX2__)) || (LANES == 16 && defined(__AVX512BW__))
#define PACKS_FOUR

typedef short packed_shorts __attribute__((vector_size(4 * LANES)));
typedef unsigned char packed_bytes __attribute__((vector_size(4 * LANES)));

/* nearest: whole numbers, halves to even; -2^31 for what no int can be.
 * packed_pair, packed_pairs: of every 16 bytes of a and of b in turn, the numbers clamped to what
 * half as many bits can be, signed and then unsigned. */
#if LANES == 8
KERNEL ivec nearest(vec value) { return (ivec)__builtin_ia32_cvtps2dq256(value); }
KERNEL packed_shorts packed_pair(ivec a, ivec b) {
  return (packed_shorts)__builtin_ia32_packssdw256(a, b);
}
KERNEL packed_bytes packed_pairs(packed_shorts a, packed_shorts b) {
  return (packed_bytes)__builtin_ia32_packuswb256(a, b);
}
#define FOURS_IN_ORDER 0, 4, 1, 5, 2, 6, 3, 7
#else
KERNEL ivec nearest(vec value) {
  /* 4: rounded as the CPU is set to. */
  return (ivec)__builtin_ia32_cvtps2dq512_mask(value, (ivec){0}, (unsigned short)-1, 4);
}
#if defined(__clang__)
KERNEL packed_shorts packed_pair(ivec a, ivec b) {
  return (packed_shorts)__builtin_ia32_packssdw512(a, b);
}
KERNEL packed_bytes packed_pairs(packed_shorts a, packed_shorts b) {
  return (packed_bytes)__builtin_ia32_packuswb512(a, b);
}
#else
KERNEL packed_shorts packed_pair(ivec a, ivec b) {
  return (packed_shorts)__builtin_ia32_packssdw512_mask(a, b, (packed_shorts){0}, -1);
}
KERNEL packed_bytes packed_pairs(packed_shorts a, packed_shorts b) {
  typedef char plain_bytes __attribute__((vector_size(4 * LANES)));
  return (packed_bytes)__builtin_ia32_packuswb512_mask(a, b, (plain_bytes){0}, -1);
}
#endif
#define FOURS_IN_ORDER 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15
#endif

/* The numbers of a, b, c and d one after the other, rounded and then `zero` higher; what is below 0
 * then becomes 0.  None may be above 255 then. */
KERNEL packed_bytes packed_four(vec a, vec b, vec c, vec d, int zero) {
  const packed_shorts ab = packed_pair(nearest(a) + zero, nearest(b) + zero);
  const packed_shorts cd = packed_pair(nearest(c) + zero, nearest(d) + zero);
  const ivec fours = (ivec)packed_pairs(ab, cd);
  return (packed_bytes)__builtin_shufflevector(fours, fours, FOURS_IN_ORDER);
}

KERNEL packed_bytes at_least(packed_bytes bytes, unsigned char low) {
  const packed_bytes least = low - (packed_bytes){0};
#if defined(__clang__)
  return __builtin_elementwise_max(bytes, least);
#else
  const packed_bytes above = (packed_bytes)(bytes > least);
  return (bytes & above) | (least & ~above);
#endif
}
#endif

#endif /* RUN_MODEL_KERNELS_PACKING_H_ */
