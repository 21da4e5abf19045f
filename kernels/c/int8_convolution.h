/* Convolution of bytes: 1x1 and k x k, any stride and dilation, grouped, of a picture, and dense.
 *
 * Output pixels are taken in tiles of TILE_ROWS x TILE_COLUMNS, output channels in chunks of
 * CHUNK_VECTORS vectors.  The sums of a tile and a chunk stay in registers while all input words
 * that the chunk's channels need go by: AVX-512  14 pixels x 2 vectors of sums, 2 of weights, 1 or
 * 2 broadcast words: 32 registers AVX2      4 pixels x 2 of sums, 4 of weights (even and odd
 * bytes), 2 + 2: 16 registers NEON      8 pixels x 3 of sums, 3 of weights, words Input words are
 * listed as *pieces*, PIECE_WORDS[i] words at byte PIECE_OFFSET[i] of input tensor PIECE_SOURCE[i],
 * the same for every pixel and tap; chunk c has pieces CHUNK_PIECES[2 * c] up to CHUNK_PIECES[2 * c
 * + 1], so that a group's chunk passes over other groups' channels.  Lanes of a word that are not
 * read have weights of zero.
 *
 * Constants: weights [chunk][tap][word][vector][lane][4], then per output channel, padded to whole
 * chunks: start (int32; minus zero points times weights), scale and bias (float32), and a
 * residual's scale if there is one.
 *
 * With PADDED_* (the last phase's input is `shared`) a first phase copies the input with its
 * border, which holds the zero point.  The border of one pixel row is cheaper than tests in the
 * inner loop: bytes are few.
 */
#include "int8_output.h"

static const int piece_offset[] = PIECE_OFFSET;
static const int piece_words[] = PIECE_WORDS;
static const int chunk_pieces[] = CHUNK_PIECES;
static const int chunk_weights[] = CHUNK_WEIGHTS;
static const int tap_offset[] = TAP_OFFSET;

#define TILES_DOWN ((OUTPUT_HEIGHT + TILE_ROWS - 1) / TILE_ROWS)
#define TILES_ACROSS ((OUTPUT_WIDTH + TILE_COLUMNS - 1) / TILE_COLUMNS)
#define TILES (TILES_DOWN * TILES_ACROSS)
#define LAST_ROWS (OUTPUT_HEIGHT - (TILES_DOWN - 1) * TILE_ROWS)
#define LAST_COLUMNS (OUTPUT_WIDTH - (TILES_ACROSS - 1) * TILE_COLUMNS)
#define CHUNKS ((OUTPUT_BLOCKS + CHUNK_VECTORS - 1) / CHUNK_VECTORS)
#define LAST_VECTORS (OUTPUT_BLOCKS - (CHUNKS - 1) * CHUNK_VECTORS)
#define MOST_PIXELS (TILE_ROWS * TILE_COLUMNS)

/* One tile of one chunk.  rows, columns and vectors are constants at every call. */
KERNEL void convolve_tile(int rows, int columns, int vectors, int y, int x, int chunk,
                          const void* const* inputs, const void* const* constants, void* output,
                          const unsigned char* padded) {
  const int first = chunk * CHUNK_VECTORS * LANES;
  const signed char* weights = (const signed char*)constants[0] + chunk_weights[chunk];
  const int* start = (const int*)constants[1] + first;
  const float* scale = (const float*)constants[2] + first;
  const float* bias = (const float*)constants[3] + first;
  const long corner = (long)y * STRIDE_Y * ROW_BYTES + (long)x * STRIDE_X * PIXEL_BYTES;
  ivec sums[MOST_PIXELS][CHUNK_VECTORS];
  UNROLL for (int p = 0; p < rows * columns; p++) {
    UNROLL for (int v = 0; v < vectors; v++) sums[p][v] = load_words(start + v * LANES);
  }
  NO_UNROLL for (int tap = 0; tap < TAPS; tap++) {
    NO_UNROLL for (int i = chunk_pieces[2 * chunk]; i < chunk_pieces[2 * chunk + 1]; i++) {
#ifdef PADDED_HEIGHT
      const unsigned char* from = padded;
#elif defined(PIECE_SOURCE)
      static const int piece_source[] = PIECE_SOURCE;
      const unsigned char* from = (const unsigned char*)inputs[piece_source[i]];
#else
      const unsigned char* from = (const unsigned char*)inputs[0];
#endif
      from += corner + piece_offset[i] + tap_offset[tap];
      NO_UNROLL for (int word = 0; word < piece_words[i]; word++, from += 4) {
        ivec w[CHUNK_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++, weights += 4 * LANES) w[v] = load_words(weights);
        UNROLL for (int p = 0; p < rows * columns; p++) {
          ivec a = signed_words(splat_word(from + (p / columns) * STRIDE_Y * ROW_BYTES +
                                           (p % columns) * STRIDE_X * PIXEL_BYTES));
          UNROLL for (int v = 0; v < vectors; v++) sums[p][v] = dot(sums[p][v], a, w[v]);
        }
      }
    }
  }
#ifdef RESIDUAL_INPUT
  const unsigned char* residual = (const unsigned char*)inputs[RESIDUAL_INPUT];
#else
  const unsigned char* residual = 0;
#endif
  UNROLL for (int v = 0; v < vectors; v++) {
    vec scales = load(scale + v * LANES), biases = load(bias + v * LANES);
    vec residual_scales = {0};
#ifdef RESIDUAL_INPUT
    residual_scales = load((const float*)constants[4] + first + v * LANES);
#endif
    long block = ((long)(chunk * CHUNK_VECTORS + v) * OUTPUT_HEIGHT + y) * OUTPUT_WIDTH + x;
    UNROLL for (int p = 0; p < rows * columns; p++) {
      store_result(output, (block + (p / columns) * OUTPUT_WIDTH + p % columns) * LANES, sums[p][v],
                   scales, biases, residual, residual_scales);
    }
  }
}

/* Gives every size of tile its own code. */
KERNEL void convolve_sized(int vectors, int tile, int chunk, const void* const* inputs,
                           const void* const* constants, void* output,
                           const unsigned char* padded) {
  const int row = tile / TILES_ACROSS, column = tile % TILES_ACROSS;
  const int y = row * TILE_ROWS, x = column * TILE_COLUMNS;
  const int short_down = LAST_ROWS != TILE_ROWS && row == TILES_DOWN - 1;
  const int short_across = LAST_COLUMNS != TILE_COLUMNS && column == TILES_ACROSS - 1;
  if (short_down && short_across) {
    convolve_tile(LAST_ROWS, LAST_COLUMNS, vectors, y, x, chunk, inputs, constants, output, padded);
  } else if (short_down) {
    convolve_tile(LAST_ROWS, TILE_COLUMNS, vectors, y, x, chunk, inputs, constants, output, padded);
  } else if (short_across) {
    convolve_tile(TILE_ROWS, LAST_COLUMNS, vectors, y, x, chunk, inputs, constants, output, padded);
  } else {
    convolve_tile(TILE_ROWS, TILE_COLUMNS, vectors, y, x, chunk, inputs, constants, output, padded);
  }
}

/* A task is TASK_TILES tiles of TASK_CHUNKS chunks; the weights of a chunk are used for all of its
 * tiles while they are in the nearest cache. */
KERNEL void int8_convolve(int task, const void* const* inputs, const void* const* constants,
                          void* output, void* shared, void* scratch) {
  const int tile_tasks = (TILES + TASK_TILES - 1) / TASK_TILES;
  const int tile = task % tile_tasks * TASK_TILES, chunk = task / tile_tasks * TASK_CHUNKS;
  const int tile_end = tile + TASK_TILES < TILES ? tile + TASK_TILES : TILES;
  const int chunk_end = chunk + TASK_CHUNKS < CHUNKS ? chunk + TASK_CHUNKS : CHUNKS;
  NO_UNROLL for (int c = chunk; c < chunk_end; c++) {
    NO_UNROLL for (int t = tile; t < tile_end; t++) {
      if (LAST_VECTORS != CHUNK_VECTORS && c == CHUNKS - 1) {
        convolve_sized(LAST_VECTORS, t, c, inputs, constants, output, shared);
      } else {
        convolve_sized(CHUNK_VECTORS, t, c, inputs, constants, output, shared);
      }
    }
  }
}

#ifdef VECTOR_CHANNELS
/* A float32 vector becomes bytes; a fully connected layer's input is small. */
KERNEL void int8_vector(int task, const void* const* inputs, const void* const* constants,
                        void* output, void* shared, void* scratch) {
  unsigned char* to = (unsigned char*)shared;
  for (int i = 0; i < (VECTOR_CHANNELS + 3) / 4 * 4; i++) to[i] = 0;
  NO_UNROLL for (int i = 0; i < VECTOR_CHANNELS; i += LANES) {
    const int count = VECTOR_CHANNELS - i < LANES ? VECTOR_CHANNELS - i : LANES;
    vec value = {0};
    if (count == LANES) {
      value = load((const float*)inputs[0] + i);
    } else {
      for (int j = 0; j < count; j++) value[j] = ((const float*)inputs[0])[i + j];
    }
    value = fused(value, splat(VECTOR_FACTOR), splat(VECTOR_OFFSET));
    lane_bytes rounded = rounded_bytes(minimum(maximum(value, splat(0.0f)), splat(255.0f)));
    if (count == LANES) {
      store_bytes(to + i, rounded);
    } else {
      for (int j = 0; j < count; j++) to[i + j] = rounded[j];
    }
  }
}
#elif defined(PADDED_HEIGHT) && !defined(PICTURE_CHANNELS)
/* Copies COPY_ROWS rows of one block into [block][PADDED_HEIGHT][PADDED_WIDTH][lane]. */
static const int copy_source[] = COPY_SOURCE;
static const int copy_block[] = COPY_BLOCK;
static const int copy_fill[] = COPY_FILL;

KERNEL void int8_pad(int task, const void* const* inputs, const void* const* constants,
                     void* output, void* shared, void* scratch) {
  const int bands = (PADDED_HEIGHT + COPY_ROWS - 1) / COPY_ROWS;
  const int block = task / bands, first = task % bands * COPY_ROWS;
  const unsigned char* from = (const unsigned char*)inputs[copy_source[block]] +
                              (long)copy_block[block] * INPUT_HEIGHT * INPUT_WIDTH * LANES;
  unsigned char* to =
      (unsigned char*)shared + ((long)block * PADDED_HEIGHT + first) * PADDED_WIDTH * LANES;
  const lane_bytes fill = (unsigned char)copy_fill[block] - (lane_bytes){0};
  NO_UNROLL for (int y = first; y < first + COPY_ROWS && y < PADDED_HEIGHT; y++) {
    const int row = y - PADDING_TOP;
    const int inside = row >= 0 && row < INPUT_HEIGHT;
    for (int x = 0; x < PADDED_WIDTH; x++, to += LANES) {
      const int column = x - PADDING_LEFT;
      const int there = inside && column >= 0 && column < INPUT_WIDTH;
      store_bytes(to, there ? load_bytes(from + ((long)row * INPUT_WIDTH + column) * LANES) : fill);
    }
  }
}
#endif

#ifdef PICTURE_CHANNELS
/* A float32 picture [channel][row][column] becomes bytes [PADDED_HEIGHT][PADDED_WIDTH][4]: a pixel
 * is one word.  Constants 4 and 5 are 1 / scale and the zero point of each channel; a value outside
 * of what bytes can hold becomes the nearest. */
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
