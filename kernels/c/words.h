/* Vectors of words, which are two int16 numbers or four bytes, and products of them that are added
 * up exactly in 32 bits: in one step, every word of a vector is multiplied with one of another.
 *
 * With four lanes, weights of two int16 numbers are not beside each other but the first ones of all
 * lanes before the second ones, as NEON multiplies them. */
#ifndef RUN_MODEL_KERNELS_WORDS_H_
#define RUN_MODEL_KERNELS_WORDS_H_

#include "vector.h"

/* Machines that load nothing across its alignment put together what is said to have none. */
typedef int ivec_in_memory __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int word_in_memory __attribute__((aligned(1), may_alias));

/* The int16 numbers of a vector of words, and one of each lane. */
typedef short shorts __attribute__((vector_size(4 * LANES)));
typedef short lane_shorts __attribute__((vector_size(2 * LANES)));
typedef short lane_shorts_in_memory __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

KERNEL lane_shorts load_lane_shorts(const short* from) {
  return *(const lane_shorts_in_memory*)from;
}

KERNEL void store_lane_shorts(short* to, lane_shorts value) { *(lane_shorts_in_memory*)to = value; }

KERNEL ivec load_words(const void* from) { return *(const ivec_in_memory*)from; }

KERNEL void store_words(void* to, ivec value) { *(ivec_in_memory*)to = value; }

KERNEL ivec splat_word(const void* from) { return *(const word_in_memory*)from - (ivec){0}; }

KERNEL vec floats(ivec value) { return __builtin_convertvector(value, vec); }

/* A byte of each lane: in layers of bytes, one pixel's channels of a block. */
typedef unsigned char lane_bytes __attribute__((vector_size(LANES)));
typedef unsigned char lane_bytes_in_memory
    __attribute__((vector_size(LANES), aligned(1), may_alias));

KERNEL lane_bytes load_bytes(const unsigned char* from) {
  return *(const lane_bytes_in_memory*)from;
}

KERNEL void store_bytes(unsigned char* to, lane_bytes value) { *(lane_bytes_in_memory*)to = value; }

KERNEL vec floats_of_bytes(lane_bytes value) {
  return floats(__builtin_convertvector(value, ivec));
}

/* Words of two int16 numbers from two signed bytes each. */
KERNEL ivec load_byte_pairs(const signed char* from) {
  typedef signed char pairs __attribute__((vector_size(2 * LANES)));
  typedef signed char in_memory __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
  return (ivec) __builtin_convertvector((pairs) * (const in_memory*)from, shorts);
}

/* multiply_pairs(a, b): of each word, the sum of the products of both its int16 numbers. */
#if (LANES == 8 && defined(__AVX2__)) || (LANES == 16 && defined(__AVX512BW__))
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

/* Of each lane, the product of two int16 numbers. */
#if LANES == 4 || defined(RISCV_VECTORS)
KERNEL ivec multiply_long(lane_shorts a, lane_shorts b) {
#if defined(__clang__) && defined(__ARM_NEON)
  typedef signed char eight_bytes __attribute__((vector_size(8)));
  /* 34: the result's type, int32x4_t, in the numbering of arm_neon.h. */
  return (ivec)__builtin_neon_vmull_v((eight_bytes)a, (eight_bytes)b, 34);
#else
  return __builtin_convertvector(a, ivec) * __builtin_convertvector(b, ivec);
#endif
}
#endif

/* add_pairs(sums, a, b): multiply_pairs(a, b) added to sums; `a` is from load_pair(). */
#if LANES == 4
KERNEL ivec add_pairs(ivec sums, ivec a, ivec b) {
  const shorts w = (shorts)b, x = (shorts)a;
  sums += multiply_long(__builtin_shufflevector(w, w, 0, 1, 2, 3),
                        __builtin_shufflevector(x, x, 0, 0, 0, 0));
  return sums + multiply_long(__builtin_shufflevector(w, w, 4, 5, 6, 7),
                              __builtin_shufflevector(x, x, 1, 1, 1, 1));
}
#elif defined(RISCV_VECTORS)
/* An instruction multiplies a vector with one number, and weights are taken apart once for all
 * sums: of numbers that are widened Clang makes products and sums of their own. */
KERNEL ivec add_pairs(ivec sums, ivec a, ivec b) {
  typedef unsigned bits __attribute__((vector_size(4 * LANES)));
  sums += ((ivec)((bits)b << 16) >> 16) * (a[0] - (ivec){0});
  return sums + (b >> 16) * (a[1] - (ivec){0});
}
#elif LANES == 16 && defined(__AVX512VNNI__)
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

/* A word for all lanes of add_pairs(), which takes it from the first one where NEON does, and its
 * numbers from the first two where RISC-V does. */
#if LANES == 4 && defined(__aarch64__)
KERNEL ivec load_pair(const void* from) { return (ivec){*(const word_in_memory*)from}; }
#elif (LANES == 4 || defined(RISCV_VECTORS)) && !defined(__ARM_NEON)
KERNEL ivec load_pair(const void* from) {
  typedef short in_memory __attribute__((may_alias));
  const in_memory* pair = (const in_memory*)from;
#ifdef RISCV_VECTORS
  return (ivec){pair[0], pair[1]};
#else
  return (ivec)(shorts){pair[0], pair[1]};
#endif
}
#else
KERNEL ivec load_pair(const void* from) { return splat_word(from); }
#endif

/* dot(sums, a, w): sums[i] + the four bytes of a[i] times the four signed bytes of w[i].
 *
 * With SIGNED_DOT, a's bytes have been made signed by signed_words, which takes 128 from each; the
 * sums then start 128 times the sum of the weights higher (NEON multiplies signed by signed only).
 */
#ifdef SIGNED_DOT
KERNEL ivec signed_words(ivec a) { return a ^ (int)0x80808080; }
#else
KERNEL ivec signed_words(ivec a) { return a; }
#endif

#if !defined(SIGNED_DOT) && LANES == 16 && defined(__AVX512VNNI__)
KERNEL ivec dot(ivec sums, ivec a, ivec w) {
#if defined(__clang__)
  return __builtin_ia32_vpdpbusd512(sums, a, w);
#else
  return __builtin_ia32_vpdpbusd_v16si(sums, a, w);
#endif
}
#elif !defined(SIGNED_DOT) && LANES == 8 && \
    (defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__)))
KERNEL ivec dot(ivec sums, ivec a, ivec w) {
#if defined(__clang__)
  return __builtin_ia32_vpdpbusd256(sums, a, w);
#else
  return __builtin_ia32_vpdpbusd_v8si(sums, a, w);
#endif
}
#elif !defined(SIGNED_DOT) && defined(MULTIPLIES_PAIRS)
/* Not vpmaddubsw, which saturates: even and odd bytes apart as 16-bit numbers, then vpmaddwd. */
KERNEL ivec dot(ivec sums, ivec a, ivec w) {
  ivec even = (ivec)(((shorts)w << 8) >> 8), odd = (ivec)((shorts)w >> 8);
  ivec low = a & 0x00ff00ff, high = (a >> 8) & 0x00ff00ff;
  return sums + multiply_pairs(low, even) + multiply_pairs(high, odd);
}
#elif defined(SIGNED_DOT) && LANES == 4 && defined(__ARM_FEATURE_DOTPROD)
typedef signed char signed_bytes __attribute__((vector_size(16)));
KERNEL ivec dot(ivec sums, ivec a, ivec w) {
#if defined(__clang__)
  /* 34: the result's type, int32x4_t, in the numbering of arm_neon.h. */
  return (ivec)__builtin_neon_vdotq_s32((signed_bytes)sums, (signed_bytes)a, (signed_bytes)w, 34);
#else
  return __builtin_aarch64_sdot_prodv16qi((signed_bytes)a, (signed_bytes)w, sums);
#endif
}
#else
/* Any machine: correct, and slow. */
KERNEL ivec dot(ivec sums, ivec a, ivec w) {
  typedef unsigned bits __attribute__((vector_size(4 * LANES)));
  UNROLL for (int shift = 24; shift >= 0; shift -= 8) {
    ivec weight = (ivec)((bits)w << shift) >> 24;
#ifdef SIGNED_DOT
    ivec input = (ivec)((bits)a << shift) >> 24;
#else
    ivec input = (ivec)((bits)a << shift >> 24);
#endif
    sums += input * weight;
  }
  return sums;
}
#endif

/* last_bits() of one number. */
KERNEL int last_bits_of(float whole) {
  const union {
    float number;
    int bits;
  } higher = {whole + 12582912.0f};
  return higher.bits;
}

/* LANES whole numbers of float32 within int16's range, as such. */
KERNEL void store_shorts(short* to, vec whole) {
  store_lane_shorts(to, __builtin_convertvector(last_bits(whole), lane_shorts));
}

/* What dot() multiplies with weights: bytes that DOT_OFFSET has been taken from. */
#ifdef SIGNED_DOT
#define DOT_OFFSET 128
typedef signed char dot_byte __attribute__((may_alias));
#else
#define DOT_OFFSET 0
typedef unsigned char dot_byte __attribute__((may_alias));
#endif

/* LANES whole numbers of float32 within the range of such bytes. */
KERNEL void store_dot_bytes(dot_byte* to, vec whole) {
  typedef dot_byte lane_bytes_of_dot __attribute__((vector_size(LANES)));
  typedef dot_byte in_memory __attribute__((vector_size(LANES), aligned(1), may_alias));
  *(in_memory*)to = __builtin_convertvector(last_bits(whole), lane_bytes_of_dot);
}

#endif /* RUN_MODEL_KERNELS_WORDS_H_ */
