"""Fourier transforms of known length, as products with constant matrices."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.padding import padded
from run_model_tools.onnx_repair.rules.shapes import concatenated, transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


def _transformed(walk: Walk, x: Value, inverse: bool, onesided: bool) -> Value:
    """[..., length, 1 or 2] -> [..., frequencies, 2]."""
    graph = walk.graph
    length = x.shape[-2]
    angles = 2 * np.pi * np.outer(np.arange(length), np.arange(length)) / length
    cosine, sine = np.cos(angles), np.sin(angles) * (1 if inverse else -1)
    if inverse:
        cosine, sine = cosine / length, sine / length
    kept = length // 2 + 1 if onesided else length
    cosine, sine = (m[:, :kept].astype(x.dtype) for m in (cosine, sine))
    lines = x.shape[:-2]
    real = reshaped(walk, sliced(walk, x, {x.rank - 1: range(1)}), (*lines, length))
    parts = [graph.op("MatMul", real, cosine), graph.op("MatMul", real, sine)]
    if x.shape[-1] == 2:
        imaginary = reshaped(walk, sliced(walk, x, {x.rank - 1: range(1, 2)}), (*lines, length))
        parts = [graph.op("Sub", parts[0], graph.op("MatMul", imaginary, sine)),
                 graph.op("Add", parts[1], graph.op("MatMul", imaginary, cosine))]
    wide = [graph.op("Unsqueeze", p, np.array([p.rank])) for p in parts]
    return concatenated(walk, wide, wide[0].rank - 1)


def _real_again(walk: Walk, x: Value, length: int) -> Value:
    """[..., length // 2 + 1, 2] -> [..., length, 1]: the others of a real signal's frequencies are
    these mirrored, so that they count twice."""
    graph = walk.graph
    kept = length // 2 + 1
    angles = 2 * np.pi * np.outer(np.arange(kept), np.arange(length)) / length
    counts = np.full((kept, 1), 2 / length)
    counts[0] = 1 / length
    if length % 2 == 0:
        counts[-1] = 1 / length
    waves = (np.cos(angles) * counts, np.sin(angles) * -counts)
    real, imaginary = (
        graph.op("MatMul", reshaped(walk, sliced(walk, x, {x.rank - 1: range(i, i + 1)}),
                                    x.shape[:-1]), wave.astype(x.dtype))
        for i, wave in enumerate(waves))
    made = graph.op("Add", real, imaginary)
    return reshaped(walk, made, (*made.shape, 1))


@rule("DFT")
def dft(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    length = node.ints(1, "the length")
    inverse, onesided = (bool(node.attrs.get(key, 0)) for key in ("inverse", "onesided"))
    axis = node.ints(2, "the axis") if node.opset >= 20 else [node.attrs.get("axis", 1)]
    at = (axis[0] if axis else -2) % x.rank
    to_real = inverse and onesided
    if length:
        wanted = length[0] // 2 + 1 if to_real else length[0]
        x = padded(walk, x, {at: (0, wanted - x.shape[at])})
    perm = [i for i in range(x.rank - 1) if i != at] + [at, x.rank - 1]
    turned = transposed(walk, x, perm)
    if to_real:
        made = _real_again(walk, turned, length[0] if length else 2 * (x.shape[at] - 1))
    else:
        made = _transformed(walk, turned, inverse, onesided)
    return transposed(walk, made, list(np.argsort(perm)))


@rule("STFT")
def stft(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x, window = node.tensor(0), node.get(2)
    step = (node.ints(1, "the step") or [1])[0]
    length = (node.ints(3, "the length of a frame") or [0])[0] or (
        window.shape[0] if window is not None else x.shape[1])
    if x.rank == 2:
        x = reshaped(walk, x, (*x.shape, 1))
    count = (x.shape[1] - length) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = graph.op("Gather", x, places, axis=1)
    if window is not None:
        frames = graph.op("Mul", frames, reshaped(walk, window, (length, 1)))
    return _transformed(walk, frames, False, bool(node.attrs.get("onesided", 1)))
