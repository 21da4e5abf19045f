/* Between float32 and bytes, for layers at the border of the quantized part.
 *   to bytes    fma(value, factor[channel], offset[channel]), clamped to 0..255 and rounded
 *   TO_FLOAT    fma(byte, factor[channel], offset[channel])
 * Constants: factor and offset [block][lane].  A task is TASK_PIXELS of a block's PIXELS. */
#include "int8.h"

KERNEL void int8_cast(int task, const void* const* inputs, const void* const* constants,
                      void* output, void* shared, void* scratch) {
  const int parts = (PIXELS + TASK_PIXELS - 1) / TASK_PIXELS;
  const int block = task / parts, first = task % parts * TASK_PIXELS;
  const int end = first + TASK_PIXELS < PIXELS ? first + TASK_PIXELS : PIXELS;
  const vec factor = load((const float*)constants[0] + block * LANES);
  const vec offset = load((const float*)constants[1] + block * LANES);
  NO_UNROLL for (int p = first; p < end; p++) {
    const long i = ((long)block * PIXELS + p) * LANES;
#ifdef TO_FLOAT
    const vec value = floats_of_bytes(load_bytes((const unsigned char*)inputs[0] + i));
    store((float*)output + i, fused(value, factor, offset));
#else
    vec value = fused(load((const float*)inputs[0] + i), factor, offset);
    value = minimum(maximum(value, splat(0.0f)), splat(255.0f));
    store_bytes((unsigned char*)output + i, rounded_bytes(value));
#endif
  }
}
