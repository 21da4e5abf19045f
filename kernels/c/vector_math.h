/* Functions of vectors of float32 numbers: exp, log, erf, tanh, sigmoid and what is made of them,
 * sine, cosine, tangent and arctangent.
 *
 * Nothing here branches, but where a sine's angle is large, so NaN goes in and out in any lane, and
 * infinities and denormal numbers give what they should.  Errors against the exact value, in units
 * of its last place, are bounded by tests/kernels/programs/vector_math_test.py over all exponents
 * of float32: exponentials 2, logarithm 2, error_function 6, hyperbolic_tangent 3, sigmoid 3,
 * softplus 3, tanh_of_softplus 4, sine, cosine and arctangent 2, tangent 4. On 32-bit NEON, which
 * takes denormal numbers for zero, results below 2^-126 are zero. The polynomials are minimax fits
 * over the ranges that the comments name, to 2^-25 or better.
 */
#ifndef RUN_MODEL_KERNELS_VECTOR_MATH_H_
#define RUN_MODEL_KERNELS_VECTOR_MATH_H_

#include "vector.h"

KERNEL vec at_least(vec x, float low) { return maximum(x, splat(low)); }

KERNEL vec at_most(vec x, float high) { return minimum(x, splat(high)); }

KERNEL vec absolute(vec x) { return (vec)((ivec)x & 0x7fffffff); }

KERNEL vec square_root(vec x) {
#if defined(__clang__)
  return __builtin_elementwise_sqrt(x);
#else
  for (int i = 0; i < LANES; i++) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

/* c[0] + c[1] x + ... + c[count - 1] x^(count - 1); `count` is a constant at every call. */
KERNEL vec polynomial(vec x, const float* c, int count) {
  vec sum = splat(c[count - 1]);
  UNROLL for (int i = count - 2; i >= 0; i--) sum = sum * x + splat(c[i]);
  return sum;
}

/* 2^k for k in -126 ... 127. */
KERNEL vec power_of_two(ivec k) { return (vec)((k + 127) << 23); }

/* Adding this to a number below 2^22 leaves the nearest whole number in the last bits. */
#define ROUNDING_SHIFT 0x1.8p23f
#define LN2_HIGH 0x1.62e400p-1f /* Few enough bits for exact products. */
#define LN2_LOW 0x1.7f7d1cp-20f
#define LN_SMALLEST -0x1.5d589ep6f /* Of 2^-126, the smallest number that is not denormal. */

/* x = k ln 2 + r with |r| <= ln 2 / 2; gives e^r - 1 and k.  |x| is below 128. */
KERNEL vec reduced_exponential(vec x, ivec* k) {
  static const float c[] = {0x1p-1f, 0x1.5554b2p-3f, 0x1.55548ap-5f, 0x1.1226a4p-7f,
                            0x1.6d96e8p-10f};
  const vec shifted = x * splat(0x1.715476p0f) + splat(ROUNDING_SHIFT);
  const vec whole = shifted - splat(ROUNDING_SHIFT);
  const vec r = (x - whole * splat(LN2_HIGH)) - whole * splat(LN2_LOW);
  *k = (ivec)shifted - (ivec)splat(ROUNDING_SHIFT);
  return r + r * r * polynomial(r, c, 5);
}

KERNEL vec exponential(vec x) {
  ivec k;
  const vec less_one = reduced_exponential(at_most(at_least(x, -104.0f), 89.0f), &k);
  /* In two steps: the result may be denormal or infinite, its factors are neither.  What is far
   * below comes from masks, and is many numbers; a product that underflows takes as long as a
   * hundred others, one with zero does not. */
  const ivec half = k >> 1;
  const ivec is_zero = x < splat(-104.0f);
  const vec last = (vec)((ivec)power_of_two(k - half) & ~is_zero);
  return (less_one + splat(1.0f)) * power_of_two(half) * last;
}

/* Of x <= 0, and 0 where the result would be denormal.  A mask of -100 leaves whole matrices of
 * such numbers, which no product can tell from 0 but by taking a hundred times as long. */
KERNEL vec normal_exponential(vec x) {
  ivec k;
  const vec less_one = reduced_exponential(at_least(x, LN_SMALLEST), &k);
  return (vec)((ivec)((less_one + splat(1.0f)) * power_of_two(k)) & ~(x < splat(LN_SMALLEST)));
}

KERNEL vec logarithm(vec x) {
  static const float c[] = {0x1.55554ap-2f, -0x1.000220p-2f, 0x1.99a5a4p-3f, -0x1.547844p-3f,
                            0x1.226cd2p-3f, -0x1.0ce1e6p-3f, 0x1.07dc32p-3f, -0x1.420268p-4f};
  const ivec tiny = x < splat(0x1p-126f);
  const vec normal = chosen(tiny, x * splat(0x1p24f), x);
  /* normal = m 2^k with m in sqrt(1/2) ... sqrt(2). */
  const ivec exponent = ((ivec)normal - 0x3f3504f3) & (int)0xff800000;
  const vec f = (vec)((ivec)normal - exponent) - splat(1.0f);
  const vec k = __builtin_convertvector((exponent >> 23) - (tiny & 24), vec);
  const vec tail = f * f * (f * polynomial(f, c, 8) - splat(0.5f)) + k * splat(LN2_LOW);
  vec result = (f + tail) + k * splat(LN2_HIGH);
  result = chosen(x == splat(__builtin_inff()), x, result);
  result = chosen(x == (vec){0}, splat(-__builtin_inff()), result);
  return chosen(x >= (vec){0}, result, splat(__builtin_nanf("")));
}

/* 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x: a quotient of polynomials up to 3.93,
 * from where on it is 1. */
KERNEL vec error_function(vec x) {
  static const float p[] = {0x1.20dd74p0f,  0x1.86b8a2p-3f,  0x1.b074a4p-5f,
                            0x1.ef6384p-9f, 0x1.2aa3d2p-12f, 0x1.121188p-19f};
  static const float q[] = {1.0f,           0x1.013bb8p-1f,  0x1.d3fecep-4f,
                            0x1.eb6e10p-7f, 0x1.31726cp-10f, 0x1.3eccb6p-15f};
  const vec a = at_most(at_least(x, -3.93f), 3.93f);
  const vec square = a * a;
  return at_most(at_least(a * polynomial(square, p, 6) / polynomial(square, q, 6), -1.0f), 1.0f);
}

/* By e^(2|x|) - 1, which keeps the digits of small numbers. */
KERNEL vec hyperbolic_tangent(vec x) {
  ivec k;
  const vec a = at_most(absolute(x), 9.02f);
  const vec part = reduced_exponential(a + a, &k);
  const vec power = power_of_two(k);
  const vec less_one = power * part + (power - splat(1.0f));
  const vec result = less_one / (less_one + splat(2.0f));
  return (vec)((ivec)result | ((ivec)x & (int)0x80000000));
}

/* e^x for x from where it is no longer denormal up to `high`, and for others of these ends. */
KERNEL vec bounded_exponential(vec x, float high) {
  ivec k;
  const vec less_one = reduced_exponential(at_most(at_least(x, LN_SMALLEST), high), &k);
  const vec power = power_of_two(k);
  return power * less_one + power;
}

/* 1 / (1 + e^-x), and 0 where that would be denormal. */
KERNEL vec sigmoid(vec x) {
  const vec result = splat(1.0f) / (bounded_exponential(-x, -LN_SMALLEST) + splat(1.0f));
  return (vec)((ivec)result & ~(x < splat(LN_SMALLEST)));
}

/* log(1 + e^x), and 0 where that would be denormal. */
KERNEL vec softplus(vec x) {
  /* log(1 + e) / e for e in 0 ... 1. */
  static const float c[] = {1.0f,           -0x1.ffffbep-2f, 0x1.554c80p-2f, -0x1.ff0f86p-3f,
                            0x1.92f68cp-3f, -0x1.397544p-3f, 0x1.b252fcp-4f, -0x1.d29c04p-5f,
                            0x1.453e3ap-6f, -0x1.a931f0p-9f};
  const vec e = normal_exponential(-absolute(x));
  return at_least(x, 0.0f) + e * polynomial(e, c, 10);
}

/* tanh(log(1 + e^x)), of which x times this is Mish, and 0 where that would be denormal: t / (t +
 * 2) with t = e^2x + 2 e^x, which from x = 9 on is 1. */
KERNEL vec tanh_of_softplus(vec x) {
  const vec e = bounded_exponential(x, 20.0f);
  const vec t = e * (e + splat(2.0f));
  return (vec)((ivec)(t / (t + splat(2.0f))) & ~(x < splat(LN_SMALLEST)));
}

KERNEL int holds_anywhere(ivec where) {
#if defined(__clang__)
  return __builtin_reduce_or(where) != 0;
#else
  int found = 0;
  for (int i = 0; i < LANES; i++) found |= where[i];
  return found != 0;
#endif
}

/* |x| + ahead 2^-63 pi = n pi + r with |r| <= pi / 2: r, and the last bit of n.  `bits` are those
 * of x, which is finite and beyond 4096.  (Payne and Hanek, "Radian reduction for trigonometric
 * functions", 1983: of 1 / pi only those bits count whose products are worth less than 2, and of
 * these 96.) */
KERNEL float distant_angle(unsigned bits, unsigned long long ahead, int* last) {
  /* 1 / pi, with 32 zeros before it. */
  static const unsigned c[] = {0,           0x517cc1b7u, 0x27220a94u, 0xfe13abe8u,
                               0xfa9a6ee0u, 0x6db14accu, 0x9e21c820u, 0xff28b1d5u};
  const unsigned long long significand = (bits & 0x7fffff) | 0x800000;
  const unsigned first = (bits >> 23 & 255) - 119;
  unsigned w[3];
  for (int i = 0; i < 3; i++) {
    const unsigned* at = c + first / 32 + i;
    w[i] = (unsigned)(((unsigned long long)at[0] << 32 | at[1]) >> (32 - first % 32));
  }
  const unsigned long long turns =
      (significand * w[0] << 32) + significand * w[1] + (significand * w[2] >> 32) + ahead;
  const unsigned long long odd = (turns + (1ull << 62)) >> 63;
  *last = (int)odd;
  return (float)((double)(long long)(turns - (odd << 63)) * 0x1.921fb54442d18p-62);
}

/* sin(r) for |r| <= pi / 2, with the other sign where the last bit of `flips` is set.  Beyond 4096
 * both are found anew: of |x| for a cosine, which has `ahead`, and else of x. */
KERNEL vec sine_near_zero(vec x, vec r, ivec flips, unsigned long long ahead) {
  static const float c[] = {-0x1.55554cp-3f, 0x1.110ed2p-7f, -0x1.9f6f92p-13f, 0x1.5db78ep-19f};
  const ivec is_far = absolute(x) > splat(4096.0f);
  if (holds_anywhere(is_far)) {
    for (int i = 0; i < LANES; i++) {
      const int bits = ((ivec)x)[i];
      if (is_far[i] && (bits & 0x7f800000) != 0x7f800000) {
        int last;
        r[i] = distant_angle((unsigned)bits, ahead, &last);
        flips[i] = ahead == 0 && bits < 0 ? ~last : last;
      }
    }
    r = chosen(absolute(x) == splat(__builtin_inff()), splat(__builtin_nanf("")), r);
  }
  const vec square = r * r;
  return (vec)((ivec)(r + r * square * polynomial(square, c, 4)) ^ (flips << 31));
}

/* x - n pi.  pi is in parts whose products with |n| < 2^11, also with half more, are exact. */
KERNEL vec without_turns(vec x, vec n) {
  return (((x - n * splat(0x1.92p1f)) - n * splat(0x1.fb4p-11f)) - n * splat(0x1.444p-23f)) -
         n * splat(0x1.68c234p-38f);
}

KERNEL vec sine(vec x) {
  const vec shifted = x * splat(0x1.45f306p-2f) + splat(ROUNDING_SHIFT);
  const vec n = shifted - splat(ROUNDING_SHIFT);
  return sine_near_zero(x, without_turns(x, n), (ivec)shifted, 0);
}

KERNEL vec cosine(vec x) {
  const vec shifted = (x * splat(0x1.45f306p-2f) - splat(0.5f)) + splat(ROUNDING_SHIFT);
  const vec n = (shifted - splat(ROUNDING_SHIFT)) + splat(0.5f);
  return sine_near_zero(x, without_turns(x, n), ~(ivec)shifted, 1ull << 62);
}

KERNEL vec tangent(vec x) { return sine(x) / cosine(x); }

/* Of |x| = tan(a): of tan(a), tan(a - pi / 4) or tan(a - pi / 2), whichever is within tan(pi / 8)
 * of 0. */
KERNEL vec arctangent(vec x) {
  static const float c[] = {-0x1.55554ap-2f, 0x1.999196p-3f, -0x1.23b522p-3f, 0x1.b1ec2ep-4f,
                            -0x1.f1ed82p-5f};
  const vec a = absolute(x), one = splat(1.0f);
  const ivec is_large = a > splat(0x1.3504f4p1f), is_small = a <= splat(0x1.a8279ap-2f);
  const vec top = chosen(is_large, -one, chosen(is_small, a, a - one));
  const vec z = top / chosen(is_large, a, chosen(is_small, one, a + one));
  /* pi / 4, once or twice, is a float32 number and a little. */
  const vec turn = chosen(is_large, splat(2.0f), (vec)((ivec)one & ~is_small));
  const vec square = z * z;
  const vec rest = z * square * polynomial(square, c, 5) - turn * splat(0x1.777a5cp-26f);
  const vec result = turn * splat(0x1.921fb6p-1f) + (z + rest);
  return (vec)((ivec)result | ((ivec)x & (int)0x80000000));
}

/* x, or where it is negative x times `slope`. */
KERNEL vec leaky_relu(vec x, vec slope) { return chosen(x < (vec){0}, x * slope, x); }

/* table[value - low] of whole numbers, of 256; NaN stays. */
KERNEL vec looked_up(vec value, float low, const float* table) {
  const ivec index = last_bits(value - splat(low)) & 255;
  vec found;
#if LANES == 16 && defined(__AVX512F__) && defined(__clang__)
  /* Thirty-two numbers at a time, by the last five bits, and of these by the others: gathering
   * takes longer on many CPUs, and several times as long where it has been made safe. */
  vec part[8];
  UNROLL for (int i = 0; i < 8; i++) {
    part[i] = __builtin_ia32_vpermi2varps512(load_floats(table + 32 * i), index,
                                             load_floats(table + 32 * i + 16));
  }
  UNROLL for (int bit = 0; bit < 3; bit++) {
    const ivec is_upper = (index & 32 << bit) != 0;
    UNROLL for (int i = 0; i < 4 >> bit; i++) {
      part[i] = chosen(is_upper, part[2 * i + 1], part[2 * i]);
    }
  }
  found = part[0];
#else
  for (int i = 0; i < LANES; i++) found[i] = table[index[i]];
#endif
  return chosen(value != value, value, found);
}

#endif /* RUN_MODEL_KERNELS_VECTOR_MATH_H_ */
