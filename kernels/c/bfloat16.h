/* Numbers of bfloat16: the upper halves of float32's bits, two in a word.
 *
 * They are made by rounding to the nearest, ties to even; a NaN stays one.  The CPU's instructions,
 * where it has them, take numbers below 2^-126 for zero, which the code for other CPUs does not.
 */
#ifndef RUN_MODEL_KERNELS_BFLOAT16_H_
#define RUN_MODEL_KERNELS_BFLOAT16_H_

#include "words.h"

#define BFLOAT16_HIGH ((int)0xffff0000)

typedef unsigned word_bits __attribute__((vector_size(4 * LANES)));
typedef unsigned short halves __attribute__((vector_size(2 * LANES)));
typedef unsigned short halves_in_memory
    __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

/* A number's bfloat16 in the upper half of its lane, and anything in the lower one. */
KERNEL ivec to_bfloat16(vec value) {
  const word_bits bits = (word_bits)value;
  const ivec rounded = (ivec)(bits + 0x7fff + (bits >> 16 & 1));
  /* Of a NaN, rounding might make an infinity. */
  return (ivec)chosen(value != value, (vec)(bits | 0x400000), (vec)rounded);
}

#if defined(__clang__) && defined(__AVX512BF16__) && LANES == 16
typedef __bf16 bfloat16_lanes __attribute__((vector_size(2 * LANES)));

KERNEL halves bfloat16_halves(vec value) {
  return (halves)__builtin_ia32_cvtneps2bf16_512_mask(value, (bfloat16_lanes){0}, -1);
}
#else
KERNEL halves bfloat16_halves(vec value) {
  return __builtin_convertvector((word_bits)to_bfloat16(value) >> 16, halves);
}
#endif

/* Each word has a number of `low` in its lower half and one of `high` in its upper half. */
KERNEL ivec bfloat16_pairs(vec low, vec high) {
  const word_bits first = __builtin_convertvector(bfloat16_halves(low), word_bits);
  return (ivec)(first | __builtin_convertvector(bfloat16_halves(high), word_bits) << 16);
}

/* LANES numbers of bfloat16 in a row. */
KERNEL void store_bfloat16(void* to, vec value) { *(halves_in_memory*)to = bfloat16_halves(value); }

/* Words of two vectors' numbers, one after the other. */
KERNEL ivec bfloat16_row(vec first, vec second) {
  ivec both;
  store_bfloat16(&both, first);
  store_bfloat16((char*)&both + 2 * LANES, second);
  return both;
}

KERNEL unsigned short bfloat16_of(float value) {
  return (unsigned)to_bfloat16(splat(value))[0] >> 16;
}

KERNEL vec load_bfloat16(const void* from) {
  return (vec)(__builtin_convertvector((halves) * (const halves_in_memory*)from, word_bits) << 16);
}

/* sums[i] + the products of both numbers in a[i] with those in b[i].  (The instruction for it,
 * VDPBF16PS, takes a Sapphire Rapids twice as long as these.) */
KERNEL vec add_bfloat16(vec sums, ivec a, ivec b) {
  sums += (vec)(a << 16) * (vec)(b << 16);
  return sums + (vec)(a & BFLOAT16_HIGH) * (vec)(b & BFLOAT16_HIGH);
}

#endif /* RUN_MODEL_KERNELS_BFLOAT16_H_ */
