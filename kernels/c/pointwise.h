/* 1 x 1 convolution with stride 1: a product of matrices, [pixels][inputs] x [inputs][outputs].
 *
 * A task is a part of the pixels times a part of the output channels, cut into register tiles of
 * two sizes at most in each direction.  All of the input channels are summed up before a tile is
 * stored. Of the two loops over tiles, the inner one should run over what is larger than the
 * first-level cache holds with the other (CHANNELS_OUTSIDE).
 *
 * Macros, beside those of channels.h:
 *   PIXELS         in a block of the output
 *   PIXEL_TILES    tiles of pixels, see part_start(), of which LARGER_PIXEL_TILES have one more
 * than TILE_PIXELS PIXEL_PARTS, CHANNEL_PARTS                         tasks in each direction
 *   RESIDUAL       the number of the input that is added, if there is one
 */
#include "channels.h"

KERNEL void pointwise_tile(const void* const* inputs, const void* const* constants, float* output,
                           int pixel, int vector_tile, int pixels, int vectors) {
  const int vector = first_vector(vector_tile);
  const long to = ((long)vector * PIXELS + pixel) * LANES;
#ifdef RESIDUAL
  const float* residual = (const float*)inputs[RESIDUAL] + to;
#else
  const float* residual = 0;
#endif
  tile_sums sums;
  tile_begin(sums, pixels, vectors, (const float*)constants[1] + vector * LANES);
  channels_multiply(sums, 0, pixels, vectors, inputs,
                    channels_of_tile(constants[0], vector_tile, vector), (long)pixel * LANES, LANES,
                    0);
  tile_end(sums, pixels, vectors, output + to, (long)PIXELS * LANES, residual);
}

KERNEL void pointwise(int task, const void* const* inputs, const void* const* constants,
                      void* output, void* shared, void* scratch) {
  (void)shared, (void)scratch;
  const int pixel_part = task % PIXEL_PARTS, channel_part = task / PIXEL_PARTS;
  const int first_pixels = part_start(pixel_part, PIXEL_PARTS, PIXEL_TILES);
  const int end_pixels = part_start(pixel_part + 1, PIXEL_PARTS, PIXEL_TILES);
  const int first_vectors = part_start(channel_part, CHANNEL_PARTS, VECTOR_TILES);
  const int end_vectors = part_start(channel_part + 1, CHANNEL_PARTS, VECTOR_TILES);
#if CHANNELS_OUTSIDE
  NO_UNROLL for (int v = first_vectors; v < end_vectors; v++) {
    NO_UNROLL for (int p = first_pixels; p < end_pixels; p++) {
#else
  NO_UNROLL for (int p = first_pixels; p < end_pixels; p++) {
    NO_UNROLL for (int v = first_vectors; v < end_vectors; v++) {
#endif
      const int pixel = part_start(p, PIXEL_TILES, PIXELS);
      const int larger = part_start(p + 1, PIXEL_TILES, PIXELS) - pixel > TILE_PIXELS;
      if (has_more_vectors(v)) {
        if (LARGER_PIXEL_TILES && larger)
          pointwise_tile(inputs, constants, output, pixel, v, TILE_PIXELS + 1, TILE_VECTORS + 1);
        else
          pointwise_tile(inputs, constants, output, pixel, v, TILE_PIXELS, TILE_VECTORS + 1);
      } else {
        if (LARGER_PIXEL_TILES && larger)
          pointwise_tile(inputs, constants, output, pixel, v, TILE_PIXELS + 1, TILE_VECTORS);
        else
          pointwise_tile(inputs, constants, output, pixel, v, TILE_PIXELS, TILE_VECTORS);
      }
    }
  }
}
