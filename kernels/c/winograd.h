/* 3 x 3 convolution, stride 1, by Winograd's minimal filtering F(OUT_TILE x OUT_TILE, 3 x 3).
 *
 * The output is cut into TILE_ROWS x TILE_COLUMNS square tiles of OUT_TILE pixels, numbered row by
 * row. Every tile's inputs are transformed to POSITIONS values (winograd_transform.h); at each
 * position a matrix product over the input channels follows, tiles x channels times channels x
 * output channels; its result is transformed back, and bias, residual and clamp are applied on the
 * way out.
 *
 * Tiles go in groups of GROUP, output channels in parts of VECTORS vectors.  A task is a group and
 * one of SPLITS equal shares of the parts.  It transforms its group's input into scratch, which
 * does not leave its core's cache, and reads its share of the weights once, from the first to the
 * last.  Where tiles are few and weights many, more splits than groups pay: transforming the input
 * again for every split costs less than fetching it from another core.
 *
 * Memory, in floats (strides from one position to the next are an odd number of vectors, lest all
 * positions of a tile fall into one set of a cache):
 *   transformed input  [position, VALUE_STRIDE][input block][tile of the group][lane]
 *   products           [position, PRODUCT_STRIDE][tile of the group][VECTORS][lane], of one part of
 * channels weights            [part of channels][position][input channel][VECTORS][lane], one
 * stream from the first to the last
 *
 * Registers: the multiplication is tile.h's, with PIXELS tiles as its pixels.
 *
 * Tiles over the edge of the input are read from a copy that zeros surround, other tiles from the
 * input itself; of tiles over the edge of the output only what is inside is written.
 *
 * Macros: those of winograd_transform.h; IN_HEIGHT, IN_WIDTH, OUT_HEIGHT, OUT_WIDTH, PAD_TOP,
 * PAD_LEFT; BLOCKS input blocks, of which BLOCK_TENSOR and BLOCK_INDEX, braced lists, say where
 * they are; PIECES runs of channels in the order of the weights with PIECE_BLOCK, PIECE_FIRST and
 * PIECE_COUNT (without PIECES every block is full and in its order); CHANNELS input channels;
 * OUT_BLOCKS, PARTS, VECTORS, SPLITS; GROUP, PIXELS; RESIDUAL, the input to add, if there is one.
 * Constants: weights, and the bias for every output lane.
 */
#ifndef RUN_MODEL_KERNELS_WINOGRAD_H_
#define RUN_MODEL_KERNELS_WINOGRAD_H_

#include "tile.h"
#include "winograd_transform.h"

#define TILE_ROWS ((OUT_HEIGHT + OUT_TILE - 1) / OUT_TILE)
#define TILE_COLUMNS ((OUT_WIDTH + OUT_TILE - 1) / OUT_TILE)
#define TILES (TILE_ROWS * TILE_COLUMNS)
#define VALUE_STRIDE ((BLOCKS * GROUP | 1) * (long)LANES)
#define PRODUCT_STRIDE ((GROUP * VECTORS | 1) * (long)LANES)

/* How many tiles group `group` has. */
KERNEL int group_tiles(int group) {
  return TILES - group * GROUP < GROUP ? TILES - group * GROUP : GROUP;
}

/* Copies the tile at (y, x), with zeros for what is outside of the input.  Where to load from is
 * selected without a branch: which pixels are outside differs from tile to tile and could not be
 * predicted. */
KERNEL void copy_edge_tile(const float* plane, int y, int x, vec copy[IN_TILE][IN_TILE]) {
  static const float zeros[LANES];
  NO_UNROLL for (int i = 0; i < IN_TILE; i++) {
    const int row_inside = (unsigned)(y + i) < IN_HEIGHT;
    const long row = (long)(y + i) * IN_WIDTH + x;
    UNROLL for (int j = 0; j < IN_TILE; j++) {
      const int inside = row_inside & ((unsigned)(x + j) < IN_WIDTH);
      copy[i][j] = load(inside ? plane + (row + j) * LANES : zeros);
    }
  }
}

/* Transforms all input blocks of tile number `t` of a group. */
KERNEL void transform_tile(const void* const* inputs, int group, int t, float* values) {
  static const int tensors[BLOCKS] = BLOCK_TENSOR;
  static const int indices[BLOCKS] = BLOCK_INDEX;
  const int tile = group * GROUP + t;
  const int y = tile / TILE_COLUMNS * OUT_TILE - PAD_TOP;
  const int x = tile % TILE_COLUMNS * OUT_TILE - PAD_LEFT;
  const int edge = y < 0 || x < 0 || y + IN_TILE > IN_HEIGHT || x + IN_TILE > IN_WIDTH;
  NO_UNROLL for (int block = 0; block < BLOCKS; block++) {
    const float* plane =
        (const float*)inputs[tensors[block]] + (long)indices[block] * IN_HEIGHT * IN_WIDTH * LANES;
    vec copy[IN_TILE][IN_TILE];
    const float* from = (const float*)copy;
    if (edge) {
      copy_edge_tile(plane, y, x, copy);
    } else {
      from = plane + ((long)y * IN_WIDTH + x) * LANES;
    }
    evaluate_tile(from, edge ? IN_TILE * LANES : IN_WIDTH * LANES,
                  values + (long)(block * GROUP + t) * LANES, VALUE_STRIDE);
  }
}

/* The products of `tiles` tiles at one position.  `tiles` is a constant at each call. */
KERNEL void multiply_tiles(int tiles, const float* values, const float* weights, float* products) {
  tile_sums sums;
  UNROLL for (int t = 0; t < tiles; t++) {
    UNROLL for (int v = 0; v < VECTORS; v++) sums[t][v] = (vec){0};
  }
#ifdef PIECES
  static const int blocks[PIECES] = PIECE_BLOCK;
  static const int first[PIECES] = PIECE_FIRST;
  static const int count[PIECES] = PIECE_COUNT;
  NO_UNROLL for (int i = 0; i < PIECES; i++) {
    tile_multiply(sums, 0, tiles, VECTORS, values + (long)blocks[i] * GROUP * LANES + first[i],
                  LANES, weights, count[i]);
    weights += count[i] * VECTORS * LANES;
  }
#else
  NO_UNROLL for (int block = 0; block < BLOCKS; block++) {
    tile_multiply(sums, 0, tiles, VECTORS, values + (long)block * GROUP * LANES, LANES,
                  weights + (long)block * LANES * VECTORS * LANES, LANES);
  }
#endif
  UNROLL for (int t = 0; t < tiles; t++) {
    UNROLL for (int v = 0; v < VECTORS; v++)
        store(products + (t * VECTORS + v) * LANES, sums[t][v]);
  }
}

/* The products of a group's tiles and one part of the output channels at all positions. */
KERNEL void multiply_part(int tiles, const float* values, const float* weights, float* products) {
  NO_UNROLL for (int position = 0; position < POSITIONS; position++) {
    const float* from = values + position * VALUE_STRIDE;
    const float* with = weights + (long)position * CHANNELS * VECTORS * LANES;
    float* to = products + position * PRODUCT_STRIDE;
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
KERNEL void finish_tile(const float* products, int tile, vec bias, const float* residual,
                        float* out) {
  const int y = tile / TILE_COLUMNS * OUT_TILE, x = tile % TILE_COLUMNS * OUT_TILE;
  UNROLL for (int odd = 0; odd < 2; odd++) {
    vec outputs[OUT_TILE / 2][OUT_TILE];
    interpolate_rows(odd, products, PRODUCT_STRIDE, outputs);
    UNROLL for (int i = 0; i < OUT_TILE / 2; i++) {
      const int row = y + 2 * i + odd;
      if (OUT_HEIGHT % OUT_TILE && row >= OUT_HEIGHT) break;
      UNROLL for (int j = 0; j < OUT_TILE; j++) {
        if (OUT_WIDTH % OUT_TILE && x + j >= OUT_WIDTH) break;
        const long at = ((long)row * OUT_WIDTH + x + j) * LANES;
        vec value = outputs[i][j] + bias;
        if (residual) value += load(residual + at);
        store(out + at, clamped(value));
      }
    }
  }
}

/* Multiplies and transforms back one part of the output channels of a group. */
KERNEL void output_part(int part, int group, const void* const* inputs,
                        const void* const* constants, const float* values, float* products,
                        float* output) {
  const float* weights =
      (const float*)constants[0] + (long)part * POSITIONS * CHANNELS * VECTORS * LANES;
  const float* bias = (const float*)constants[1];
  const int tiles = group_tiles(group);
  multiply_part(tiles, values, weights, products);
  NO_UNROLL for (int t = 0; t < tiles; t++) {
    NO_UNROLL for (int v = 0; v < VECTORS; v++) {
      const int block = part * VECTORS + v;
      const long plane = (long)block * OUT_HEIGHT * OUT_WIDTH * LANES;
      if (OUT_BLOCKS % VECTORS && block >= OUT_BLOCKS) break;
#ifdef RESIDUAL
      const float* residual = (const float*)inputs[RESIDUAL] + plane;
#else
      const float* residual = 0;
#endif
      finish_tile(products + (t * VECTORS + v) * LANES, group * GROUP + t,
                  load(bias + block * LANES), residual, output + plane);
    }
  }
  (void)inputs;
}

KERNEL void winograd(int task, const void* const* inputs, const void* const* constants,
                     void* output, void* shared, void* scratch) {
  const int group = task / SPLITS, split = task % SPLITS;
  float *values = (float*)scratch, *products = values + POSITIONS * VALUE_STRIDE;
  (void)shared;
  NO_UNROLL for (int t = 0; t < group_tiles(group); t++) transform_tile(inputs, group, t, values);
  NO_UNROLL for (int part = part_start(split, SPLITS, PARTS);
                 part < part_start(split + 1, SPLITS, PARTS); part++) {
    output_part(part, group, inputs, constants, values, products, (float*)output);
  }
}

#endif /* RUN_MODEL_KERNELS_WINOGRAD_H_ */
