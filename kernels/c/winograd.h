/* 3 x 3 convolution, stride 1, by Winograd's minimal filtering F(OUT_TILE x OUT_TILE, 3 x 3).
 *
 * The output is cut into TILE_ROWS x TILE_COLUMNS square tiles of OUT_TILE pixels, numbered row by row.
 * Every tile's inputs are transformed to POSITIONS values (winograd_transform.h); at each position a
 * matrix product over the input channels follows, tiles x channels times channels x output
 * channels; its result is transformed back, and bias, residual and clamp are applied on the way out.
 *
 * Tiles go in groups of GROUP, output channels in parts of VECTORS vectors.  Two grains:
 *
 *   by tiles     winograd_tiles: a task is a group.  The transformed input, in the task's scratch, does not
 *                leave its core's cache; every task reads all weights.
 *   by channels  winograd_transform, then winograd_multiply: a task of the first transforms a part of the
 *                input blocks of a group into `shared`, one of the second is a part of output channels
 *                of a group.  With one group all weights are read once.
 *
 * Memory, in floats (both strides are an odd number of vectors, lest all positions of a tile fall into
 * one set of a cache):
 *   transformed input  [position, VALUE_STRIDE][input block][tile of the group][lane]
 *   products           [position, PRODUCT_STRIDE][tile of the group][VECTORS][lane], of one part of channels
 *   weights            [part of channels][position][input channel][VECTORS][lane], one stream from
 *                      the first to the last
 *
 * Registers: the multiplication is tile.h's, with PIXELS tiles as its pixels.
 *
 * Tiles over the edge of the input are read from a copy that zeros surround, other tiles from the input
 * itself; of tiles over the edge of the output only what is inside is written.
 *
 * Macros: those of winograd_transform.h; IN_HEIGHT, IN_WIDTH, OUT_HEIGHT, OUT_WIDTH, PAD_TOP, PAD_LEFT;
 * BLOCKS input blocks, of which BLOCK_TENSOR and BLOCK_INDEX, braced lists, say where they are; PIECES runs of
 * channels in the order of the weights with PIECE_BLOCK, PIECE_FIRST and PIECE_COUNT (without PIECES every
 * block is full and in its order); CHANNELS input channels; PARTS, VECTORS, OUT_BLOCKS; GROUP, PIXELS;
 * CHUNKS, the tasks that transform a group; RESIDUAL, the input to add, if there is one.
 * Constants: weights, and the bias for every output lane.
 */
#ifndef RUN_MODEL_KERNELS_WINOGRAD_H_
#define RUN_MODEL_KERNELS_WINOGRAD_H_

#include "tile.h"
#include "winograd_transform.h"

#define TILE_ROWS ((OUT_HEIGHT + OUT_TILE - 1) / OUT_TILE)
#define TILE_COLUMNS ((OUT_WIDTH + OUT_TILE - 1) / OUT_TILE)
#define TILES (TILE_ROWS * TILE_COLUMNS)
#define GROUPS ((TILES + GROUP - 1) / GROUP)
#define VALUE_STRIDE ((BLOCKS * GROUP | 1) * (long)LANES)
#define PRODUCT_STRIDE ((GROUP * VECTORS | 1) * (long)LANES)

/* How many tiles group `group` has. */
KERNEL int group_tiles(int group) {
  return TILES - group * GROUP < GROUP ? TILES - group * GROUP : GROUP;
}

/* Copies the tile at (y, x), with zeros for what is outside of the input. */
KERNEL void copy_edge_tile(const float *plane, int y, int x, vec copy[IN_TILE][IN_TILE]) {
  NO_UNROLL for (int i = 0; i < IN_TILE; i++) {
    int inside = y + i >= 0 && y + i < IN_HEIGHT;
    UNROLL for (int j = 0; j < IN_TILE; j++) {
      copy[i][j] = inside && x + j >= 0 && x + j < IN_WIDTH
                       ? load(plane + ((long)(y + i) * IN_WIDTH + x + j) * LANES)
                       : (vec){0};
    }
  }
}

/* Transforms one block of a group's tiles. */
KERNEL void transform_block(const void *const *inputs, int group, int block, float *values) {
  static const int tensors[BLOCKS] = BLOCK_TENSOR;
  static const int indices[BLOCKS] = BLOCK_INDEX;
  const float *plane = (const float *)inputs[tensors[block]] +
                       (long)indices[block] * IN_HEIGHT * IN_WIDTH * LANES;
  NO_UNROLL for (int t = 0; t < group_tiles(group); t++) {
    int tile = group * GROUP + t;
    int y = tile / TILE_COLUMNS * OUT_TILE - PAD_TOP, x = tile % TILE_COLUMNS * OUT_TILE - PAD_LEFT;
    vec copy[IN_TILE][IN_TILE];
    const float *from = (const float *)copy;
    long row_stride = IN_TILE * LANES;
    if (y >= 0 && x >= 0 && y + IN_TILE <= IN_HEIGHT && x + IN_TILE <= IN_WIDTH) {
      from = plane + ((long)y * IN_WIDTH + x) * LANES;
      row_stride = IN_WIDTH * LANES;
    } else {
      copy_edge_tile(plane, y, x, copy);
    }
    evaluate_tile(from, row_stride, values + (long)(block * GROUP + t) * LANES, VALUE_STRIDE);
  }
}

/* The products of `tiles` tiles at one position.  `tiles` is a constant at each call. */
KERNEL void multiply_tiles(int tiles, const float *values, const float *weights, float *products) {
  tile_sums sums;
  UNROLL for (int t = 0; t < tiles; t++) {
    UNROLL for (int v = 0; v < VECTORS; v++) sums[t][v] = (vec){0};
  }
#ifdef PIECES
  static const int blocks[PIECES] = PIECE_BLOCK;
  static const int first[PIECES] = PIECE_FIRST;
  static const int count[PIECES] = PIECE_COUNT;
  NO_UNROLL for (int i = 0; i < PIECES; i++) {
    tile_multiply(sums, 0, tiles, VECTORS, values + (long)blocks[i] * GROUP * LANES + first[i], LANES,
                  weights, count[i]);
    weights += count[i] * VECTORS * LANES;
  }
#else
  NO_UNROLL for (int block = 0; block < BLOCKS; block++) {
    tile_multiply(sums, 0, tiles, VECTORS, values + (long)block * GROUP * LANES, LANES,
                  weights + (long)block * LANES * VECTORS * LANES, LANES);
  }
#endif
  UNROLL for (int t = 0; t < tiles; t++) {
    UNROLL for (int v = 0; v < VECTORS; v++) store(products + (t * VECTORS + v) * LANES, sums[t][v]);
  }
}

/* The products of a group's tiles and one part of the output channels at all positions. */
KERNEL void multiply_part(int tiles, const float *values, const float *weights, float *products) {
  NO_UNROLL for (int position = 0; position < POSITIONS; position++) {
    const float *from = values + position * VALUE_STRIDE;
    const float *with = weights + (long)position * CHANNELS * VECTORS * LANES;
    float *to = products + position * PRODUCT_STRIDE;
    /* Past the group's last tile there is room but nothing of meaning: computed, never read. */
    NO_UNROLL for (int t = 0; t < tiles && t + PIXELS <= GROUP; t += PIXELS) {
      multiply_tiles(PIXELS, from + t * LANES, with, to + t * VECTORS * LANES);
    }
    if (GROUP % PIXELS && tiles > GROUP - GROUP % PIXELS) {
      const int t = GROUP - GROUP % PIXELS;
      multiply_tiles(GROUP % PIXELS, from + t * LANES, with, to + t * VECTORS * LANES);
    }
  }
}

/* Transforms one tile's products back, for one vector of output channels. */
KERNEL void finish_tile(const float *products, int tile, vec bias, const float *residual, float *out) {
  vec outputs[OUT_TILE][OUT_TILE];
  int y = tile / TILE_COLUMNS * OUT_TILE, x = tile % TILE_COLUMNS * OUT_TILE;
  interpolate_tile(products, PRODUCT_STRIDE, outputs);
  UNROLL for (int i = 0; i < OUT_TILE; i++) {
    if (OUT_HEIGHT % OUT_TILE && y + i >= OUT_HEIGHT) break;
    UNROLL for (int j = 0; j < OUT_TILE; j++) {
      if (OUT_WIDTH % OUT_TILE && x + j >= OUT_WIDTH) break;
      long at = ((long)(y + i) * OUT_WIDTH + x + j) * LANES;
      vec value = outputs[i][j] + bias;
      if (residual) value += load(residual + at);
      store(out + at, clamped(value));
    }
  }
}

/* Multiplies and transforms back one part of the output channels of a group. */
KERNEL void output_part(int part, int group, const void *const *inputs, const void *const *constants,
                        const float *values, float *products, float *output) {
  const float *weights = (const float *)constants[0] + (long)part * POSITIONS * CHANNELS * VECTORS * LANES;
  const float *bias = (const float *)constants[1];
  const int tiles = group_tiles(group);
  multiply_part(tiles, values, weights, products);
  NO_UNROLL for (int t = 0; t < tiles; t++) {
    NO_UNROLL for (int v = 0; v < VECTORS; v++) {
      const int block = part * VECTORS + v;
      const long plane = (long)block * OUT_HEIGHT * OUT_WIDTH * LANES;
      if (OUT_BLOCKS % VECTORS && block >= OUT_BLOCKS) break;
#ifdef RESIDUAL
      const float *residual = (const float *)inputs[RESIDUAL] + plane;
#else
      const float *residual = 0;
#endif
      finish_tile(products + (t * VECTORS + v) * LANES, group * GROUP + t, load(bias + block * LANES),
                  residual, output + plane);
    }
  }
  (void)inputs;
}

KERNEL void winograd_tiles(int task, const void *const *inputs, const void *const *constants,
                           void *output, void *shared, void *scratch) {
  float *values = (float *)scratch, *products = values + POSITIONS * VALUE_STRIDE;
  (void)shared;
  NO_UNROLL for (int block = 0; block < BLOCKS; block++) transform_block(inputs, task, block, values);
  NO_UNROLL for (int part = 0; part < PARTS; part++) {
    output_part(part, task, inputs, constants, values, products, (float *)output);
  }
}

KERNEL void winograd_transform(int task, const void *const *inputs, const void *const *constants,
                               void *output, void *shared, void *scratch) {
  const int group = task / CHUNKS, chunk = task % CHUNKS;
  (void)constants, (void)output, (void)scratch;
  NO_UNROLL for (int block = chunk * BLOCKS / CHUNKS; block < (chunk + 1) * BLOCKS / CHUNKS; block++) {
    transform_block(inputs, group, block, (float *)shared + group * POSITIONS * VALUE_STRIDE);
  }
}

KERNEL void winograd_multiply(int task, const void *const *inputs, const void *const *constants,
                              void *output, void *shared, void *scratch) {
  const int part = task / GROUPS, group = task % GROUPS;
  output_part(part, group, inputs, constants,
              (const float *)shared + group * POSITIONS * VALUE_STRIDE, (float *)scratch, (float *)output);
}

#endif /* RUN_MODEL_KERNELS_WINOGRAD_H_ */
