"""Constants of types that came with opsets 23 to 25 -> the same numbers in types that ONNX Runtime
1.20 knows, which models are compared with; the repair reads them as they are."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from run_model_tools.onnx_repair.stored_tensors import tensors_of
from run_model_tools.onnx_repair.values import FLOAT4, LATER, array_of

_SIZES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
_AS_FLOAT8 = np.array([0, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c], np.uint8)
"""The same as FLOAT8E4M3FN, which has twice as many bits of exponent and three of fraction."""


def in_older_types(model: onnx.ModelProto) -> bool:
    """Says whether there were any.  What the model says of tensors between nodes goes then."""
    newer = [tensor for tensor in tensors_of(model) if tensor.data_type in LATER]
    for tensor in newer:
        numbers = array_of(tensor)
        if tensor.data_type == FLOAT4:
            stored = _AS_FLOAT8[np.searchsorted(_SIZES, np.abs(numbers))]
            stored |= np.where(np.signbit(numbers), 128, 0).astype(np.uint8)
            older = TensorProto(data_type=TensorProto.FLOAT8E4M3FN, dims=tensor.dims,
                                raw_data=stored.tobytes())
        else:
            older = numpy_helper.from_array(numbers)
        older.name = tensor.name
        tensor.CopyFrom(older)
    if newer:
        del model.graph.value_info[:]
    return bool(newer)
