/* The register tile: some pixels x some vectors of output channels, accumulated in registers.
 *
 * Register budget (vectors): `pixels * vectors` sums, `vectors` weights and the inputs must fit.
 *   AVX-512  32 registers: 14 x 2 sums + 2 + 1, 9 x 3 + 3 + 1, 28 x 1 + 1
 *   AVX2     16 registers:  6 x 2 sums + 2 + 1, 4 x 3 + 3 + 1, 12 x 1 + 1
 *   NEON 64  32 registers:  7 x 3 sums + 3 + 7, 8 x 2 + 2 + 8, 5 x 4 + 4 + 5
 *   NEON 32  16 registers:  4 x 2 sums + 2 + 4
 *   NEON 64 in half precision: as with float32, of twice as many channels (half_tile.h)
 * x86 broadcasts an input as it loads it (with one vector, in the multiplication itself), so the
 * inputs need one register at most.  NEON multiplies by a lane of a register, so a load of four
 * channels serves four multiplications, and every pixel needs one register, on NEON 32 one of the
 * first eight.
 *
 * `first`, `pixels` and `vectors` are constants at every call: then the loops over them unroll and
 * `sums` lives in registers.
 */
#ifndef RUN_MODEL_KERNELS_TILE_H_
#define RUN_MODEL_KERNELS_TILE_H_

#include "epilogue.h"

#define MOST_TILE_PIXELS 28
#define MOST_TILE_VECTORS 4

/* Things cut into tiles as equal as can be: the first `larger` have `size + 1`, the others `size`.
 */
KERNEL int tile_start(int tile, int larger, int size) {
  return tile * size + (tile < larger ? tile : larger);
}

/* Layers in half precision that multiply nothing have no RUN_PRODUCTS. */
#if defined(RUN_PRODUCTS)
#include "half_tile.h"
#elif !defined(HALF)

typedef vec tile_sums[MOST_TILE_PIXELS][MOST_TILE_VECTORS];

/* Every pixel's sums begin with the bias. */
KERNEL void tile_begin(tile_sums sums, int pixels, int vectors, const float* bias) {
  UNROLL for (int v = 0; v < vectors; v++) {
    vec b = load(bias + v * LANES);
    UNROLL for (int p = 0; p < pixels; p++) sums[p][v] = b;
  }
}

/* sums[first + p][v] += input[p * pixel_stride + k] * weights[(k * vectors + v) * LANES ...] for
 * `pixels` values of p and `depth` of k.  Strides count floats. */
KERNEL void tile_multiply(tile_sums sums, int first, int pixels, int vectors, const float* input,
                          long pixel_stride, const float* weights, int depth) {
  int k = 0;
#if defined(NEON_ARMV7)
  const float* w_next = weights;
  NO_UNROLL for (; MANY_TIMES(k + 4 <= depth); k += 4) {
    const float* a_next = input + k;
    vec a[MOST_TILE_PIXELS];
    UNROLL for (int p = 0; p < pixels; p++) a[p] = load_stepping(&a_next, pixel_stride * 4);
    UNROLL for (int j = 0; j < 4; j++) {
      vec w[MOST_TILE_VECTORS];
      UNROLL for (int v = 0; v < vectors; v++) w[v] = load_next(&w_next);
      UNROLL for (int p = 0; p < pixels; p++) {
        UNROLL for (int v = 0; v < vectors; v++) {
          sums[first + p][v] = multiply_add_lane(sums[first + p][v], a[p], j, w[v]);
        }
      }
    }
  }
#elif defined(MULTIPLIES_BY_LANE)
  NO_UNROLL for (; MANY_TIMES(k + 4 <= depth); k += 4) {
    vec a[MOST_TILE_PIXELS];
    UNROLL for (int p = 0; p < pixels; p++) a[p] = load(input + p * pixel_stride + k);
    UNROLL for (int j = 0; j < 4; j++) {
      vec w[MOST_TILE_VECTORS];
      UNROLL for (int v = 0; v < vectors; v++) w[v] =
          load(weights + ((k + j) * vectors + v) * LANES);
      UNROLL for (int p = 0; p < pixels; p++) {
        UNROLL for (int v = 0; v < vectors; v++) {
          sums[first + p][v] = multiply_add_lane(sums[first + p][v], a[p], j, w[v]);
        }
      }
    }
  }
#endif
  NO_UNROLL for (; MANY_TIMES(k < depth); k++) {
    vec w[MOST_TILE_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) w[v] = load(weights + (k * vectors + v) * LANES);
    UNROLL for (int p = 0; p < pixels; p++) {
      vec a = splat(input[p * pixel_stride + k]);
      UNROLL for (int v = 0; v < vectors; v++) sums[first + p][v] += a * w[v];
    }
  }
}

/* For tiles in half precision, whose sums need it. */
KERNEL void tile_make_room(tile_sums sums, int first, int pixels, int vectors, int count) {
  (void)sums, (void)first, (void)pixels, (void)vectors, (void)count;
}

/* Goes on with sums that tile_keep() has put into memory, [pixel][vector][lane], or begins with
 * zeros without any. */
KERNEL void tile_resume(tile_sums sums, int pixels, int vectors, const float* kept) {
  UNROLL for (int p = 0; p < pixels; p++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      sums[p][v] = kept ? load(kept + (p * vectors + v) * LANES) : (vec){0};
    }
  }
}

KERNEL void tile_keep(tile_sums sums, int pixels, int vectors, float* to) {
  UNROLL for (int p = 0; p < pixels; p++) {
    UNROLL for (int v = 0; v < vectors; v++) store(to + (p * vectors + v) * LANES, sums[p][v]);
  }
}

/* Finishes (epilogue.h) and stores.  A pixel is LANES floats from the one before it, a vector
 * `vector_stride` floats, in both `output` and `residual`, which may be null. */
KERNEL void tile_end(tile_sums sums, int pixels, int vectors, float* output, long vector_stride,
                     const float* residual, const float* bias) {
  UNROLL for (int v = 0; v < vectors; v++) {
    UNROLL for (int p = 0; p < pixels; p++) {
      const float* other = residual ? residual + v * vector_stride + p * LANES : 0;
      store(output + v * vector_stride + p * LANES, finished(sums[p][v], other, bias + v * LANES));
    }
  }
}

/* Whether a sum is a NaN or infinite. */
KERNEL int tile_is_not_finite(tile_sums sums, int pixels, int vectors) {
  vec zeros[4] = {{0}}; /* Four, so that one addition need not wait for the other. */
  UNROLL for (int v = 0; v < vectors; v++) {
    UNROLL for (int p = 0; p < pixels; p++) zeros[(p + v) % 4] += sums[p][v] * 0.0f;
  }
  return has_nan((zeros[0] + zeros[1]) + (zeros[2] + zeros[3]));
}

/* What tile_end() does, of one sum; `bias`: of its vector. */
KERNEL void store_sum(float* to, vec sum, const float* residual, const float* bias) {
  store(to, finished(sum, residual, bias));
}

/* A register tile whose last vector of output channels is half a vector: where 24 channels lie in
 * two blocks of 16 lanes, a processor that takes a vector of 16 in two steps saves a quarter of
 * them. Registers: `pixels * vectors` sums, `vectors` weights and an input. */
typedef float half_vec __attribute__((vector_size(2 * LANES)));
typedef float half_vec_in_memory __attribute__((vector_size(2 * LANES), aligned(4), may_alias));

KERNEL half_vec load_half(const float* from) { return *(const half_vec_in_memory*)from; }

/* The sums of vector `vectors - 1` are in `halves`; weights lie as for tile_multiply. */
KERNEL void half_tile_multiply(tile_sums sums, half_vec* halves, int pixels, int vectors,
                               const float* input, long pixel_stride, const float* weights,
                               int depth) {
  NO_UNROLL for (int k = 0; MANY_TIMES(k < depth); k++) {
    const float* from = weights + (long)k * vectors * LANES;
    vec w[MOST_TILE_VECTORS];
    UNROLL for (int v = 0; v < vectors - 1; v++) w[v] = load(from + v * LANES);
    half_vec last = load_half(from + (vectors - 1) * LANES);
    UNROLL for (int p = 0; p < pixels; p++) {
      float a = input[p * pixel_stride + k];
      UNROLL for (int v = 0; v < vectors - 1; v++) sums[p][v] += splat(a) * w[v];
      halves[p] += (a - (half_vec){0}) * last;
    }
  }
}

/* The half as a vector, with zeros behind it. */
KERNEL vec widened(half_vec half) {
  union {
    half_vec half[2];
    vec whole;
  } both = {{half, (half_vec){0}}};
  return both.whole;
}

#ifdef MULTIPLIES_BY_LANE
/* sums[pixel][vector] += a[lane] * weights; `lane` is a constant at every call. */
KERNEL void tile_multiply_lane(tile_sums sums, int pixel, int vector, vec a, int lane,
                               vec weights) {
  sums[pixel][vector] = multiply_add_lane(sums[pixel][vector], a, lane, weights);
}
#endif

#endif /* !HALF */

/* Along one axis, output `position` reads inputs position * stride - padding + tap * dilation; the
 * taps from first_tap to before end_tap are those inside the picture.  There may be none: then
 * end_tap is not above first_tap. */
KERNEL int first_tap(int position, int stride, int dilation, int padding) {
  int outside = padding - position * stride;
  return outside > 0 ? (outside + dilation - 1) / dilation : 0;
}

KERNEL int end_tap(int position, int stride, int dilation, int padding, int size, int taps) {
  int inside = size + padding - position * stride;
  if (inside <= 0) return 0;
  int end = (inside + dilation - 1) / dilation;
  return end < taps ? end : taps;
}

#endif /* RUN_MODEL_KERNELS_TILE_H_ */
