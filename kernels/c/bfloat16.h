/* Numbers of bfloat16: the upper halves of float32's bits, two in a word.
 *
 * They are made by rounding to the nearest, ties to even; a NaN stays one.  The CPU's instructions,
 * where it has them, take numbers below 2^-126 for zero, which the code for other CPUs does not.
 */
#ifndef RUN_MODEL_KERNELS_BFLOAT16_H_
#define RUN_MODEL_KERNELS_BFLOAT16_H_

#include "words.h"

#define BFLOAT16_HIGH ((int)0xffff0000)

#if defined(__clang__) && defined(__AVX512BF16__) && LANES == 16
#define HAS_BFLOAT16
typedef __bf16 bfloat16_lanes __attribute__((vector_size(2 * LANES)));

KERNEL bfloat16_lanes nearest_bfloat16(vec value) {
  return __builtin_ia32_cvtneps2bf16_512_mask(value, (bfloat16_lanes){0}, -1);
}
#endif

/* A number's bfloat16 in the upper half of its lane, and anything in the lower one. */
KERNEL ivec to_bfloat16(vec value) {
  typedef unsigned bits __attribute__((vector_size(4 * LANES)));
  const bits all = (bits)value;
  const ivec rounded = (ivec)(all + 0x7fff + (all >> 16 & 1));
  /* Of a NaN, rounding might make an infinity. */
  const ivec nan = (ivec)(all | 0x400000);
  return (ivec)chosen(value != value, (vec)nan, (vec)rounded);
}

/* Each word has a number of `low` in its lower half and one of `high` in its upper half. */
KERNEL ivec bfloat16_pairs(vec low, vec high) {
  typedef unsigned bits __attribute__((vector_size(4 * LANES)));
#ifdef HAS_BFLOAT16
  typedef unsigned short halves __attribute__((vector_size(2 * LANES)));
  const bits first = __builtin_convertvector((halves)nearest_bfloat16(low), bits);
  const bits second = __builtin_convertvector((halves)nearest_bfloat16(high), bits);
  return (ivec)(first | second << 16);
#else
  return (ivec)((bits)to_bfloat16(low) >> 16) | (to_bfloat16(high) & BFLOAT16_HIGH);
#endif
}

/* LANES numbers of bfloat16 in a row. */
KERNEL void store_bfloat16(void* to, vec value) {
#ifdef HAS_BFLOAT16
  typedef __bf16 in_memory __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
  *(in_memory*)to = (in_memory)nearest_bfloat16(value);
#else
  typedef unsigned bits __attribute__((vector_size(4 * LANES)));
  typedef unsigned short halves __attribute__((vector_size(2 * LANES)));
  typedef unsigned short in_memory __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
  *(in_memory*)to = (in_memory) __builtin_convertvector((bits)to_bfloat16(value) >> 16, halves);
#endif
}

/* The same of two vectors, one after the other. */
KERNEL ivec bfloat16_row(vec first, vec second) {
#ifdef HAS_BFLOAT16
  return (ivec)__builtin_ia32_cvtne2ps2bf16_512(second, first);
#else
  ivec both;
  store_bfloat16(&both, first);
  store_bfloat16((char*)&both + 2 * LANES, second);
  return both;
#endif
}

KERNEL unsigned short bfloat16_of(float value) {
  return (unsigned)to_bfloat16(splat(value))[0] >> 16;
}

KERNEL vec load_bfloat16(const void* from) {
  typedef unsigned bits __attribute__((vector_size(4 * LANES)));
  typedef unsigned short halves __attribute__((vector_size(2 * LANES)));
  typedef unsigned short in_memory __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
  return (vec)(__builtin_convertvector((halves) * (const in_memory*)from, bits) << 16);
}

/* sums[i] + the products of both numbers in a[i] with those in b[i].  (The instruction for it,
 * VDPBF16PS, takes a Sapphire Rapids twice as long as these.) */
KERNEL vec add_bfloat16(vec sums, ivec a, ivec b) {
  sums += (vec)(a << 16) * (vec)(b << 16);
  return sums + (vec)(a & BFLOAT16_HIGH) * (vec)(b & BFLOAT16_HIGH);
}

#endif /* RUN_MODEL_KERNELS_BFLOAT16_H_ */
