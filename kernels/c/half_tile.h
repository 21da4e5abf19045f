/* The register tile of tile.h on numbers in half precision.
 *
 * Registers hold sums of at most RUN_PRODUCTS products in float16, a run; between runs they are
 * added to float32 sums in memory.  So what rounding does to a sum is that of a short one, however
 * many products it has, and the float32 sums cost little beside a run (kernels/half_error.md).
 * Where no sum of the layer has more products than a run, there are no others.
 *
 * Weights are divided, channel by channel, by powers of two (half/weights.py) so large that no run
 * can go beyond float16, and so is the bias; the sum is multiplied by that power, which lies
 * SCALE_STEP floats behind the channel's bias, in float32.
 */
#ifndef RUN_MODEL_KERNELS_HALF_TILE_H_
#define RUN_MODEL_KERNELS_HALF_TILE_H_

#if defined(DEPTH) && defined(TAPS)
#define IS_ONE_RUN (TAPS * DEPTH <= RUN_PRODUCTS)
#else
#define IS_ONE_RUN 0
#endif

typedef struct {
  stored_vec run[MOST_TILE_PIXELS][MOST_TILE_VECTORS];
  vec total[MOST_TILE_PIXELS][MOST_TILE_VECTORS];
  /* In the longest run. */
  int products;
} tile_sums[1];

KERNEL void tile_begin(tile_sums sums, int pixels, int vectors, const float* bias) {
  sums->products = 0;
  UNROLL for (int v = 0; v < vectors; v++) {
    const vec b = load(bias + v * LANES);
    UNROLL for (int p = 0; p < pixels; p++) {
      sums->run[p][v] = (stored_vec){0};
      if (!IS_ONE_RUN) sums->total[p][v] = b;
    }
  }
}

KERNEL void tile_resume(tile_sums sums, int pixels, int vectors, const float* kept) {
  sums->products = 0;
  UNROLL for (int p = 0; p < pixels; p++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      sums->run[p][v] = (stored_vec){0};
      if (!IS_ONE_RUN) sums->total[p][v] = kept ? load(kept + (p * vectors + v) * LANES) : (vec){0};
    }
  }
}

KERNEL void tile_keep(tile_sums sums, int pixels, int vectors, float* to) {
  UNROLL for (int p = 0; p < pixels; p++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      const vec run = to_floats(sums->run[p][v]);
      store(to + (p * vectors + v) * LANES, IS_ONE_RUN ? run : sums->total[p][v] + run);
    }
  }
}

/* Ends the runs of `pixels` pixels from `first` on if `count` products more would be too many. */
KERNEL void tile_make_room(tile_sums sums, int first, int pixels, int vectors, int count) {
  if (IS_ONE_RUN) return;
  if (__builtin_expect_with_probability(sums->products + count > RUN_PRODUCTS, 1, 0.1)) {
    UNROLL for (int p = 0; p < pixels; p++) {
      UNROLL for (int v = 0; v < vectors; v++) {
        sums->total[first + p][v] += to_floats(sums->run[first + p][v]);
        sums->run[first + p][v] = (stored_vec){0};
      }
    }
    sums->products = 0;
  }
}

/* As in tile.h; `depth` products are no more than there is room for. */
KERNEL void tile_multiply(tile_sums sums, int first, int pixels, int vectors, const number* input,
                          long pixel_stride, const number* weights, int depth) {
  int k = 0;
  sums->products += depth;
  NO_UNROLL for (; MANY_TIMES(k + LANES <= depth); k += LANES) {
    stored_vec a[MOST_TILE_PIXELS];
    UNROLL for (int p = 0; p < pixels; p++) a[p] = load_stored(input + p * pixel_stride + k);
    UNROLL for (int j = 0; j < LANES; j++) {
      stored_vec w[MOST_TILE_VECTORS];
      UNROLL for (int v = 0; v < vectors; v++) w[v] =
          load_stored(weights + ((k + j) * vectors + v) * LANES);
      UNROLL for (int p = 0; p < pixels; p++) {
        UNROLL for (int v = 0; v < vectors; v++) {
          sums->run[first + p][v] += stored_splat(a[p][j]) * w[v];
        }
      }
    }
  }
  NO_UNROLL for (; MANY_TIMES(k < depth); k++) {
    stored_vec w[MOST_TILE_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) w[v] =
        load_stored(weights + (k * vectors + v) * LANES);
    UNROLL for (int p = 0; p < pixels; p++) {
      stored_vec a = stored_splat(input[p * pixel_stride + k]);
      UNROLL for (int v = 0; v < vectors; v++) sums->run[first + p][v] += a * w[v];
    }
  }
}

/* run[pixel][vector] += a[lane] * weights; room is made for all of them before. */
KERNEL void tile_multiply_lane(tile_sums sums, int pixel, int vector, stored_vec a, int lane,
                               stored_vec weights) {
  sums->run[pixel][vector] += stored_splat(a[lane]) * weights;
}

/* Rounds what epilogue.h makes of a value; a clamp comes after rounding if that is the same. */
KERNEL void store_finished(number* to, vec value, const number* residual, const float* channel) {
#ifndef EPILOGUE
  if (CLAMP_IS_HALF) {
    if (residual) value += load(residual);
    store_stored(to, stored_clamped(to_stored(value)));
    return;
  }
#endif
  store(to, finished(value, residual, channel));
}

/* The same of a sum that is one run, with its bias in it. */
KERNEL void store_run(number* to, stored_vec sum, const number* residual, const float* channel) {
  const vec scale = load(channel + SCALE_STEP);
#ifndef EPILOGUE
  if (CLAMP_IS_HALF && !residual) {
    store_stored(to, stored_clamped(sum * to_stored(scale)));
    return;
  }
#endif
  store_finished(to, to_floats(sum) * scale, residual, channel);
}

KERNEL void tile_end(tile_sums sums, int pixels, int vectors, number* output, long vector_stride,
                     const number* residual, const float* bias) {
  UNROLL for (int v = 0; v < vectors; v++) {
    const vec scale = load(bias + SCALE_STEP + v * LANES), b = load(bias + v * LANES);
    UNROLL for (int p = 0; p < pixels; p++) {
      const long at = v * vector_stride + p * LANES;
      const vec sum = to_floats(sums->run[p][v]) + (IS_ONE_RUN ? b : sums->total[p][v]);
      store_finished(output + at, sum * scale, residual ? residual + at : 0, bias + v * LANES);
    }
  }
}

KERNEL int tile_is_not_finite(tile_sums sums, int pixels, int vectors) {
  vec zeros = {0};
  UNROLL for (int v = 0; v < vectors; v++) {
    UNROLL for (int p = 0; p < pixels; p++) {
      zeros += to_floats(sums->run[p][v]) * 0.0f;
      if (!IS_ONE_RUN) zeros += sums->total[p][v] * 0.0f;
    }
  }
  return has_nan(zeros);
}

KERNEL void store_sum(number* to, vec sum, const number* residual, const float* bias) {
  store_finished(to, sum * load(bias + SCALE_STEP), residual, bias);
}

#endif /* RUN_MODEL_KERNELS_HALF_TILE_H_ */
