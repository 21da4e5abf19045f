/* Which input channels a tile of output channels needs, and where they are.
 *
 * The channels are runs: run r is `RUN_COUNT[r]` lanes of each of `RUN_BLOCKS[r]` blocks that
 * follow each other in input tensor `RUN_TENSOR[r]`, and begins `RUN_OFFSET[r]` numbers from its
 * start.  If RUN_COUNT is not defined, all lanes are read.  Weights are [tile][tap][input
 * channel][output channel] in the order of the runs (tiles.channel_runs()).
 *
 * Macros: VECTOR_TILES, of which LARGER_VECTOR_TILES have one vector more than TILE_VECTORS;
 *   INPUT_BLOCK (numbers in a block of an input), TAPS (the kernel's height x width), and
 *   RUNS and DEPTH, if all tiles need all of the RUNS runs, which are DEPTH channels; or
 *   TILE_RUNS and TILE_WEIGHTS: where the runs and the weights of each tile begin, TILE_DEPTH: its
 *   number of input channels (groups).
 *   AHEAD_LINES, if the weights of the tile that follows are to be fetched into the second-level
 *   cache: how many cache lines of them with each block of channels (channels.py);
 *   APART, 1 if a tile has output channels of several groups: between an output and an input of
 *   another group lie weights of -0, which no others are; see channels_multiply_apart().
 */
#ifndef RUN_MODEL_KERNELS_CHANNELS_H_
#define RUN_MODEL_KERNELS_CHANNELS_H_

#include "tile.h"

#ifndef APART
#define APART 0
#endif

#define CACHE_LINE 64

static const int run_tensor[] = RUN_TENSOR;
static const int run_offset[] = RUN_OFFSET;
static const int run_blocks[] = RUN_BLOCKS;
#ifdef RUN_COUNT
static const int run_count[] = RUN_COUNT;
#endif

typedef struct {
  int first_run, end_run;
  int depth;
  const number* weights;
  long ahead; /* what is fetched lies so many bytes from what is multiplied */
} tile_channels;

#ifdef TILE_RUNS
static const int tile_runs[] = TILE_RUNS;
static const int tile_weights[] = TILE_WEIGHTS;
static const int tile_depth[] = TILE_DEPTH;
#endif

#ifdef VECTOR_TILES
/* The first vector of output channels of a tile; larger tiles are spread among the others. */
KERNEL int first_vector(int tile) {
  return part_start(tile, VECTOR_TILES, VECTOR_TILES * TILE_VECTORS + LARGER_VECTOR_TILES);
}

/* Whether it has TILE_VECTORS + 1 vectors and not TILE_VECTORS. */
KERNEL int has_more_vectors(int tile) {
  return LARGER_VECTOR_TILES && first_vector(tile + 1) - first_vector(tile) > TILE_VECTORS;
}
#endif

/* Of the tile with number `tile`, which begins with output vector `vector`. */
KERNEL tile_channels channels_of_tile(const number* weights, int tile, int vector) {
#ifdef TILE_RUNS
  (void)vector;
  return (tile_channels){tile_runs[tile], tile_runs[tile + 1], tile_depth[tile],
                         weights + tile_weights[tile]};
#else
  (void)tile;
  return (tile_channels){0, RUNS, DEPTH, weights + (long)vector * LANES * TAPS * DEPTH};
#endif
}

/* How many channels each of a run's blocks has. */
KERNEL int channels_of_run(int run) {
#ifdef RUN_COUNT
  return run_count[run];
#else
  (void)run;
  return LANES;
#endif
}

/* Where a run begins, `offset` numbers on. */
KERNEL const number* input_of_run(const void* const* inputs, int run, long offset) {
  return (const number*)inputs[run_tensor[run]] + run_offset[run] + offset;
}

/* The same, with share `share` of the next tile's weights fetched while these are multiplied. */
KERNEL tile_channels fetching_next(tile_channels channels, int vectors, int share) {
#ifdef AHEAD_LINES
  channels.ahead = (long)channels.depth * TAPS * vectors * LANES * (long)sizeof(number) +
                   (long)share * AHEAD_LINES * CACHE_LINE;
#else
  (void)vectors, (void)share;
#endif
  return channels;
}

/* Adds one tap's products with all of the input channels to the sums of `pixels` pixels from
 * `first` on.  `offset`: of the first of these pixels in a block, in numbers. */
KERNEL void channels_multiply(tile_sums sums, int first, int pixels, int vectors,
                              const void* const* inputs, tile_channels channels, long offset,
                              long pixel_stride, int tap) {
  const number* weights = channels.weights + (long)tap * channels.depth * vectors * LANES;
  NO_UNROLL for (int run = channels.first_run; run < channels.end_run; run++) {
    const int count = channels_of_run(run);
    const number* input = input_of_run(inputs, run, offset);
    NO_UNROLL for (int block = 0; block < run_blocks[run]; block++) {
#ifdef AHEAD_LINES
      UNROLL for (int line = 0; line < AHEAD_LINES; line++) {
        __builtin_prefetch((const char*)weights + channels.ahead + line * CACHE_LINE, 0, 2);
      }
#endif
      tile_make_room(sums, first, pixels, vectors, count);
      tile_multiply(sums, first, pixels, vectors, input, pixel_stride, weights, count);
      input += INPUT_BLOCK;
      weights += count * vectors * LANES;
    }
  }
}

/* Adds one tap's products to one vector of sums as channels_multiply() does, but none of another
 * group's inputs: a NaN or an infinity among them makes a NaN of weights of zero.  It is called
 * where there was such a sum. */
KERNEL vec channels_multiply_apart(vec sum, int vector, int vectors, const void* const* inputs,
                                   tile_channels channels, long offset, int tap) {
  const number* weights =
      channels.weights + ((long)tap * channels.depth * vectors + vector) * LANES;
  NO_UNROLL for (int run = channels.first_run; run < channels.end_run; run++) {
    const int count = channels_of_run(run);
    const number* input = input_of_run(inputs, run, offset);
    NO_UNROLL for (int k = 0; k < run_blocks[run] * count; k++) {
      const vec weight = load(weights);
      const vec product = splat(input[(long)(k / count) * INPUT_BLOCK + k % count]) * weight;
      sum += chosen((ivec)weight == (ivec)splat(-0.0f), (vec){0}, product);
      weights += vectors * LANES;
    }
  }
  return sum;
}

#endif /* RUN_MODEL_KERNELS_CHANNELS_H_ */
