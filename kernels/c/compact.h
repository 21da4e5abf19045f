/* Weights of 4, 8 or 16 bits, as float32 again (compact_weights.py).
 *
 * Of a tile of vectors of columns they lie block after block of WEIGHT_BLOCK rows: steps
 * [vector][lane] in float32, zeros [vector][lane] in bytes, and numbers [row][vector][lane], of 4
 * bits eight rows in the words of one, the first in the lowest bits.  A weight is
 * (number - zero) * step; with WEIGHT_LEVELS, a list of 16 numbers, there are no zeros, and it is
 * level[number] * step; with WEIGHT_FLOAT8 a number is a float8, of four bits of exponent, times a
 * step.  Those of 16 bits have no steps and zeros: they are bfloat16 or, with WEIGHT_HALF, float16.
 *
 * Macros: WEIGHT_BITS, WEIGHT_BLOCK, WEIGHT_HALF, WEIGHT_LEVELS, WEIGHT_FLOAT8; CHUNK, rows that
 * are made float32 at a time, of which a block has several.
 */
#ifndef RUN_MODEL_KERNELS_COMPACT_H_
#define RUN_MODEL_KERNELS_COMPACT_H_

#include "bfloat16.h"
#include "tile.h"

#if WEIGHT_BITS == 16
#define STEP_AND_ZERO_BYTES 0
#elif defined(WEIGHT_LEVELS) || defined(WEIGHT_FLOAT8)
#define STEP_AND_ZERO_BYTES 4
#else
#define STEP_AND_ZERO_BYTES 5
#endif

/* Of a vector of columns. */
enum {
  BLOCK_BYTES = LANES * (STEP_AND_ZERO_BYTES + WEIGHT_BLOCK * WEIGHT_BITS / 8),
  COMPACT_BYTES = (DEPTH + WEIGHT_BLOCK - 1) / WEIGHT_BLOCK * BLOCK_BYTES,
  COMPACT_ROWS = (DEPTH + CHUNK - 1) / CHUNK * CHUNK /* that unpacked() makes of DEPTH */
};

/* Weights that are loaded together, as `raw_weights`: of TOGETHER rows, RAW_BYTES of each vector.
 */
#if WEIGHT_BITS == 4
#define TOGETHER 8
#define RAW_BYTES (4 * LANES)
typedef ivec raw_weights;
KERNEL raw_weights load_raw(const unsigned char* from) { return load_words(from); }

#ifdef WEIGHT_LEVELS
static const float levels[16] = WEIGHT_LEVELS;
#else
static const float levels[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#endif

/* The number, or level, that bits 4 * row ... 4 * row + 3 are. */
KERNEL vec number_of(raw_weights words, int row) {
#if defined(__clang__) && defined(__AVX512F__) && LANES == 16
  /* Of a place in a table the instruction reads the lowest four bits. */
  return (vec)__builtin_ia32_permvarsf512(load_floats(levels), words >> 4 * row);
#elif !defined(WEIGHT_LEVELS)
  return floats(words >> 4 * row & 15);
#elif defined(__clang__) && defined(__AVX2__) && LANES == 8
  /* Three bits are read, and of what chooses between the two the highest one. */
  const ivec place = words >> 4 * row;
  return (vec)__builtin_ia32_blendvps256(
      (vec)__builtin_ia32_permvarsf256(load_floats(levels), place),
      (vec)__builtin_ia32_permvarsf256(load_floats(levels + 8), place),
      (vec)(words << (28 - 4 * row)));
#elif defined(NEON_CLANG) && defined(__aarch64__)
  /* Of 64 bytes those at the places of each number's four (32: the type int8x16_t). */
  typedef neon_bytes in_memory __attribute__((aligned(4), may_alias));
  const in_memory* const table = (const in_memory*)levels;
  neon_vec level = {(vec)((words >> 4 * row & 15) * 0x04040404 + 0x03020100)};
  UNROLL for (int i = 0; i < LANES / 4; i++) {
    level.part[i] = (neon_bytes)__builtin_neon_vqtbl4q_v(table[0], table[1], table[2], table[3],
                                                         level.part[i], 32);
  }
  return level.whole;
#else
  vec level;
  const ivec places = words >> 4 * row & 15;
  for (int i = 0; i < LANES; i++) level[i] = levels[places[i]];
  return level;
#endif
}
#else
#define TOGETHER 1
#define RAW_BYTES (LANES * WEIGHT_BITS / 8)
typedef vec raw_weights;
KERNEL vec number_of(raw_weights number, int row) {
  (void)row;
  return number;
}
#endif

#if defined(WEIGHT_FLOAT8)
/* As float16 below. */
KERNEL raw_weights load_raw(const unsigned char* from) {
  const word_bits byte = __builtin_convertvector(load_bytes(from), word_bits);
  const vec size = (vec)((byte & 0x7f) << 20) * splat(0x1p120f);
  return (vec)((word_bits)size | (byte & 0x80) << 24);
}
#elif WEIGHT_BITS == 8
KERNEL raw_weights load_raw(const unsigned char* from) { return floats_of_bytes(load_bytes(from)); }
#elif WEIGHT_BITS == 16
KERNEL raw_weights load_raw(const unsigned char* from) {
#if !defined(WEIGHT_HALF)
  return load_bfloat16(from);
#elif defined(__clang__) && (defined(__F16C__) || defined(__aarch64__))
  typedef _Float16 half_numbers __attribute__((vector_size(2 * LANES)));
  typedef _Float16 in_memory __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
  return __builtin_convertvector((half_numbers) * (const in_memory*)from, vec);
#else
  /* Float32's exponent begins 112 lower; below 2^-14 the product is one of numbers below 2^-126. */
  const word_bits half =
      __builtin_convertvector((halves) * (const halves_in_memory*)from, word_bits);
  const vec size = (vec)((half & 0x7fff) << 13) * splat(0x1p112f);
  return (vec)((word_bits)size | (half & 0x8000) << 16);
#endif
}
#endif

/* Where CHUNK rows from `first` on, a multiple of CHUNK, of a tile of vectors are. */
typedef struct {
  const unsigned char* numbers;
  vec steps[MOST_TILE_VECTORS], zeros[MOST_TILE_VECTORS];
} weight_rows;

KERNEL weight_rows weight_rows_at(const unsigned char* weights, int vectors, int first) {
  const unsigned char* block = weights + (long)(first / WEIGHT_BLOCK) * BLOCK_BYTES * vectors;
  weight_rows rows;
  rows.numbers = block + LANES * vectors *
                             (STEP_AND_ZERO_BYTES + (long)(first % WEIGHT_BLOCK) * WEIGHT_BITS / 8);
  UNROLL for (int v = 0; v < vectors; v++) {
#if WEIGHT_BITS == 16
    rows.steps[v] = splat(1), rows.zeros[v] = (vec){0};
#else
    rows.steps[v] = load((const float*)block + v * LANES);
#if STEP_AND_ZERO_BYTES == 4
    rows.zeros[v] = (vec){0};
#else
    rows.zeros[v] = floats_of_bytes(load_bytes(block + LANES * (4 * vectors + v)));
#endif
#endif
  }
  return rows;
}

/* Gives the next TOGETHER rows' weights and goes on; what comes soon is brought nearer (beyond the
 * weights' end this does nothing). */
KERNEL void load_together(raw_weights* raw, weight_rows* rows, int vectors) {
  enum { AHEAD_BYTES = 2048, LINE = 64 };
  UNROLL for (int at = 0; at < vectors * RAW_BYTES; at += LINE) {
    __builtin_prefetch(rows->numbers + AHEAD_BYTES + at);
  }
  UNROLL for (int v = 0; v < vectors; v++) raw[v] = load_raw(rows->numbers + v * RAW_BYTES);
  rows->numbers += vectors * RAW_BYTES;
}

KERNEL vec without_zero(vec number, vec zero) {
  return STEP_AND_ZERO_BYTES == 5 ? number - zero : number;
}

KERNEL vec in_steps(vec value, vec step) { return WEIGHT_BITS == 16 ? value : value * step; }

/* CHUNK rows as float32, [row][vector][lane]. */
KERNEL void unpack(const unsigned char* weights, int vectors, int first, float* to) {
  weight_rows rows = weight_rows_at(weights, vectors, first);
  NO_UNROLL for (int k = 0; k < CHUNK; k += TOGETHER) {
    raw_weights raw[MOST_TILE_VECTORS];
    load_together(raw, &rows, vectors);
    UNROLL for (int row = 0; row < TOGETHER; row++) {
      UNROLL for (int v = 0; v < vectors; v++, to += LANES) {
        store(to, in_steps(without_zero(number_of(raw[v], row), rows.zeros[v]), rows.steps[v]));
      }
    }
  }
}

/* sums += left * CHUNK rows: where few rows of the left matrix read the weights, steps are left to
 * the sums. */
KERNEL void multiply_packed(tile_sums sums, int pixels, int vectors, const float* left,
                            long pixel_stride, const unsigned char* weights, int first) {
  weight_rows rows = weight_rows_at(weights, vectors, first);
  tile_sums part;
  UNROLL for (int p = 0; p < pixels; p++) {
    UNROLL for (int v = 0; v < vectors; v++) part[p][v] = (vec){0};
  }
  NO_UNROLL for (int k = first; MANY_TIMES(k < first + CHUNK); k += TOGETHER) {
    raw_weights raw[MOST_TILE_VECTORS];
    load_together(raw, &rows, vectors);
    UNROLL for (int row = 0; row < TOGETHER; row++) {
      vec w[MOST_TILE_VECTORS];
      UNROLL for (int v = 0; v < vectors; v++) w[v] =
          without_zero(number_of(raw[v], row), rows.zeros[v]);
      UNROLL for (int p = 0; p < pixels; p++) {
        const vec a = splat(left[p * pixel_stride + k + row]);
        UNROLL for (int v = 0; v < vectors; v++) part[p][v] += a * w[v];
      }
    }
  }
  UNROLL for (int p = 0; p < pixels; p++) {
    UNROLL for (int v = 0; v < vectors; v++) sums[p][v] += in_steps(part[p][v], rows.steps[v]);
  }
}

#endif /* RUN_MODEL_KERNELS_COMPACT_H_ */
