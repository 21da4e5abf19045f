/* A float32 picture [channel][row][column] becomes bytes [PADDED_HEIGHT][PADDED_WIDTH][4]: a pixel
 * is one word.  With WORDS_OF_TWO it becomes int16 [PADDED_HEIGHT][PADDED_WIDTH][PICTURE_CHANNELS]:
 * words then hold what is beside each other, also of two pixels.  Constants 4 and 5 are 1 / scale
 * and the zero point of each channel; a value outside of what bytes can hold becomes the nearest.
 */
#ifndef RUN_MODEL_KERNELS_PICTURE_BYTES_H_
#define RUN_MODEL_KERNELS_PICTURE_BYTES_H_

#include "int8.h"

#ifdef PICTURE_CHANNELS
#ifdef WORDS_OF_TWO
#define PIXEL_NUMBERS PICTURE_CHANNELS
typedef short picture_number;
#else
#define PIXEL_NUMBERS 4
typedef unsigned char picture_number;
#endif

KERNEL ivec picture_bytes(vec value, float inverse, float zero) {
  value = fused(value, splat(inverse), splat(zero));
  return last_bits(minimum(maximum(value, splat(0.0f)), splat(255.0f))) & 255;
}

/* The border: zero points. */
KERNEL void fill_pixels(picture_number* to, int count, const float* zero) {
  NO_UNROLL for (int x = 0; x < count; x++) {
    UNROLL for (int c = 0; c < PIXEL_NUMBERS; c++) {
      to[x * PIXEL_NUMBERS + c] = c < PICTURE_CHANNELS ? (picture_number)last_bits_of(zero[c]) : 0;
    }
  }
}

/* `count` pixels. */
KERNEL void store_picture(picture_number* to, const ivec* channels, int count) {
#ifndef WORDS_OF_TWO
  if (count == LANES) {
    ivec pixels = {0};
    UNROLL for (int c = 0; c < PICTURE_CHANNELS; c++) pixels |= channels[c] << 8 * c;
    *(ivec_in_memory*)to = pixels;
    return;
  }
#endif
  UNROLL for (int i = 0; i < LANES; i++) {
    if (i >= count) break;
    UNROLL for (int c = 0; c < PIXEL_NUMBERS; c++) {
      to[i * PIXEL_NUMBERS + c] = c < PICTURE_CHANNELS ? (picture_number)channels[c][i] : 0;
    }
  }
}

KERNEL void int8_picture(int task, const void* const* inputs, const void* const* constants,
                         void* output, void* shared, void* scratch) {
  const float* picture = (const float*)inputs[0];
  const float *inverse = (const float*)constants[4], *zero = (const float*)constants[5];
  const int first = task * COPY_ROWS;
  NO_UNROLL for (int y = first; y < first + COPY_ROWS && y < PADDED_HEIGHT; y++) {
    const int row = y - PADDING_TOP;
    picture_number* to = (picture_number*)shared + (long)y * PADDED_WIDTH * PIXEL_NUMBERS;
    if (row < 0 || row >= INPUT_HEIGHT) {
      fill_pixels(to, PADDED_WIDTH, zero);
      continue;
    }
    fill_pixels(to, PADDING_LEFT, zero);
    to += PADDING_LEFT * PIXEL_NUMBERS;
    fill_pixels(to + INPUT_WIDTH * PIXEL_NUMBERS, PADDED_WIDTH - INPUT_WIDTH - PADDING_LEFT, zero);
    const float* from = picture + (long)row * INPUT_WIDTH;
    NO_UNROLL for (int x = 0; x < INPUT_WIDTH; x += LANES) {
      if (INPUT_WIDTH >= LANES && x > INPUT_WIDTH - LANES) x = INPUT_WIDTH - LANES;
      ivec channels[PICTURE_CHANNELS];
      UNROLL for (int c = 0; c < PICTURE_CHANNELS; c++) {
        const float* channel = from + (long)c * INPUT_HEIGHT * INPUT_WIDTH + x;
        vec value = {0};
        if (INPUT_WIDTH >= LANES) {
          value = load(channel);
        } else {
          for (int i = 0; i < INPUT_WIDTH; i++) value[i] = channel[i];
        }
        channels[c] = picture_bytes(value, inverse[c], zero[c]);
      }
      store_picture(to + x * PIXEL_NUMBERS, channels, INPUT_WIDTH < LANES ? INPUT_WIDTH : LANES);
    }
  }
}
#endif

#endif /* RUN_MODEL_KERNELS_PICTURE_BYTES_H_ */
