"""Constants of types that onnx 1.16 does not know (opsets 23 to 25) -> the same numbers in types
that it does: whoever reads a model here knows those only.

What a network computes stays of the type that it says, and is refused by its name.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto

from run_model_tools.few_bits import FLOAT4

FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2 = 23, 24, 25, 26
NAMES = {FLOAT4E2M1: "float4e2m1", FLOAT8E8M0: "float8e8m0", UINT2: "uint2", INT2: "int2"}
NUMBERS_OF_A_BYTE = {FLOAT4E2M1: 2, FLOAT8E8M0: 1, UINT2: 4, INT2: 4}

# FLOAT4 in FLOAT8E4M3FN, whose exponent is one of 7 bits higher and whose fraction has three.
_EXPONENTS = np.where(FLOAT4 == 0, 0, np.floor(np.log2(np.where(FLOAT4 == 0, 1, abs(FLOAT4)))))
_FRACTIONS = 8 * (abs(FLOAT4) / 2.0 ** _EXPONENTS - 1)
_FLOAT4_IN_BYTES = np.where(FLOAT4 == 0, 0, 8 * (_EXPONENTS + 7) + _FRACTIONS).astype(np.uint8)
_FLOAT4_IN_BYTES |= (128 * (FLOAT4 < 0)).astype(np.uint8)


def in_older_types(model: onnx.ModelProto, tensors: list[TensorProto]) -> bool:
    """Changes the `tensors` of a model that are of such types, and says whether there were any.
    What the model says of tensors between nodes goes, where they are."""
    newer = [tensor for tensor in tensors if tensor.data_type in NUMBERS_OF_A_BYTE]
    for tensor in newer:
        tensor.CopyFrom(_in_older_type(tensor))
    if newer:
        said = [item for item in model.graph.value_info
                if item.type.tensor_type.elem_type not in NUMBERS_OF_A_BYTE]
        del model.graph.value_info[:]
        model.graph.value_info.extend(said)
    return bool(newer)


def _in_older_type(tensor: TensorProto) -> TensorProto:
    kind = tensor.data_type
    packed = (np.frombuffer(tensor.raw_data, np.uint8) if tensor.raw_data
              else np.array(tensor.int32_data).astype(np.uint8))
    parts = NUMBERS_OF_A_BYTE[kind]
    bits = 8 // parts
    numbers = np.stack([packed >> bits * i & ((1 << bits) - 1) for i in range(parts)], -1)
    numbers = numbers.reshape(-1)[:math.prod(tensor.dims)]
    if kind == FLOAT8E8M0:
        powers = np.ldexp(np.float32(1), numbers.astype(np.int32) - 127)
        older, made = TensorProto.FLOAT, np.where(numbers == 255, np.float32(np.nan), powers)
    elif kind == FLOAT4E2M1:
        older, made = TensorProto.FLOAT8E4M3FN, _FLOAT4_IN_BYTES[numbers]
    elif kind == UINT2:
        older, made = TensorProto.UINT8, numbers
    else:
        older, made = TensorProto.INT8, (numbers ^ 2).astype(np.int8) - 2
    return TensorProto(name=tensor.name, dims=tensor.dims, data_type=older,
                       raw_data=made.tobytes())
