/* Vectors of words, which are two int16 numbers or four bytes, and products of them that are added
 * up exactly in 32 bits: in one step, every word of a vector is multiplied with one of another. */
#ifndef RUN_MODEL_KERNELS_WORDS_H_
#define RUN_MODEL_KERNELS_WORDS_H_

#include "vector.h"

typedef int ivec_in_memory __attribute__((vector_size(4 * LANES), aligned(1), may_alias));
typedef int word_in_memory __attribute__((aligned(1), may_alias));

KERNEL ivec load_words(const void* from) { return *(const ivec_in_memory*)from; }

KERNEL ivec splat_word(const void* from) { return *(const word_in_memory*)from - (ivec){0}; }

KERNEL vec floats(ivec value) { return __builtin_convertvector(value, vec); }

/* multiply_pairs(a, b): of each word, the sum of the products of both its int16 numbers. */
#if (LANES == 8 && defined(__AVX2__)) || (LANES == 16 && defined(__AVX512BW__))
typedef short shorts __attribute__((vector_size(4 * LANES)));
#define MULTIPLIES_PAIRS 1
KERNEL ivec multiply_pairs(ivec a, ivec b) {
#if LANES == 16
#if defined(__clang__)
  return (ivec)__builtin_ia32_pmaddwd512((shorts)a, (shorts)b);
#else
  return (ivec)__builtin_ia32_pmaddwd512_mask((shorts)a, (shorts)b, (ivec){0}, -1);
#endif
#else
  return (ivec)__builtin_ia32_pmaddwd256((shorts)a, (shorts)b);
#endif
}
#else
KERNEL ivec multiply_pairs(ivec a, ivec b) {
  typedef unsigned bits __attribute__((vector_size(4 * LANES)));
  return ((ivec)((bits)a << 16) >> 16) * ((ivec)((bits)b << 16) >> 16) + (a >> 16) * (b >> 16);
}
#endif

/* The same added to sums. */
#if LANES == 16 && defined(__AVX512VNNI__)
KERNEL ivec add_pairs(ivec sums, ivec a, ivec b) {
#if defined(__clang__)
  return __builtin_ia32_vpdpwssd512(sums, a, b);
#else
  return __builtin_ia32_vpdpwssd_v16si(sums, a, b);
#endif
}
#else
KERNEL ivec add_pairs(ivec sums, ivec a, ivec b) { return sums + multiply_pairs(a, b); }
#endif

/* LANES whole numbers of float32 within int16's range, as such. */
KERNEL void store_shorts(short* to, vec whole) {
  typedef short lane_shorts __attribute__((vector_size(2 * LANES)));
  typedef short in_memory __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
  *(in_memory*)to = __builtin_convertvector(__builtin_convertvector(whole, ivec), lane_shorts);
}

#endif /* RUN_MODEL_KERNELS_WORDS_H_ */
