"""Sparse constants of TensorFlow Lite, level by level of their traversal order, as dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np

# SparseIndexVector of the schema: the table that holds a level's numbers.
_VECTORS = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}


def dense_values(sparsity: Any, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The whole array of a tensor's SparsityParameters and the values that are stored of it.

    Raises ValueError or IndexError where they contradict each other.
    """
    order = [int(i) for i in sparsity.TraversalOrderAsNumpy()]
    blocks = sparsity.BlockMapAsNumpy()
    block_map = [int(i) for i in blocks] if isinstance(blocks, np.ndarray) else []
    rank = len(shape)
    levels = [sparsity.DimMetadata(i) for i in range(len(order))]
    if (sorted(order) != list(range(rank + len(block_map)))
            or sparsity.DimMetadataLength() != len(order)
            or not all(0 <= axis < rank for axis in block_map)):
        raise ValueError("the levels are not those of the shape")

    # Of every element that has been reached so far: its place in the level, and its coordinates.
    places = np.zeros(1, np.int64)
    coordinates = np.zeros((1, 0), np.int64)
    for level in levels:
        if level.Format() == 0:
            size = level.DenseSize()
            counts = np.full(len(places), size)
            index = np.tile(np.arange(size), len(places))
            below = np.repeat(places, size) * size + index
        else:
            segments = _numbers(level.ArraySegments(), level.ArraySegmentsType())
            indices = _numbers(level.ArrayIndices(), level.ArrayIndicesType())
            counts = segments[places + 1] - segments[places]
            if (counts < 0).any() or counts.sum() > len(values):
                raise ValueError("a level goes backwards")
            starts = np.repeat(segments[places] - np.cumsum(counts) + counts, counts)
            below = starts + np.arange(counts.sum())
            index = indices[below]
        coordinates = np.concatenate([np.repeat(coordinates, counts, 0), index[:, None]], 1)
        places = below
        if len(places) > max(values.size, 1) * 4096:
            raise ValueError("the levels reach more than is stored")
    if len(places) != len(values):
        raise ValueError(f"{len(values)} values are stored and {len(places)} described")

    where = [np.zeros(len(values), np.int64) for _ in shape]
    by_axis = {axis: coordinates[:, level] for level, axis in enumerate(order)}
    for axis in range(rank):
        where[axis] += by_axis[axis]
    for number, axis in enumerate(block_map):
        where[axis] = where[axis] * levels[rank + number].DenseSize() + by_axis[rank + number]
    if any((w < 0).any() or (w >= extent).any() for w, extent in zip(where, shape)):
        raise ValueError("a value lies outside of the shape")
    result = np.zeros(shape, values.dtype)
    result[tuple(where)] = values
    return result


def _numbers(table: Any, kind: int) -> np.ndarray:
    import tflite

    vector = getattr(tflite, _VECTORS[kind])()
    vector.Init(table.Bytes, table.Pos)
    return vector.ValuesAsNumpy().astype(np.int64)
