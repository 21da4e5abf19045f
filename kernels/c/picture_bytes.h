/* A float32 picture [channel][row][column] becomes bytes [PADDED_HEIGHT][PADDED_WIDTH][4]: a pixel
 * is one word.  Constants 4 and 5 are 1 / scale and the zero point of each channel; a value outside
 * of what bytes can hold becomes the nearest. */
#ifndef RUN_MODEL_KERNELS_PICTURE_BYTES_H_
#define RUN_MODEL_KERNELS_PICTURE_BYTES_H_

#include "int8.h"

#ifdef PICTURE_CHANNELS
KERNEL ivec picture_bytes(vec value, float inverse, float zero) {
  value = fused(value, splat(inverse), splat(zero));
  value = minimum(maximum(value, splat(0.0f)), splat(255.0f)) + splat(12582912.0f);
  return (ivec)value & 255;
}

KERNEL void int8_picture(int task, const void* const* inputs, const void* const* constants,
                         void* output, void* shared, void* scratch) {
  const float* picture = (const float*)inputs[0];
  const float *inverse = (const float*)constants[4], *zero = (const float*)constants[5];
  const int first = task * COPY_ROWS;
  int fill = 0;
  for (int c = 0; c < PICTURE_CHANNELS; c++) fill |= (int)zero[c] << 8 * c;
  NO_UNROLL for (int y = first; y < first + COPY_ROWS && y < PADDED_HEIGHT; y++) {
    const int row = y - PADDING_TOP;
    word_in_memory* to = (word_in_memory*)shared + (long)y * PADDED_WIDTH;
    if (row < 0 || row >= INPUT_HEIGHT) {
      for (int x = 0; x < PADDED_WIDTH; x++) to[x] = fill;
      continue;
    }
    for (int x = 0; x < PADDING_LEFT; x++) to[x] = fill;
    for (int x = PADDING_LEFT + INPUT_WIDTH; x < PADDED_WIDTH; x++) to[x] = fill;
    const float* from = picture + (long)row * INPUT_WIDTH;
    to += PADDING_LEFT;
    NO_UNROLL for (int x = 0; x < INPUT_WIDTH; x += LANES) {
      if (INPUT_WIDTH >= LANES && x > INPUT_WIDTH - LANES) x = INPUT_WIDTH - LANES;
      ivec pixels = {0};
      UNROLL for (int c = 0; c < PICTURE_CHANNELS; c++) {
        const float* channel = from + (long)c * INPUT_HEIGHT * INPUT_WIDTH + x;
        vec value = {0};
        if (INPUT_WIDTH >= LANES) {
          value = load(channel);
        } else {
          for (int i = 0; i < INPUT_WIDTH; i++) value[i] = channel[i];
        }
        pixels |= picture_bytes(value, inverse[c], zero[c]) << 8 * c;
      }
      if (INPUT_WIDTH >= LANES) {
        *(ivec_in_memory*)(to + x) = pixels;
      } else {
        for (int i = 0; i < INPUT_WIDTH; i++) to[i] = pixels[i];
      }
    }
  }
}
#endif

#endif /* RUN_MODEL_KERNELS_PICTURE_BYTES_H_ */
