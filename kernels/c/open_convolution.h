/* What convolutions of pictures whose extents are known only when they run have in common: what
 * they are given, the product of a register tile, and what is done to sums on their way to the
 * result.
 *
 * Their functions are given: picture NC[H]W, packed weights, int64[9] of window, strides, pads
 * before and dilations, each downwards and across, and groups, operands ..., [result].
 *
 * Follows ffi_c.py's VALUES, FAIL and RUNTIME.  Macros: TAPS, places in the window; TILE_ROWS x
 * TILE_VECTORS, the register tile: rows of output channels x vectors of what lies beside each
 * other; OPERANDS of what is done to the result, and OPERAND_FULL, for each of them 1 if it is as
 * large as the result, 0 if it has a number for each channel at most; PROGRAM, `value` from
 * `product`, with operands[i][0] or the vector fulls[i] (open_convolution.py).
 */
#ifndef RUN_MODEL_KERNELS_OPEN_CONVOLUTION_H_
#define RUN_MODEL_KERNELS_OPEN_CONVOLUTION_H_

#include "open.h"
#include "open_lines.h"
#include "reductions.h"
#include "vector_math.h"

enum {
  PANEL = TILE_VECTORS * LANES,
  FEW_UNITS = 8, /* Fewer pieces of work than this are cut into several of fewer channels. */
};

typedef struct {
  const float *in, *weights;
  float* out;
  const float* operands[OPERANDS + 1];
  long operand_steps[OPERANDS + 1][2]; /* From sample to sample and channel to channel. */
  long samples, groups, channels, out_channels, blocks; /* Channels and blocks of a group. */
  long height, width, out_height, out_width;
  long window[2], strides[2], before[2], dilations[2];
} Convolution;

static const int operand_full[OPERANDS + 1] = OPERAND_FULL;

/* Sums of `places` places in the window of each channel, which has the weights of `others` more
 * after them; rows of sums lie `row` numbers apart.  `resumes`: they are added to what is there. */
KERNEL void multiply(const float* x, long channels, long channel_step, const long* taps, int places,
                     int others, const float* weights, float* done, long row, int resumes,
                     int vectors) {
  vec sums[TILE_ROWS][TILE_VECTORS];
  UNROLL for (int r = 0; r < TILE_ROWS; r++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      sums[r][v] = resumes ? load(done + r * row + v * LANES) : (vec){0};
    }
  }
  NO_UNROLL for (long channel = 0; MANY_TIMES(channel < channels);
                 ++channel, x += channel_step, weights += others * TILE_ROWS) {
    NO_UNROLL for (int tap = 0; MANY_TIMES(tap < places); ++tap, weights += TILE_ROWS) {
      const float* from = x + taps[tap];
      vec right[TILE_VECTORS];
      UNROLL for (int v = 0; v < vectors; v++) right[v] = load(from + v * LANES);
#ifdef MULTIPLIES_BY_LANE
      UNROLL for (int r = 0; r + LANES <= TILE_ROWS; r += LANES) {
        const vec left = load(weights + r);
        UNROLL for (int lane = 0; lane < LANES; lane++) {
          UNROLL for (int v = 0; v < vectors; v++) {
            sums[r + lane][v] = multiply_add_lane(sums[r + lane][v], left, lane, right[v]);
          }
        }
      }
      UNROLL for (int r = TILE_ROWS / LANES * LANES; r < TILE_ROWS; r++) {
        UNROLL for (int v = 0; v < vectors; v++) sums[r][v] += splat(weights[r]) * right[v];
      }
#else
      UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        const vec left = splat(weights[r]);
        UNROLL for (int v = 0; v < vectors; v++) sums[r][v] += left * right[v];
      }
#endif
    }
  }
  UNROLL for (int r = 0; r < TILE_ROWS; r++) {
    UNROLL for (int v = 0; v < vectors; v++) store(done + r * row + v * LANES, sums[r][v]);
  }
}

/* The same of the first `vectors` vectors at least. */
KERNEL void multiply_panel(const float* x, long channels, long channel_step, const long* taps,
                           int places, int others, const float* weights, float* done, long row,
                           int resumes, int vectors) {
  enum { HALF = TILE_VECTORS > 1 ? TILE_VECTORS / 2 : 1 };
  if (vectors <= HALF) {
    multiply(x, channels, channel_step, taps, places, others, weights, done, row, resumes, HALF);
  } else if (vectors < TILE_VECTORS) {
    multiply(x, channels, channel_step, taps, places, others, weights, done, row, resumes,
             TILE_VECTORS - 1);
  } else {
    multiply(x, channels, channel_step, taps, places, others, weights, done, row, resumes,
             TILE_VECTORS);
  }
}

/* Where the operands of a channel's numbers from `first` of its picture on are, and the result. */
KERNEL float* operands_of(const Convolution* c, long sample, long channel, long first,
                          const float** operands) {
  UNROLL for (int i = 0; i < OPERANDS; i++) {
    operands[i] = c->operands[i] + sample * c->operand_steps[i][0] +
                  channel * c->operand_steps[i][1] + (operand_full[i] ? first : 0);
  }
  const long picture = sample * c->groups * c->out_channels + channel;
  return c->out + picture * c->out_height * c->out_width + first;
}

/* What is done to a vector of sums, of which the first `count` are numbers `at`, ... of the result
 * and its operands. */
KERNEL void finish_vector(vec product, const float* const* operands, float* out, long at,
                          long count) {
  float last[LANES] = {0};
  vec fulls[OPERANDS + 1];
  (void)fulls;
  UNROLL for (int i = 0; i < OPERANDS; i++) {
    if (!operand_full[i]) continue;
    if (count < LANES) copy_numbers(last, operands[i] + at, count);
    fulls[i] = load(count < LANES ? last : operands[i] + at);
  }
  PROGRAM
  if (count < LANES) {
    store(last, value);
    copy_numbers(out + at, last, count);
  } else {
    store(out + at, value);
  }
}

/* What is done to `count` sums of a channel that lie beside each other in the result, from number
 * `first` of its picture on. */
KERNEL void finish(const Convolution* c, long sample, long channel, long first, const float* sums,
                   long count) {
  const float* operands[OPERANDS + 1];
  float* const out = operands_of(c, sample, channel, first, operands);
  NO_UNROLL for (long at = 0; at < count; at += LANES) {
    finish_vector(load(sums + at), operands, out, at, count - at);
  }
}

/* `count` in as few equal parts as can be, none larger than `most` but by rounding up to whole
 * `unit`s. */
static void cut(long count, long most, long unit, long* part, long* parts) {
  if (most < unit) most = unit;
  *parts = (count + most - 1) / most;
  *part = whole((count + *parts - 1) / *parts, unit);
  *parts = (count + *part - 1) / *part;
}

/* Into how many each group's blocks are split, where there are so many parts of a picture, for at
 * least `few` pieces of work. */
static inline long splits_of(const Convolution* c, long parts, long few) {
  const long units = c->samples * c->groups * parts, splits = (few + units - 1) / units;
  return splits < c->blocks ? splits : c->blocks;
}

/* The tasks of a call; `additions` of each number of the result, before what is done to it. */
static inline int launch_call(const Convolution* c, Task task, void* of, double additions) {
  const double numbers = (double)c->samples * c->groups * c->out_channels;
  return launch_if_large(
      task, of, numbers * c->out_height * c->out_width * (additions + OPERANDS + 4) / LANES);
}

/* What a function is given; weights are as many numbers as `packed` says for each block of a group.
 * 0, or what refuse() gives. */
static inline int read_call(const Any* values, int count, Convolution* result,
                            long long (*packed)(const Convolution*)) {
  if (count != 4 + OPERANDS) return refuse();
  const Tensor *in = tensor(&values[0]), *weights = tensor(&values[1]), *how = tensor(&values[2]);
  const Tensor* out = tensor(&values[3 + OPERANDS]);
  if (!is_float32(in) || !is_float32(weights) || !is_float32(out) || !how || how->ndim != 1 ||
      how->shape[0] != 9 || how->bits != 64 || in->ndim < 3 || in->ndim > 4 ||
      out->ndim != in->ndim) {
    return refuse();
  }
  const long long* number = (const long long*)data(how);
  const int is_flat = in->ndim == 3;
  const long long *last = in->shape + in->ndim - 1, *wanted = out->shape + in->ndim - 1;
  Convolution c = {.in = (float*)data(in),
                   .weights = (float*)data(weights),
                   .out = (float*)data(out),
                   .samples = in->shape[0],
                   .groups = number[8],
                   .height = is_flat ? 1 : last[-1],
                   .width = last[0],
                   .out_height = is_flat ? 1 : wanted[-1],
                   .out_width = wanted[0],
                   .window = {number[0], number[1]},
                   .strides = {number[2], number[3]},
                   .before = {number[4], number[5]},
                   .dilations = {number[6], number[7]}};
  if (c.groups < 1 || in->shape[1] < 1 || in->shape[1] % c.groups || out->shape[1] < 1 ||
      out->shape[1] % c.groups || out->shape[0] != c.samples || c.window[0] * c.window[1] != TAPS) {
    return refuse();
  }
  c.channels = in->shape[1] / c.groups, c.out_channels = out->shape[1] / c.groups;
  c.blocks = (c.out_channels + TILE_ROWS - 1) / TILE_ROWS;
  if (bytes(weights) != (long long)sizeof(float) * c.groups * c.blocks * packed(&c)) {
    return refuse();
  }
  for (int axis = 0; axis < 2; ++axis) {
    if (c.window[axis] < 1 || c.strides[axis] < 1 || c.dilations[axis] < 1) return refuse();
  }
  for (int i = 0; i < OPERANDS; ++i) {
    const Tensor* operand = tensor(&values[3 + i]);
    long extents[4], steps[4];
    for (int axis = 0; axis < out->ndim; ++axis) extents[axis] = out->shape[axis];
    if (!is_float32(operand) || find_steps(operand, out->ndim, extents, steps)) return refuse();
    if (operand_full[i] && bytes(operand) != bytes(out)) return refuse();
    for (int axis = 2; axis < out->ndim && !operand_full[i]; ++axis) {
      if (steps[axis]) return refuse();
    }
    c.operands[i] = (float*)data(operand);
    for (int axis = 0; axis < 2; ++axis) c.operand_steps[i][axis] = steps[axis];
    if (operand_full[i]) {
      c.operand_steps[i][1] = c.out_height * c.out_width;
      c.operand_steps[i][0] = out->shape[1] * c.operand_steps[i][1];
    }
  }
  *result = c;
  return 0;
}

#endif /* RUN_MODEL_KERNELS_OPEN_CONVOLUTION_H_ */
