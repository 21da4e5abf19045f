/* Where windows that slide over a padded picture lie. */
#ifndef RUN_MODEL_KERNELS_WINDOW_H_
#define RUN_MODEL_KERNELS_WINDOW_H_

#include "tile.h"

/* Along one axis, output `position` reads inputs position * stride - padding + tap * dilation; the
 * taps from first_tap to before end_tap are those inside the picture.  There may be none: then
 * end_tap is not above first_tap. */
KERNEL int first_tap(int position, int stride, int dilation, int padding) {
  int outside = padding - position * stride;
  return outside > 0 ? (outside + dilation - 1) / dilation : 0;
}

KERNEL int end_tap(int position, int stride, int dilation, int padding, int size, int taps) {
  int inside = size + padding - position * stride;
  if (inside <= 0) return 0;
  int end = (inside + dilation - 1) / dilation;
  return end < taps ? end : taps;
}

#endif /* RUN_MODEL_KERNELS_WINDOW_H_ */
