"""Inputs that show what a network computes: random, the same every time, and valid."""

from __future__ import annotations

from collections.abc import Iterable, Set
from math import prod

import numpy as np
import onnx

from run_model_tools.compiling.artifact import guess_layout
from run_model_tools.onnx_model import OnnxModel
from run_model_tools.pictures.preprocess import normalise
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.source_model import ModelInput, SourceModel

SEEDS = (20, 21)
"""Two, so that an output that happens to be zero for one of them hides nothing."""

# Operators that hand numbers on as they are, or leave some of them out.
_MOVES = {"Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand",
          "Slice", "Split", "Concat", "Tile", "Gather"}
_COUNTS = {"Add", "Sub", "Min", "Max", "Where"}
_INDEXED = {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"}
_SMALL = 10
"""Whole numbers below this are tried where nothing tells what an input means."""


def random_inputs(items: Iterable[ModelInput], shapes: dict[str, tuple[int, ...]],
                  preprocessing: Preprocessing | None, ranges: dict[str, range], seed: int,
                  regions: dict[str, tuple[int, float]] | None = None) -> dict[str, np.ndarray]:
    """Values for all inputs: a network that takes pictures gets noise of the range that pictures
    have, whole numbers lie in their `ranges`, what is rounded first in what that keeps, and boxes
    in their pictures (picture_regions())."""
    random = np.random.default_rng(seed)
    inputs, regions = {}, regions or {}
    for item in items:
        shape = shapes[item.name]
        if item.dtype.kind == "b":
            inputs[item.name] = random.integers(0, 2, shape).astype(bool)
        elif item.dtype.kind != "f":
            every = np.iinfo(item.dtype)
            allowed = ranges.get(item.name, range(every.min, int(every.max) + 1))
            inputs[item.name] = random.integers(allowed.start, allowed.stop, shape, item.dtype)
        elif preprocessing is not None and (len(shape) == 4 or guess_layout(shape)):
            noise = random.integers(0, 256, (prod(shape) // 3 + 1, 1, 3), np.uint8)
            values = normalise(noise, preprocessing, np.float32).ravel()[:prod(shape)]
            inputs[item.name] = values.reshape(shape).astype(item.dtype)
        elif item.name in regions:
            inputs[item.name] = _boxes(random, shape, *regions[item.name]).astype(item.dtype)
        elif item.span is not None:
            inputs[item.name] = random.uniform(*item.span, shape).astype(item.dtype)
        else:
            inputs[item.name] = random.standard_normal(shape).astype(item.dtype)
    return inputs


def picture_regions(model: SourceModel) -> dict[str, tuple[int, float]]:
    """Of inputs that are boxes, perhaps each behind the number of its picture: how many pictures
    there are, and how far they reach.

    ONNX Runtime reads beside its memory where there is no such picture.
    """
    graph = model.outline if isinstance(model, OnnxModel) else onnx.GraphProto()
    shapes, found = _known_shapes(graph, {}), {}
    for item in model.inputs:
        reached = _reached(graph, item.name) if item.dtype.kind == "f" else ()
        for node in graph.node:
            if node.op_type == "RoiAlign" and node.input[1] in reached:
                scale = next((a.f for a in node.attribute if a.name == "spatial_scale"), 1.0)
                count, _, *sides = shapes.get(node.input[0], (1, 1, _SMALL))
                found[item.name] = (count or 1, (min(sides) or _SMALL) / scale)
    return found


def _boxes(random: np.random.Generator, shape: tuple[int, ...], pictures: int,
           side: float) -> np.ndarray:
    made = random.uniform(0, side, shape)
    if shape[-1] in (4, 5):
        made[..., -2:] = made[..., -4:-2] + random.uniform(0, side - made[..., -4:-2])
    if shape[-1] == 5:
        made[..., 0] = random.integers(0, pictures, shape[:-1])
    return made


def whole_number_ranges(model: SourceModel,
                        *shapes: dict[str, tuple[int, ...]]) -> dict[str, range]:
    """Where the whole numbers of an input have to lie, by the input's name, whichever of `shapes`
    the inputs have.

    What ends as the index of a table stays inside of it, as far as its size is known; a mask is 0
    or 1; of other wide numbers nothing is known, and they are small. What tells how many keys of a
    cache count lets all of them count: behind these, ONNX Runtime has what nothing was written to.
    What something is divided by begins with 1: a division of whole numbers by 0 ends the program,
    and the reference's as well. Other bytes are quantities, and take all values.
    """
    graph = model.outline if isinstance(model, OnnxModel) else onnx.GraphProto()
    ranges, known = {}, _known_shapes(graph, _smallest_extents(graph, shapes))
    for item in model.inputs:
        if item.dtype.kind not in "iu" or item.scale is not None:
            continue
        reached = _reached(graph, item.name)
        divides = any(node.op_type in ("Div", "Mod") and node.input[1] in reached
                      for node in graph.node)
        # From the first or second place on there are most likely as many as are taken.
        counted = _reached(graph, item.name, _MOVES | _COUNTS)
        begins = any(node.op_type == "Slice" and len(node.input) > 1 and node.input[1] in counted
                     for node in graph.node)
        counts = _counts_of_keys(model, graph, item.name)
        if counts is not None:
            ranges[item.name] = counts
        elif item.dtype.itemsize > 1:
            stop = (2 if begins else _table_size(graph, known, reached)
                    or (2 if "mask" in item.name.lower() else _SMALL))
            ranges[item.name] = range(1, max(stop, 2)) if divides else range(stop)
        elif divides:
            ranges[item.name] = range(1, int(np.iinfo(item.dtype).max) + 1)
    return ranges


def _reached(graph: onnx.GraphProto, name: str, through: Set[str] = _MOVES) -> set[str]:
    """The tensors that have numbers of `name`, as they are or as operators of `through` do."""
    reached = {name}
    for node in graph.node:
        if node.op_type in through and any(value in reached for value in (
                node.input[:1] if node.op_type in _MOVES - {"Concat"} else node.input)):
            reached.update(node.output)
    return reached


def _counts_of_keys(model: SourceModel, graph: onnx.GraphProto, name: str) -> range | None:
    """What an input holds that says how many keys of a cache count, or is a mask of them."""
    for node in graph.node:
        if node.op_type == "GroupQueryAttention" and len(node.input) > 6 and node.input[5]:
            if node.input[5] in _reached(graph, name):
                given = dict(getattr(model, "frozen", {}))
                given |= {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer
                          if t.name == node.input[6]}
                total = given.get(node.input[6])
                return None if total is None else range(int(total.item()) - 1, int(total.item()))
            if node.input[5] in _reached(graph, name, _MOVES | _COUNTS | {"ReduceSum"}):
                return range(1, 2)
    return None


def _smallest_extents(graph: onnx.GraphProto, shapes: Iterable[dict[str, tuple[int, ...]]]
                      ) -> dict[str, int]:
    """Of the extents that inputs leave open the smallest of these shapes, by their names."""
    found: dict[str, int] = {}
    for given in shapes:
        for value in graph.input:
            for dim, extent in zip(value.type.tensor_type.shape.dim, given.get(value.name, ())):
                if dim.dim_param:
                    found[dim.dim_param] = min(extent, found.get(dim.dim_param, extent))
    return found


def _table_size(graph: onnx.GraphProto, shapes: dict[str, tuple[int, ...]], reached: set[str]
                ) -> int | None:
    """The extent of the smallest table that the numbers `reached` are indices of, if any."""
    sizes = []
    for node in graph.node:
        if node.op_type == "RoiAlign" and node.input[2] in reached:
            # Which picture a box is of: ONNX Runtime reads beside its memory where there is none.
            sizes.append(shapes.get(node.input[0], (1,))[0] or 1)
        elif node.op_type in _INDEXED and node.input[1] in reached and node.input[0] in shapes:
            shape = shapes[node.input[0]]
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            # Indices of several axes lie in the smallest.
            sizes.append(min(shape) if node.op_type.endswith("ND") else shape[axis])
    return min(filter(None, sizes), default=None)


def _known_shapes(graph: onnx.GraphProto, named: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """Of constants, and what the graph says of others; 0 for extents that it leaves open and that
    are not `named`."""
    shapes = {value.name: tuple(d.dim_value or named.get(d.dim_param, 0)
                                for d in value.type.tensor_type.shape.dim)
              for value in (*graph.input, *graph.value_info)}
    shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        value = next((a.t for a in node.attribute if a.name == "value" and a.HasField("t")), None)
        if node.op_type == "Constant" and value is not None:
            shapes[node.output[0]] = tuple(value.dims)
    return {name: shape for name, shape in shapes.items() if shape}


def narrower(ranges: dict[str, range]) -> Iterable[dict[str, range]]:
    """`ranges` and, for a network that does not take such numbers, fewer and fewer of each."""
    tried: list[dict[str, range]] = []
    for most in (1 << 62, 2, 1):
        made = {name: allowed[:most] for name, allowed in ranges.items()}
        if made not in tried:
            tried.append(made)
            yield made


def split_pictures(pictures: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """One set of inputs a picture, of arrays with one more axis in front."""
    count = min(len(array) for array in pictures.values())
    return [{name: array[i] for name, array in pictures.items()} for i in range(count)]
