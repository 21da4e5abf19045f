/* From sums to an int8 layer's output: see int8.h for the formula.
 *
 * OUTPUT_FLOAT     the output is float32 instead of bytes (CLAMP_LOW and CLAMP_HIGH as in vector.h)
 * OUTPUT_COUNT     how many numbers a float32 output has, if the last block is not whole
 * BYTE_LOW, BYTE_HIGH   the clamp of a byte, float32 within 0..255
 * RESIDUAL_INPUT   which input is the residual, of bytes, if there is one
 */
#ifndef RUN_MODEL_KERNELS_INT8_OUTPUT_H_
#define RUN_MODEL_KERNELS_INT8_OUTPUT_H_

#include "int8.h"

/* `at` counts the output's elements; `residual` is a tensor of the output's shape or unused. */
KERNEL void store_result(void* output, long at, ivec sums, vec scale, vec bias,
                         const unsigned char* residual, vec residual_scale) {
  vec value = fused(floats(sums), scale, bias);
#ifdef RESIDUAL_INPUT
  value = fused(floats_of_bytes(load_bytes(residual + at)), residual_scale, value);
#endif
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
  store_bytes((unsigned char*)output + at, rounded_bytes(value));
#endif
}

#endif /* RUN_MODEL_KERNELS_INT8_OUTPUT_H_ */
