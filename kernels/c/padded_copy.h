/* A copy of all input tensors, one after the other, with the padding's zeros around each block.
 *
 * A task is one block.  Macros: PADDED_BLOCKS (of each input tensor, as a list), SOURCE_HEIGHT and
 * SOURCE_WIDTH, PADDED_TOP and PADDED_LEFT, and as the size of the copy INPUT_HEIGHT and
 * INPUT_WIDTH.
 */
#ifndef RUN_MODEL_KERNELS_PADDED_COPY_H_
#define RUN_MODEL_KERNELS_PADDED_COPY_H_

#include "vector.h"

#ifdef PADDED

static const int padded_blocks[] = PADDED_BLOCKS;

KERNEL void padded_copy(int task, const void* const* inputs, const void* const* constants,
                        void* output, void* shared, void* scratch) {
  (void)constants, (void)output, (void)scratch;
  int tensor = 0, block = task;
  while (block >= padded_blocks[tensor]) block -= padded_blocks[tensor++];
  const float* from =
      (const float*)inputs[tensor] + (long)block * SOURCE_HEIGHT * SOURCE_WIDTH * LANES;
  float* to = (float*)shared + (long)task * INPUT_HEIGHT * INPUT_WIDTH * LANES;
  for (int y = 0; y < INPUT_HEIGHT; y++) {
    const int row = y - PADDED_TOP, inside = row >= 0 && row < SOURCE_HEIGHT;
    for (int x = 0; x < INPUT_WIDTH; x++) {
      const int column = x - PADDED_LEFT;
      vec value = {0};
      if (inside && column >= 0 && column < SOURCE_WIDTH)
        value = load(from + ((long)row * SOURCE_WIDTH + column) * LANES);
      store(to + ((long)y * INPUT_WIDTH + x) * LANES, value);
    }
  }
}

#endif /* PADDED */

#endif /* RUN_MODEL_KERNELS_PADDED_COPY_H_ */
