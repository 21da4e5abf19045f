/* Products of a row tile with a tile of vectors of columns, for f32-gemm.c.in, whose macros it
 * reads: in registers, or bytes and bfloat16 by tiles of AMX.  make_products() leaves
 * [row][vector][lane], of which product_at() gives numbers. */
#ifndef RUN_MODEL_KERNELS_GEMM_PRODUCTS_H_
#define RUN_MODEL_KERNELS_GEMM_PRODUCTS_H_

#include "tile.h"

/* STEPS: words of a column and of a row. */
#if defined(AMX_ROWS)
#include "amx_products.h"
#define STEPS (RUN_STEPS * STEP_BYTES / 4)
#elif defined(WHOLE)
#include "words.h"
#define STEPS ((DEPTH + WHOLE - 1) / WHOLE)
#else
#define STEPS DEPTH
#endif

/* What products are made with, VECTOR_WEIGHTS for a vector of columns: words, or weights of few
 * bits that are made words a chunk at a time. */
#ifdef WEIGHT_BITS
#include "compact.h"
#endif
#if defined(UNPACKS_CHUNKS)
typedef unsigned char weight;
#define VECTOR_WEIGHTS COMPACT_BYTES
#elif defined(WEIGHT_BITS)
typedef float weight;
#define VECTOR_WEIGHTS (LANES * COMPACT_ROWS)
#else
typedef float weight;
#define VECTOR_WEIGHTS (LANES * STEPS)
#endif

/* Numbers of activations in a word where both matrices are some. */
#ifdef BFLOAT16
#define IN_WORD 2
#else
#define IN_WORD 1
#endif

/* The left matrix's words lie in rows, or pack_left() puts them so. */
#ifndef LEFT_STRIDE
#define LEFT_STRIDE STEPS
#define PACKS_LEFT 1
#endif

#ifndef AMX_ROWS
#define MOST_TILE_NUMBERS (MOST_TILE_PIXELS * MOST_TILE_VECTORS * LANES)
KERNEL int begin_tiles(void) { return 0; }
KERNEL void end_tiles(int tiles) { (void)tiles; }
#else
#define MOST_TILE_NUMBERS (2 * AMX_ROWS * 2 * LANES)
#endif

typedef struct {
  const float* left;     /* rows LEFT_STRIDE apart */
  const weight* weights; /* [word][vector][lane] */
  const weight* next;    /* the weights that follow, of as many vectors; there may be none */
  int share;             /* which row tile of the task it is, which fetches its part of them */
  float zero;            /* what bytes of rows are less than the numbers were */
  const int* column_sums;
  int tiles; /* whether AMX has been set up */
} operands;

#ifdef AMX_ROWS
KERNEL void make_products(operands of, int rows, int vectors, float* products) {
  const unsigned char* rows_of_tiles[2] = {
      (const unsigned char*)of.left,
      (const unsigned char*)(of.left + (long)AMX_ROWS * LEFT_STRIDE)};
  int start[2 * LANES] = {0};
#ifdef COLUMN_SUMS
  UNROLL for (int v = 0; v < vectors; v++) {
    *(ivec_in_memory*)(start + v * LANES) = load_words(of.column_sums + v * LANES) * (int)of.zero;
  }
#endif
  const signed char* weights = (const signed char*)of.weights;
  if (rows > AMX_ROWS)
    multiply_tiles(of.tiles, 2, vectors, rows_of_tiles, LEFT_STRIDE * 4, weights, start,
                   (ivec*)products);
  else
    multiply_tiles(of.tiles, 1, vectors, rows_of_tiles, LEFT_STRIDE * 4, weights, start,
                   (ivec*)products);
}
#ifdef BFLOAT16
KERNEL vec product_at(const float* from) { return load(from); }
#else
KERNEL vec product_at(const float* from) { return floats(load_words(from)); }
#endif

#else
#ifdef WHOLE
/* The sums are bits of int32 numbers. */
KERNEL void multiply_some(tile_sums sums, int rows, int vectors, const float* left,
                          const float* weights, int steps) {
  NO_UNROLL for (int k = 0; MANY_TIMES(k < steps); k++) {
    ivec w[MOST_TILE_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) {
      w[v] = load_words(weights + ((long)k * vectors + v) * LANES);
    }
    UNROLL for (int r = 0; r < rows; r++) {
      const ivec a = splat_word(left + (long)r * LEFT_STRIDE + k);
      UNROLL for (int v = 0; v < vectors; v++) {
#if WHOLE == 2
        sums[r][v] = (vec)add_pairs((ivec)sums[r][v], a, w[v]);
#else
        sums[r][v] = (vec)dot((ivec)sums[r][v], a, w[v]);
#endif
      }
    }
  }
}
KERNEL vec summed(vec sums) { return floats((ivec)sums); }
#else
KERNEL void multiply_some(tile_sums sums, int rows, int vectors, const float* left,
                          const float* weights, int steps) {
  tile_multiply(sums, 0, rows, vectors, left, LEFT_STRIDE, weights, steps);
}
KERNEL vec summed(vec sums) { return sums; }
#endif

/* sums += left * weights. `next`, of which row tile `share` of the task fetches its part, are the
 * weights that follow, of as many vectors; there may be none. */
KERNEL void gemm_multiply(tile_sums sums, int rows, int vectors, const float* left,
                          const weight* weights, const weight* next, int share) {
#if defined(UNPACKS_CHUNKS)
  (void)next, (void)share;
  enum { CHUNKS = DEPTH / CHUNK * CHUNK };
  NO_UNROLL for (int k = 0; MANY_TIMES(k < CHUNKS); k += CHUNK) {
    multiply_packed(sums, rows, vectors, left, LEFT_STRIDE, weights, k);
  }
  if (CHUNKS < DEPTH) {
    float last[CHUNK * MOST_TILE_VECTORS * LANES] __attribute__((aligned(4 * LANES)));
    unpack(weights, vectors, CHUNKS, last);
    multiply_some(sums, rows, vectors, left + CHUNKS, last, DEPTH - CHUNKS);
  }
#elif defined(AHEAD)
  enum { STEP = 32, LINE = 64 }; /* words between fetches: a few cache lines for each */
  const int all = next ? (long)STEPS * vectors * LANES * 4 / LINE : 0;
  const int lines = (STEP * vectors * LANES * 4 / LINE + AHEAD - 1) / AHEAD;
  const int end = part_start(share + 1, AHEAD, all);
  int at = part_start(share, AHEAD, all);
  NO_UNROLL for (int k = 0; MANY_TIMES(k < STEPS); k += STEP) {
    const int until = at + lines < end ? at + lines : end;
    NO_UNROLL for (; FEW_TIMES(at < until); at++) {
      __builtin_prefetch((const char*)next + (long)at * LINE, 0, 2);
    }
    multiply_some(sums, rows, vectors, left + k, weights + (long)k * vectors * LANES,
                  STEPS - k < STEP ? STEPS - k : STEP);
  }
#else
  (void)next, (void)share;
  multiply_some(sums, rows, vectors, left, weights, STEPS);
#endif
}

KERNEL void make_products(operands of, int rows, int vectors, float* products) {
  tile_sums sums;
  UNROLL for (int v = 0; v < vectors; v++) {
#ifdef COLUMN_SUMS
    const vec start = (vec)(load_words(of.column_sums + v * LANES) * (int)of.zero);
#else
    const vec start = (vec){0};
#endif
    UNROLL for (int r = 0; r < rows; r++) sums[r][v] = start;
  }
  gemm_multiply(sums, rows, vectors, of.left, of.weights, of.next, of.share);
  UNROLL for (int r = 0; r < rows; r++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      store(products + (r * vectors + v) * LANES, summed(sums[r][v]));
    }
  }
}
KERNEL vec product_at(const float* from) { return load(from); }
#endif /* AMX_ROWS */

#endif /* RUN_MODEL_KERNELS_GEMM_PRODUCTS_H_ */
