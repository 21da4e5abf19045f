"""Non-maximum suppression of TensorFlow Lite, by the operator that ONNX's is computed by."""

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.operators import chosen_boxes


def _suppression(converter, op):
    """Places, of the fifth version their scores too, and how many there are; zeros behind them."""
    boxes, scores, *parameters = (int(index) for index in op.InputsAsNumpy())
    most, overlap, least, *sigma = (converter.known_value(index).ravel() for index in parameters)
    if any(number.any() for number in sigma):
        raise Refusal("model", "it lowers the scores of boxes that overlap (NON_MAX_SUPPRESSION_V5 "
                      "with a sigma), and only leaving them out is supported")
    (total,), most = converter.shape_of(scores), int(most[0])
    # An overlap that is as large as the limit is too large here, and not in ONNX.
    limit = np.nextafter(overlap.astype(np.float32), np.float32(-1))
    scores = converter.value(scores)
    candidates = relay.sum(relay.cast(relay.greater(
        scores, relay.const(least.astype(np.float32))), "int64"), keepdims=True)
    order = relay.topk(scores, total, ret_type="indices", dtype="int64")
    found = relay.reshape(chosen_boxes.kept(
        [relay.reshape(order, (1, 1, total)), relay.expand_dims(converter.value(boxes), 0),
         relay.reshape(candidates, (1, 1)), relay.const(limit)], most, 0), (most + 1,))
    found = relay.cast(found, "int32")
    places = relay.strided_slice(found, [1], [most + 1])
    count = relay.strided_slice(found, [0], [1])
    there = relay.less(relay.const(np.arange(most, dtype=np.int32)), count)
    chosen = relay.where(there, relay.take(scores, places, mode="fast"),
                         relay.const(np.zeros(most, np.float32)))
    count = relay.reshape(count, ())
    return relay.Tuple([places, chosen, count] if sigma else [places, count])


CONVERTERS = {"NON_MAX_SUPPRESSION_V4": _suppression, "NON_MAX_SUPPRESSION_V5": _suppression}
"""By operators' names, functions of the importer's converter and one operator."""
