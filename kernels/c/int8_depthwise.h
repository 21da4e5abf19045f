/* Depthwise convolution of bytes.
 *
 * A word holds four rows of one channel and column, so one dot product adds up four rows: bytes of
 * four rows are interleaved once for each input column (column_words) and then serve every output
 * that reaches it.  ROWS output rows are made at once, from INPUT_ROWS rows in ROW_WORDS words;
 * weights that an output row does not reach are zero.  For 3x3 with stride 1 two rows need just one
 * word.
 *
 *   AVX-512: ROWS x COLUMNS = 8 sums, 6 weights of 3x3, a few of the four rows: below 32 registers;
 *   with 16 registers weights come from memory.
 *
 * Rows above and below the picture are read from a row of zero points in scratch memory; columns
 * beside it are told apart in the tiles at the edges only.  Constants: weights [block][row][tap
 * column][word][lane][4], start, scale, bias and, with a residual, its scale [block][lane].
 */
#include "int8_output.h"

static const int block_tensor[] = BLOCK_TENSOR;
static const int block_index[] = BLOCK_INDEX;
static const int block_fill[] = BLOCK_FILL;

#define INPUT_ROWS ((ROWS - 1) * STRIDE_Y + (TAPS_Y - 1) * DILATION_Y + 1)
#define ROW_WORDS ((INPUT_ROWS + 3) / 4)
#define INPUT_COLUMNS ((COLUMNS - 1) * STRIDE_X + (TAPS_X - 1) * DILATION_X + 1)

typedef unsigned char four_bytes __attribute__((vector_size(4 * LANES)));
typedef unsigned char two_bytes __attribute__((vector_size(2 * LANES)));

/* The words of one pixel's LANES channels, with a byte of a, b, c and d each. */
KERNEL ivec interleaved(lane_bytes a, lane_bytes b, lane_bytes c, lane_bytes d) {
#define WORD_OF_ROWS(i) i, i + LANES, i + 2 * LANES, i + 3 * LANES
#if LANES == 16
#define PAIR                                                                                    \
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, \
      26, 27, 28, 29, 30, 31
#define WORDS_OF_ROWS                                                                           \
  WORD_OF_ROWS(0), WORD_OF_ROWS(1), WORD_OF_ROWS(2), WORD_OF_ROWS(3), WORD_OF_ROWS(4),          \
      WORD_OF_ROWS(5), WORD_OF_ROWS(6), WORD_OF_ROWS(7), WORD_OF_ROWS(8), WORD_OF_ROWS(9),      \
      WORD_OF_ROWS(10), WORD_OF_ROWS(11), WORD_OF_ROWS(12), WORD_OF_ROWS(13), WORD_OF_ROWS(14), \
      WORD_OF_ROWS(15)
#elif LANES == 8
#define PAIR 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define WORDS_OF_ROWS                                                                  \
  WORD_OF_ROWS(0), WORD_OF_ROWS(1), WORD_OF_ROWS(2), WORD_OF_ROWS(3), WORD_OF_ROWS(4), \
      WORD_OF_ROWS(5), WORD_OF_ROWS(6), WORD_OF_ROWS(7)
#else
#define PAIR 0, 1, 2, 3, 4, 5, 6, 7
#define WORDS_OF_ROWS WORD_OF_ROWS(0), WORD_OF_ROWS(1), WORD_OF_ROWS(2), WORD_OF_ROWS(3)
#endif
  two_bytes ab = __builtin_shufflevector(a, b, PAIR), cd = __builtin_shufflevector(c, d, PAIR);
  return (ivec)__builtin_shufflevector(ab, cd, WORDS_OF_ROWS);
}

/* Word `word` of input column x; columns outside are zero points where `edge` says that they occur.
 */
KERNEL ivec column_words(const unsigned char* const* rows, int x, int word, int edge, int fill) {
  if (edge && (x < 0 || x >= IN_WIDTH)) return signed_words((ivec){0} + (int)(fill * 0x01010101u));
  lane_bytes four[4] = {{0}, {0}, {0}, {0}};
  UNROLL for (int i = 0; i < 4; i++) {
    if (4 * word + i < INPUT_ROWS) four[i] = load_bytes(rows[4 * word + i] + (long)x * LANES);
  }
  return signed_words(interleaved(four[0], four[1], four[2], four[3]));
}

/* ROWS x COLUMNS outputs from row y and column x on. */
KERNEL void depthwise_tile(int y, int x, int edge, const unsigned char* const* rows, int block,
                           const void* const* inputs, const void* const* constants, void* output) {
  const signed char* weights =
      (const signed char*)constants[0] + (long)block * ROWS * TAPS_X * ROW_WORDS * 4 * LANES;
  ivec sums[ROWS][COLUMNS];
  const ivec start = load_words((const int*)constants[1] + block * LANES);
  UNROLL for (int r = 0; r < ROWS; r++) {
    UNROLL for (int c = 0; c < COLUMNS; c++) sums[r][c] = start;
  }
  UNROLL for (int j = 0; j < INPUT_COLUMNS; j++) {
    UNROLL for (int word = 0; word < ROW_WORDS; word++) {
      const ivec a = column_words(rows, x * STRIDE_X - PAD_LEFT + j, word, edge, block_fill[block]);
      UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int reach = j - c * STRIDE_X;
        if (reach < 0 || reach % DILATION_X || reach / DILATION_X >= TAPS_X) continue;
        UNROLL for (int r = 0; r < ROWS; r++) {
          /* Whether this output row reaches any row of the word. */
          if (r * STRIDE_Y > 4 * word + 3 || r * STRIDE_Y + (TAPS_Y - 1) * DILATION_Y < 4 * word)
            continue;
          sums[r][c] =
              dot(sums[r][c], a,
                  load_words(weights +
                             ((r * TAPS_X + reach / DILATION_X) * ROW_WORDS + word) * 4 * LANES));
        }
      }
    }
  }
  const vec scale = load((const float*)constants[2] + block * LANES);
  const vec bias = load((const float*)constants[3] + block * LANES);
  vec residual_scale = {0};
#ifdef RESIDUAL_INPUT
  residual_scale = load((const float*)constants[4] + block * LANES);
  const unsigned char* residual = (const unsigned char*)inputs[RESIDUAL_INPUT];
#else
  const unsigned char* residual = 0;
#endif
  UNROLL for (int r = 0; r < ROWS; r++) {
    if (y + r >= OUT_HEIGHT) break;
    const long at = ((long)block * OUT_HEIGHT + y + r) * OUT_WIDTH + x;
    UNROLL for (int c = 0; c < COLUMNS; c++) {
      if (edge && x + c >= OUT_WIDTH) break;
      store_result(output, (at + c) * LANES, sums[r][c], scale, bias, residual, residual_scale);
    }
  }
}

/* A task is TASK_STEPS times ROWS output rows of a block. */
KERNEL void int8_depthwise(int task, const void* const* inputs, const void* const* constants,
                           void* output, void* shared, void* scratch) {
  const int steps = (OUT_HEIGHT + ROWS - 1) / ROWS, bands = (steps + TASK_STEPS - 1) / TASK_STEPS;
  const int block = task / bands, first = task % bands * TASK_STEPS;
  const unsigned char* picture = (const unsigned char*)inputs[block_tensor[block]] +
                                 (long)block_index[block] * IN_HEIGHT * IN_WIDTH * LANES;
  unsigned char* outside = (unsigned char*)scratch;
  for (int x = 0; x < IN_WIDTH; x++) {
    store_bytes(outside + x * LANES, (unsigned char)block_fill[block] - (lane_bytes){0});
  }
  NO_UNROLL for (int step = first; step < first + TASK_STEPS && step < steps; step++) {
    const int y = step * ROWS;
    const unsigned char* rows[INPUT_ROWS];
    UNROLL for (int i = 0; i < INPUT_ROWS; i++) {
      const int row = y * STRIDE_Y - PAD_TOP + i;
      rows[i] = row >= 0 && row < IN_HEIGHT ? picture + (long)row * IN_WIDTH * LANES : outside;
    }
    NO_UNROLL for (int x = 0; x < OUT_WIDTH; x += COLUMNS) {
      const int left = x * STRIDE_X - PAD_LEFT;
      if (left >= 0 && left + INPUT_COLUMNS <= IN_WIDTH && x + COLUMNS <= OUT_WIDTH) {
        depthwise_tile(y, x, 0, rows, block, inputs, constants, output);
      } else {
        depthwise_tile(y, x, 1, rows, block, inputs, constants, output);
      }
    }
  }
}
