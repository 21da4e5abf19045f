/* What becomes of a sum before it is stored: activations, and what else a network does to it number
 * by number.
 *
 * EPILOGUE(x0, x1, channel), an expression that expressions.py writes, of the sum and the
 * residual's number; without it, the residual is added if there is one and the layer's clamp
 * follows. `channel` points to the bias of the vector's channels, behind which, every CHANNEL_STEP
 * floats, lie CHANNEL_CONSTANTS more numbers for each of them: what the expression has of constants
 * by channel.
 */
#ifndef RUN_MODEL_KERNELS_EPILOGUE_H_
#define RUN_MODEL_KERNELS_EPILOGUE_H_

#ifdef EPILOGUE
#include "vector_math.h"
#else
#include "vector.h"
#endif

#ifndef CHANNEL_CONSTANTS
#define CHANNEL_CONSTANTS 0
#endif

/* With the bias and, in half precision, the scale (half_tile.h). */
#ifdef HALF
#define CHANNEL_FLOATS (CHANNEL_CONSTANTS + 2)
#else
#define CHANNEL_FLOATS (CHANNEL_CONSTANTS + 1)
#endif

/* `residual`: where the number to add lies, or null. */
KERNEL vec finished(vec value, const number* residual, const float* channel) {
#ifdef EPILOGUE
  const vec other = residual ? load(residual) : (vec){0};
  return EPILOGUE(value, other, channel);
#else
  (void)channel;
  if (residual) value += load(residual);
  return clamped(value);
#endif
}

#endif /* RUN_MODEL_KERNELS_EPILOGUE_H_ */
