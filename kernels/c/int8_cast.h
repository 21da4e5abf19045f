/* Between float32 and bytes, for layers at the border of the quantized part.  ELEMENTS is a multiple
 * of LANES, a task TASK_ELEMENTS of them.
 *   to bytes    fma(value, FACTOR, OFFSET), clamped to 0..255 and rounded
 *   TO_FLOAT    fma(byte, FACTOR, OFFSET) */
#include "int8.h"

KERNEL void int8_cast(int task, const void *const *inputs, const void *const *constants,
                      void *output, void *shared, void *scratch) {
  const long first = (long)task * TASK_ELEMENTS;
  const long end = first + TASK_ELEMENTS < ELEMENTS ? first + TASK_ELEMENTS : ELEMENTS;
  NO_UNROLL for (long i = first; i < end; i += LANES) {
#ifdef TO_FLOAT
    const vec value = floats_of_bytes(load_bytes((const unsigned char *)inputs[0] + i));
    store((float *)output + i, fused(value, splat(FACTOR), splat(OFFSET)));
#else
    vec value = fused(load((const float *)inputs[0] + i), splat(FACTOR), splat(OFFSET));
    value = minimum(maximum(value, splat(0.0f)), splat(255.0f));
    store_bytes((unsigned char *)output + i, rounded_bytes(value));
#endif
  }
}
