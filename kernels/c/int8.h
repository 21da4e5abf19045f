/* 8-bit activations and weights, 32-bit sums.
 *
 * Activations are unsigned bytes, [block][row][column][lane] with the same LANES channels a block
 * as float32 has: value = scale * (byte - zero point).  Weights are signed bytes, one scale for
 * each output channel.  Products are added up exactly, four input channels at a time: a *word* is
 * four neighbouring lanes of a pixel, and a vector of LANES sums takes one word (broadcast) times
 * LANES words of weights in one step (dot() of words.h).
 *
 * What becomes of a sum is done in float32, in this order and with these roundings, so that NumPy
 * can compute the same bytes:
 *   - v = fma(float32(sum), scale[channel], bias[channel]), one rounding;
 *   - v = fma(float32(residual byte), residual scale[channel], v), if there is a residual;
 *   - v = min(max(v, low), high);
 *   - byte = v rounded to the nearest whole number, halves to even.
 *
 * The output's scale and zero point are folded into scale, bias, low and high (quantized.py), low
 * and high lie within 0..255.  fma is asked for by name: TVM lets LLVM fuse a product with a sum
 * wherever it likes, and only what is fused already is the same everywhere.
 */
#ifndef RUN_MODEL_KERNELS_INT8_H_
#define RUN_MODEL_KERNELS_INT8_H_

#include "packing.h"
#include "vector.h"
#include "words.h"

KERNEL lane_shorts shorts_of_bytes(lane_bytes value) {
  return __builtin_convertvector(value, lane_shorts);
}

KERNEL vec fused(vec a, vec b, vec c) {
#if defined(__clang__)
  return __builtin_elementwise_fma(a, b, c);
#else
  for (int i = 0; i < LANES; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

/* Numbers within 0..255 to bytes. */
KERNEL lane_bytes rounded_bytes(vec value) {
  return __builtin_convertvector(last_bits(value), lane_bytes);
}

/* The same of numbers within -zero..255 - zero, `zero` higher. */
KERNEL lane_bytes bytes_above(vec value, int zero) {
  return __builtin_convertvector(last_bits(value) + zero, lane_bytes);
}

/* From sums to a layer's output, where the layer says what that is:
 *
 * OUTPUT_FLOAT     the output is float32 instead of bytes (CLAMP_LOW and CLAMP_HIGH as in vector.h)
 * OUTPUT_COUNT     how many numbers a float32 output has, if the last block is not whole
 * BYTE_LOW, BYTE_HIGH   the clamp of a byte, float32 within 0..255
 * BYTE_ZERO        a quantized graph's zero point: the clamp is relative to it, bias does not have
 *                  it, and it is added when v has been rounded, as the graph says (halves go to an
 *                  even distance from it)
 * RESIDUAL_INPUT   which input is the residual, of bytes, if there is one
 */
#if defined(OUTPUT_FLOAT) || defined(BYTE_LOW)
#ifdef PACKS_FOUR
#define STORED_TOGETHER 4
#else
#define STORED_TOGETHER 1
#endif
#ifdef BYTE_ZERO
#define ADDED_ZERO BYTE_ZERO
#else
#define ADDED_ZERO 0
#endif

/* The result of sums before it is rounded and clamped; `at` counts the output's elements;
 * `residual` is a tensor of the output's shape or unused. */
KERNEL vec result_of(long at, ivec sums, vec scale, vec bias, const unsigned char* residual,
                     vec residual_scale) {
  vec value = fused(floats(sums), scale, bias);
#ifdef RESIDUAL_INPUT
  value = fused(floats_of_bytes(load_bytes(residual + at)), residual_scale, value);
#endif
  return value;
}

KERNEL void store_result(void* output, long at, vec value) {
#ifdef OUTPUT_FLOAT
  value = clamped(value);
#ifdef OUTPUT_COUNT
  /* A vector that ends within a block. */
  if (at + LANES > OUTPUT_COUNT) {
    for (int i = 0; i < LANES && at + i < OUTPUT_COUNT; i++) ((float*)output)[at + i] = value[i];
    return;
  }
#endif
  store((float*)output + at, value);
#else
  value = minimum(maximum(value, splat(BYTE_LOW)), splat(BYTE_HIGH));
  store_bytes((unsigned char*)output + at, bytes_above(value, ADDED_ZERO));
#endif
}

/* The results of `count` neighbouring pixels of a block, from element `at` on: of sums[0],
 * sums[step], sums[2 * step] ...  count is a constant at every call. */
KERNEL void store_results(void* output, long at, int count, const ivec* sums, int step, vec scale,
                          vec bias, const unsigned char* residual, vec residual_scale) {
  UNROLL for (int first = 0; first < count; first += STORED_TOGETHER) {
    const int together = count - first < STORED_TOGETHER ? count - first : STORED_TOGETHER;
    vec values[STORED_TOGETHER];
    UNROLL for (int i = 0; i < STORED_TOGETHER; i++) {
      const int here = i < together ? first + i : first;
      values[i] =
          result_of(at + here * LANES, sums[here * step], scale, bias, residual, residual_scale);
    }
#if defined(PACKS_FOUR) && !defined(OUTPUT_FLOAT)
    if (together > 1) {
      /* Rounding and clamping can change places, as rounding keeps the order of numbers. */
      const vec high = splat(BYTE_HIGH);
      packed_bytes bytes =
          packed_four(minimum(values[0], high), minimum(values[1], high), minimum(values[2], high),
                      minimum(values[3], high), ADDED_ZERO);
      const int low = (int)((BYTE_LOW) + 12582912.0f - 12582912.0f) + ADDED_ZERO;
      if (low > 0) bytes = at_least(bytes, (unsigned char)low);
      __builtin_memcpy((unsigned char*)output + at + first * LANES, &bytes, together * LANES);
      continue;
    }
#endif
    UNROLL for (int i = 0; i < together; i++) {
      store_result(output, at + (first + i) * LANES, values[i]);
    }
  }
}
#endif /* OUTPUT_FLOAT || BYTE_LOW */

#endif /* RUN_MODEL_KERNELS_INT8_H_ */
