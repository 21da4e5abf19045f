"""Pooling of bytes: kernels/c/u8-pool.c.in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.int8.quantized import Quantization
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.pictures.pooling import Pooling


@dataclass(frozen=True)
class QuantizedPooling:
    """A Pooling whose input tensors hold bytes.

    The output holds bytes too, but that of a global average (pooling.planar), which is float32.
    """

    pooling: Pooling
    inputs: tuple[Quantization, ...]
    """Of each input tensor."""
    output: Quantization | None

    @property
    def rescaling(self) -> tuple[np.ndarray, np.ndarray]:
        """(scale, bias), float32 (pieces, lanes), of each piece's whole block."""
        scales, biases = [], []
        for index, piece in enumerate(self.pooling.input_lanes):
            q = self.inputs[piece.tensor]
            lanes = self.pooling.input_shapes[piece.tensor][4]
            scale = q.scales(range(piece.block * lanes, (piece.block + 1) * lanes))
            if self.output is None:
                scales.append(scale / (self.pooling.input_size[0] * self.pooling.input_size[1]))
                biases.append(-q.zero_point * scale)
            else:
                ratio = scale / self.output.scales(range(index * lanes, (index + 1) * lanes))
                scales.append(ratio)
                biases.append(self.output.zero_point - q.zero_point * ratio)
        return np.array(scales, np.float32), np.array(biases, np.float32)

    @staticmethod
    def kept(pooling: Pooling, inputs: tuple[Quantization, ...]) -> Quantization | None:
        """That of the output if its bytes mean what the inputs' do; None if zero points differ."""
        if len({q.zero_point for q in inputs}) != 1:
            return None
        scales = np.concatenate([
            inputs[p.tensor].scales(range(p.block * lanes, (p.block + 1) * lanes))
            for p in pooling.input_lanes for lanes in (pooling.input_shapes[p.tensor][4],)])
        return Quantization(1.0, inputs[0].zero_point, tuple(float(x) for x in scales))


def options(quantized: QuantizedPooling, isa: Isa) -> list[dict[str, object]]:
    """Parameter sets worth trying; empty if the kernel cannot do it."""
    pool = quantized.pooling
    if pool.dilation != (1, 1):
        return []
    if pool.planar:
        return [{}] if quantized.output is None and pool.kind == "average" else []
    if quantized.output is None or any(piece.first for piece in pool.input_lanes):
        return []
    if pool.window[0] * pool.window[1] > 49:
        return []
    # Rounding up may put the part of a window outside that divides the average.
    if pool.kind == "average" and pool.round_up:
        return []
    return [{}] if _windows_touch_picture(pool) else []


def _windows_touch_picture(pool: Pooling) -> bool:
    """Whether no window lies in the padding altogether."""
    return all(pool.padding[axis] < pool.window[axis]
               and (pool.output_size[axis] - 1) * pool.strides[axis] - pool.padding[axis]
               < pool.input_size[axis] for axis in (0, 1))


def make(quantized: QuantizedPooling, isa: Isa) -> Layer:
    """The layer."""
    pool, pieces = quantized.pooling, quantized.pooling.input_lanes
    scales, biases = quantized.rescaling
    defines: dict[str, object] = isa.defines() | {
        "BLOCK_TENSOR": [p.tensor for p in pieces], "BLOCK_INDEX": [p.block for p in pieces],
        "IN_HEIGHT": pool.input_size[0], "IN_WIDTH": pool.input_size[1]}
    if pool.planar:
        each = -(-len(pieces) // 8)
        tasks = -(-len(pieces) // each)
        ends = np.cumsum([p.count for p in pieces])
        defines |= {"GLOBAL": 1, "BLOCKS": len(pieces), "TASK_BLOCKS": each,
                    "PIECE_LANE": [p.first for p in pieces],
                    "PIECE_COUNT": [p.count for p in pieces],
                    "PIECE_OUTPUT": [int(end) - p.count for end, p in zip(ends, pieces)]}
    else:
        height, width = pool.output_size
        bands = max(1, min(height, round(16 / len(pieces))))
        rows = -(-height // bands)
        tasks = len(pieces) * -(-height // rows)
        defines |= {
            "MAXIMUM" if pool.kind == "max" else "AVERAGE": 1,
            "BLOCK_FILL": [quantized.inputs[p.tensor].zero_point for p in pieces],
            "TAPS_Y": pool.window[0], "TAPS_X": pool.window[1], "STRIDE_Y": pool.strides[0],
            "STRIDE_X": pool.strides[1], "PAD_TOP": pool.padding[0], "PAD_LEFT": pool.padding[1],
            "OUT_HEIGHT": height, "OUT_WIDTH": width, "TASK_ROWS": rows}
        if pool.count_padding:
            defines["COUNT_PADDING"] = 1
        if (scales != 1).any() or biases.any():
            defines["RESCALE"] = 1
    return Layer(
        kind=f"{pool.kind}_pool2d_int8", template="u8-pool.c.in", defines=defines,
        phases=(Phase("int8_pool", tasks),),
        inputs=tuple((tuple(shape), "uint8") for shape in pool.input_shapes),
        constants=(scales, biases), output_shape=pool.output_shape(isa.lanes),
        output_dtype="float32" if pool.planar else "uint8", variant=isa.variant(),
        note={"kernel": "int8_pooling"})
