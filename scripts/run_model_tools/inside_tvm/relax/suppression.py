"""ONNX's NonMaxSuppression of any number of boxes, as a C function: TVM's own takes memory for all
pairs of rows and breaks down where the number of boxes is open.

What is suppressed is decided as ONNX Runtime does, number by number.
"""

from contextlib import contextmanager

import numpy as np

from run_model_tools.inside_tvm.operators.onnx_converters import exchanged

_NAME = "run_model_suppressed"
_MOST = 2 ** 16
"""Boxes of a class for which memory is kept however few boxes there are: TVM plans for the most
that an extent can be, and exporters that mean all boxes write the largest number that there is."""

ALL = np.array([np.nan], np.float32)
"""As least score: there is none, and boxes that are masked by a score of minus infinity count."""

C_SOURCE = """\
typedef struct { float low_y, low_x, high_y, high_x, area; } Box;

static Box box_at(const float *from, int centers) {
  const float a = from[0], b = from[1], c = from[2], d = from[3];
  Box box;
  if (centers) {
    box = (Box){b - d / 2, a - c / 2, b + d / 2, a + c / 2, 0};
  } else {
    box = (Box){a < c ? a : c, b < d ? b : d, a < c ? c : a, b < d ? d : b, 0};
  }
  box.area = (box.high_y - box.low_y) * (box.high_x - box.low_x);
  return box;
}

static int overlap(const Box *a, const Box *b, float threshold) {
  const float low_y = a->low_y > b->low_y ? a->low_y : b->low_y;
  const float high_y = a->high_y < b->high_y ? a->high_y : b->high_y;
  if (!(low_y < high_y)) return 0;
  const float low_x = a->low_x > b->low_x ? a->low_x : b->low_x;
  const float high_x = a->high_x < b->high_x ? a->high_x : b->high_x;
  if (!(low_x < high_x)) return 0;
  const float both = (high_y - low_y) * (high_x - low_x), either = a->area + b->area - both;
  return a->area > 0 && b->area > 0 && either > 0 && both / either > threshold;
}

/* The better score first, of equal ones the one that comes first: merged by twos, fours ... */
static int *sorted(int *places, int *other, long count, const float *scores) {
  for (long width = 1; width < count; width *= 2) {
    for (long begin = 0; begin < count; begin += 2 * width) {
      const long middle = begin + width < count ? begin + width : count;
      const long end = middle + width < count ? middle + width : count;
      long left = begin, right = middle;
      for (long at = begin; at < end; ++at) {
        const int takes_right = left == middle ||
            (right < end && scores[places[right]] > scores[places[left]]);
        other[at] = takes_right ? places[right++] : places[left++];
      }
    }
    int *done = other;
    other = places;
    places = done;
  }
  return places;
}

/* (boxes [batch, boxes, 4], scores [batch, classes, boxes], most of a class, overlap, least score
 * or NaN, whether boxes are (x, y, width, height), [rows of (sample, class, box), how many there
 * are and how long each is]) */
EXPORTED __tvm_ffi_run_model_suppressed(void *self, const Any *values, int count, Any *result) {
  (void)self, (void)result;
  for (int i = 0; i < count; ++i) {
    if (!tensor(&values[i])) return refuse();
  }
  if (count != 8) return refuse();
  const Tensor *all = tensor(&values[0]), *of_scores = tensor(&values[1]);
  const long batch = of_scores->shape[0], classes = of_scores->shape[1];
  const long boxes = of_scores->shape[2];
  if (all->shape[0] != batch || all->shape[1] != boxes || all->shape[2] != 4) return refuse();
  const long long most = *(const long long *)data(tensor(&values[2]));
  const float threshold = *(const float *)data(tensor(&values[3]));
  const float least = *(const float *)data(tensor(&values[4]));
  const int centers = *(const int *)data(tensor(&values[5]));
  Tensor *rows = tensor(&values[6]);
  long long *row = (long long *)data(rows), *const first = row;
  long long *const ends = (long long *)data(tensor(&values[7]));
  const long room = boxes ? boxes : 1;
  int *places = get(2 * room * sizeof *places);
  Box *kept = get(room * sizeof *kept);
  int failed = !places || !kept ? no_memory() : 0;
  for (long one = 0; !failed && one < batch * classes; ++one) {
    const float *scores = (const float *)data(of_scores) + one * boxes;
    const float *corners = (const float *)data(all) + one / classes * boxes * 4;
    long candidates = 0, taken = 0;
    for (long i = 0; i < boxes; ++i) {
      if (least != least || scores[i] > least) places[candidates++] = (int)i;
    }
    const int *order = sorted(places, places + room, candidates, scores);
    for (long i = 0; i < candidates && taken < most; ++i) {
      const Box box = box_at(corners + 4l * order[i], centers);
      long other = 0;
      while (other < taken && !overlap(&box, &kept[other], threshold)) ++other;
      if (other < taken) continue;
      if ((row - first) / 3 >= rows->shape[0]) { failed = refuse(); break; }
      kept[taken++] = box;
      *row++ = one / classes;
      *row++ = one % classes;
      *row++ = order[i];
    }
  }
  ends[0] = (row - first) / 3;
  ends[1] = 3;
  /* What lies behind is cut off, and read by nothing. */
  for (; row < first + 3 * rows->shape[0]; ++row) *row = 0;
  if (kept) give(kept);
  if (places) give(places);
  return failed;
}
"""
"""To follow ffi_c's."""


@contextmanager
def installed():
    """While it is open, TVM's importer makes calls of the function; gives a list that is not empty
    if it did."""
    from tvm.relax.frontend.onnx import onnx_frontend

    used = []

    class Suppression(onnx_frontend.OnnxOpConverter):
        @classmethod
        def _impl_v10(cls, bb, inputs, attr, params):
            used.append(True)
            given = [inputs[i] if i < len(inputs) else None for i in range(5)]
            return _call(bb, given, int(attr.get("center_point_box", 0)))

    with exchanged(onnx_frontend, lambda known: {**known, "NonMaxSuppression": Suppression}):
        yield used


def _call(bb, given, centers):
    from tvm import relax, tirx

    boxes, scores, most, overlap, least = given
    boxes, scores = bb.normalize(boxes), bb.normalize(scores)
    if most is None:
        most = _numbers([0], "int64")
    numbers = [
        most,
        _numbers([0], "float32") if overlap is None else overlap,
        relax.const(ALL) if least is None else least,
        _numbers([centers], "int32")]
    batch, classes, count = (scores.ty.shape.values[i] for i in range(3))
    if hasattr(most, "value"):
        known = max(int(most.value.numpy().item()), 0)
        if known <= _MOST:
            count = tirx.min(count, tirx.IntImm("int64", known))
    results = [relax.TensorType((batch * classes * count, 3), "int64"),
               relax.TensorType((2,), "int64")]
    made = bb.emit(relax.call_dps_packed(
        _NAME, relax.Tuple([boxes, scores, *numbers]), results))
    rows, ends = (bb.emit(relax.TupleGetItem(made, i)) for i in range(2))
    left = bb.emit(relax.op.dynamic_strided_slice(
        rows, _numbers([0, 0], "int64"), ends, _numbers([1, 1], "int64")))
    return bb.match_cast(left, relax.TensorType((tirx.Var("suppressed", "int64"), 3), "int64"))


def _numbers(numbers, dtype):
    from tvm import relax

    return relax.const(np.array(numbers, dtype), dtype)
