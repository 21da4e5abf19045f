/* Winograd's transforms along one axis, for tiles of OUT_TILE outputs under a kernel of three taps.
 *
 * A tile of OUT_TILE outputs needs IN_TILE = OUT_TILE + 2 inputs.  Both polynomials, the inputs'
 * and the taps', are evaluated at 0, infinity and the pairs +a, -a of POINTS, multiplied there, and
 * the outputs are read off the products (Winograd 1980; Lavin and Gray, arXiv:1509.09308; the
 * matrices are those of winograd_points.py, which also makes the macros).  How much each tile
 * rounds is in winograd_error.md: F(2, 3) as much as the definition, F(4, 3) twice and F(6, 3) ten
 * times.
 *
 * Values at the points are kept in the order 0, infinity, +a, -a, +b, -b: a *pair* is number 0 for
 * the first two and 1 + i for the points of POINTS[i].  What is the same in both members of a pair
 * is computed once.  Of a two-dimensional tile no more than one pair of rows is in registers at a
 * time, going in, and the even or the odd rows, going out: for F(4, 3) 12 vectors and a few
 * temporaries.
 *
 * With E(x) the product of (x^2 - a^2) over POINTS, which has only even powers:
 *   EVEN[k]     the coefficient of x^2k in E
 *   WITHOUT[i]  the same of E(x) / (x^2 - POINTS[i]^2)
 * whose leading coefficients are 1 and left out.
 *
 * In half precision, values are computed in it from the inputs, which rounds hardly more than
 * storing them does, and outputs in float32 (kernels/half_error.md).
 *
 * Taps are divided by what the points' construction leaves over: TAP_ZERO is what the first tap
 * counts at 0, and FIRST_TAP[i], MIDDLE_TAP[i], LAST_TAP[i] what each does at POINTS[i]; at
 * infinity only the last one counts, once.
 */
#ifndef RUN_MODEL_KERNELS_WINOGRAD_TRANSFORM_H_
#define RUN_MODEL_KERNELS_WINOGRAD_TRANSFORM_H_

#include "vector.h"

#define IN_TILE (OUT_TILE + 2)
#define PAIRS (IN_TILE / 2)
#define POSITIONS (IN_TILE * IN_TILE)

/* One pair of values at the points from IN_TILE inputs. */
KERNEL void evaluate_pair(int pair, const stored_vec* x, stored_vec* first, stored_vec* second) {
  static const float points[] = POINTS, even[] = EVEN;
  static const float without[PAIRS - 1][OUT_TILE / 2] = WITHOUT;
  if (pair == 0) {
    stored_vec a = x[OUT_TILE], b = x[OUT_TILE + 1];
    UNROLL for (int k = 0; k < OUT_TILE / 2; k++) {
      a += x[2 * k] * (number)even[k];
      b += x[2 * k + 1] * (number)even[k];
    }
    *first = a;
    *second = b;
  } else {
    stored_vec a = x[OUT_TILE], b = x[OUT_TILE - 1];
    UNROLL for (int k = 0; k < OUT_TILE / 2 - 1; k++) {
      a += x[2 * k + 2] * (number)without[pair - 1][k];
      b += x[2 * k + 1] * (number)without[pair - 1][k];
    }
    *first = a + b * (number)points[pair - 1];
    *second = a - b * (number)points[pair - 1];
  }
}

/* The even (`odd` = 0) or odd ones of OUT_TILE outputs from IN_TILE products at the points, which
 * take the sums or the differences of the pairs: outputs[k / 2] is number k. */
KERNEL void interpolate_half(int odd, const vec* products, vec* outputs) {
  static const float points[] = POINTS;
  vec pairs[PAIRS - 1];
  UNROLL for (int i = 0; i < PAIRS - 1; i++) {
    pairs[i] =
        odd ? products[2 + 2 * i] - products[3 + 2 * i] : products[2 + 2 * i] + products[3 + 2 * i];
  }
  UNROLL for (int k = odd; k < OUT_TILE; k += 2) {
    float power = odd ? points[0] : 1;
    UNROLL for (int e = 1; e < k; e += 2) power *= points[0] * points[0];
    vec total = pairs[0] * power;
    if (k == 0) total += products[0];
    if (k == OUT_TILE - 1) total += products[1];
    UNROLL for (int i = 1; i < PAIRS - 1; i++) {
      power = odd ? points[i] : 1;
      UNROLL for (int e = 1; e < k; e += 2) power *= points[i] * points[i];
      total += pairs[i] * power;
    }
    outputs[k / 2] = total;
  }
}

/* The values of tiles at all POSITIONS points: to[position * position_stride], position = IN_TILE
 * * (row's point) + (column's point).  Pixel (i, j) of a tile is from[i * row_stride + j %
 * OUT_TILE * column_stride + j / OUT_TILE * next_tile].
 */
KERNEL void evaluate_tiles(const number* from, long row_stride, long column_stride, long next_tile,
                           number* to, long position_stride) {
  UNROLL for (int pair = 0; pair < PAIRS; pair++) {
    stored_vec rows[2][IN_TILE];
    UNROLL for (int j = 0; j < IN_TILE; j++) {
      stored_vec column[IN_TILE];
      const number* pixels = from + j % OUT_TILE * column_stride + j / OUT_TILE * next_tile;
      UNROLL for (int i = 0; i < IN_TILE; i++) column[i] = load_stored(pixels + i * row_stride);
      evaluate_pair(pair, column, &rows[0][j], &rows[1][j]);
    }
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int other = 0; other < PAIRS; other++) {
        stored_vec values[2];
        evaluate_pair(other, rows[r], &values[0], &values[1]);
        UNROLL for (int s = 0; s < 2; s++) {
          store_stored(to + ((2 * pair + r) * IN_TILE + 2 * other + s) * position_stride,
                       values[s]);
        }
      }
    }
  }
}

/* The same of one tile of a block of channels, whose pixel (i, j) is from[i * row_stride + j *
 * LANES]. */
KERNEL void evaluate_tile(const number* from, long row_stride, number* to, long position_stride) {
  evaluate_tiles(from, row_stride, LANES, OUT_TILE * LANES, to, position_stride);
}

/* One pair of values at the points from three taps. */
KERNEL void evaluate_taps_pair(int pair, const stored_vec* taps, stored_vec* first,
                               stored_vec* second) {
  static const float first_tap[] = FIRST_TAP, middle_tap[] = MIDDLE_TAP, last_tap[] = LAST_TAP;
  if (pair == 0) {
    *first = taps[0] * (number)TAP_ZERO;
    *second = taps[2];
  } else {
    stored_vec even = taps[0] * (number)first_tap[pair - 1] + taps[2] * (number)last_tap[pair - 1];
    *first = even + taps[1] * (number)middle_tap[pair - 1];
    *second = even - taps[1] * (number)middle_tap[pair - 1];
  }
}

/* The values of 3 x 3 taps, vectors one after the other, at all POSITIONS points, as
 * evaluate_tile() orders them. */
KERNEL void evaluate_taps(const number* from, number* to, long position_stride) {
  UNROLL for (int pair = 0; pair < PAIRS; pair++) {
    stored_vec rows[2][3];
    UNROLL for (int j = 0; j < 3; j++) {
      stored_vec column[3];
      UNROLL for (int i = 0; i < 3; i++) column[i] = load_stored(from + (i * 3 + j) * LANES);
      evaluate_taps_pair(pair, column, &rows[0][j], &rows[1][j]);
    }
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int other = 0; other < PAIRS; other++) {
        stored_vec values[2];
        evaluate_taps_pair(other, rows[r], &values[0], &values[1]);
        UNROLL for (int s = 0; s < 2; s++) {
          store_stored(to + ((2 * pair + r) * IN_TILE + 2 * other + s) * position_stride,
                       values[s]);
        }
      }
    }
  }
}

/* The even or odd rows of a tile of outputs, whose products at position p are from[p *
 * position_stride]. */
KERNEL void interpolate_rows(int odd, const float* from, long position_stride,
                             vec outputs[OUT_TILE / 2][OUT_TILE]) {
  vec rows[OUT_TILE / 2][IN_TILE];
  UNROLL for (int j = 0; j < IN_TILE; j++) {
    vec products[IN_TILE], column[OUT_TILE / 2];
    UNROLL for (int i = 0; i < IN_TILE; i++) {
      products[i] = load(from + (i * IN_TILE + j) * position_stride);
    }
    interpolate_half(odd, products, column);
    UNROLL for (int i = 0; i < OUT_TILE / 2; i++) rows[i][j] = column[i];
  }
  UNROLL for (int i = 0; i < OUT_TILE / 2; i++) {
    vec even[OUT_TILE / 2], others[OUT_TILE / 2];
    interpolate_half(0, rows[i], even);
    interpolate_half(1, rows[i], others);
    UNROLL for (int j = 0; j < OUT_TILE; j++) outputs[i][j] = j % 2 ? others[j / 2] : even[j / 2];
  }
}

#endif /* RUN_MODEL_KERNELS_WINOGRAD_TRANSFORM_H_ */
