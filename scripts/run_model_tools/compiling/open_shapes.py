"""A network for inputs of several shapes: which extents are open, and at which it is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import onnx

from run_model_tools.errors import USAGE, ToolError
from run_model_tools.onnx_model import OnnxModel, run_onnx
from run_model_tools.onnx_repair.reference import repaired_outputs
from run_model_tools.onnx_repair.repair import load
from run_model_tools.onnx_repair.samples import Axes, NotApart, sample_axes
from run_model_tools.source_model import Shapes
from run_model_tools.verifying import inputs as made_inputs

Runner = Callable[[dict[str, np.ndarray]], list[np.ndarray]]

_TRIED = 3
"""Shapes of all inputs."""
_MANY = 6
"""Extents of which one is tried as the sum of two others, at most."""
_NOT_OF_ROWS = {"Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GRU", "If", "LSTM", "Loop",
                "QLinearConv", "RNN", "Scan"}
"""Operators of pictures, sequences and steps."""


def open_shapes(model: OnnxModel) -> Shapes:
    """The shape of each input, -1 for an open extent.  Raises ToolError (2) without any."""
    shapes = {}
    for item in model.inputs:
        if item.shape is None:
            raise ToolError(USAGE, f"{model.path} does not say how many axes its input "
                                   f"'{item.name}' has, which --dynamic needs: leave it out.")
        shapes[item.name] = tuple(-1 if d is None else d for d in item.shape)
    if not any(-1 in shape for shape in shapes.values()):
        raise ToolError(USAGE, f"{model.path} leaves no extent of its inputs open: leave "
                               "--dynamic out, or export the network with open ones.")
    return shapes


def open_batch(model: OnnxModel) -> tuple[Shapes, Axes]:
    """The shapes of one sample, and where samples lie in batches, of a network that keeps them
    apart (onnx_repair/samples.py).  Raises NotApart, also where more than a batch is open."""
    one, names = {}, set()
    graph = onnx.load(str(model.path), load_external_data=False).graph
    first = {value.name: value.type.tensor_type.shape.dim for value in graph.input}
    for item in model.inputs:
        shape = item.shape or ()
        if [axis for axis, extent in enumerate(shape) if extent is None] != [0]:
            raise NotApart(f"the input '{item.name}' has another shape than an open number of "
                           "samples")
        names.add(first[item.name][0].dim_param)
        one[item.name] = (1, *(extent for extent in shape if extent is not None))
    if len(names) > 1:
        raise NotApart(f"the inputs have different open extents ({', '.join(sorted(names))})")
    return one, sample_axes(load(model.path), one, str(model.path))


def is_of_rows(model: OnnxModel) -> bool:
    """Whether samples are rows of numbers that little is done with, as tables, states and points
    are: what a batch has is worth more together than each by itself with kernels for one."""
    rows = all(len(item.shape or ()) <= 2 for item in model.inputs)
    return (rows and any(item.dtype.kind == "f" for item in model.inputs)
            and not any(node.op_type in _NOT_OF_ROWS for node in load(model.path).graph.node))


def shapes_to_try(model: OnnxModel, given: Shapes,
                  without: Sequence[Shapes] = ()) -> list[Shapes]:
    """Different shapes that the network takes in its reference, those `given` first, none of
    `without`.

    Extents of one name are equal.  Fewer than two raise ToolError (2): nothing would be shown.
    """
    graph = onnx.load(str(model.path), load_external_data=False).graph
    names = {value.name: [d.dim_param or f"{value.name}.{i}" for i, d in
                          enumerate(value.type.tensor_type.shape.dim)] for value in graph.input}
    found: list[Shapes] = []
    ranges = made_inputs.whole_number_ranges(model)
    # Each takes longer than the one before to say that a shape does not fit.
    for run in (lambda values: run_onnx(model.path, values),
                lambda values: repaired_outputs(model.path, values, model.frozen, model.cut)[0],
                model.run):
        for shapes in _candidates(model, names, given):
            if shapes in found or shapes in without:
                continue
            if outputs_at(model, run, shapes, ranges) is not None:
                found.append(shapes)
            if len(found) == _TRIED:
                return found
        if len(found) > 1:
            break
    if len(found) < 2:
        raise ToolError(USAGE, (
            f"no two shapes were found that {model.path} takes: say one with --shape, in which "
            "extents that belong together agree, or leave --dynamic out."))
    return found


def _candidates(model: OnnxModel, names: dict[str, list[str]], given: Shapes) -> Iterator[Shapes]:
    symbols = list(dict.fromkeys(
        name for item in model.inputs for name, d in zip(names[item.name], item.shape or ())
        if d is None))
    example = {name: size for item in model.inputs if item.name in given
               for name, size in zip(names[item.name], given[item.name])}
    if example:
        yield _filled(model, names, {s: example.get(s, 1) for s in symbols})
        changes = (lambda n: n + 1, lambda n: 2 * n, lambda n: max(1, n // 2))
        # All of them first: what is wrong at other sizes of one extent is to be seen.
        for change in changes:
            yield _filled(model, names, {s: change(example.get(s, 1)) for s in symbols})
        for symbol in symbols:
            for change in changes:
                yield _filled(model, names, {s: change(example.get(s, 1)) if s == symbol
                                             else example.get(s, 1) for s in symbols})
    for base in (2, 5, 1, 8, 16, 32, 64, 224):
        yield _filled(model, names, {s: base + i for i, s in enumerate(symbols)})
        yield _filled(model, names, dict.fromkeys(symbols, base))
        # The first is likely a batch.
        yield _filled(model, names, {s: base if i else 2 for i, s in enumerate(symbols)})
    for base in (2, 5, 8, 16, 32, 64, 224):  # a batch that only looks open
        yield _filled(model, names, {s: base if i else 1 for i, s in enumerate(symbols)})
    # A mask is as long as a cache and the words behind it together.
    rows = {names[item.name][0] for item in model.inputs if item.shape and item.shape[0] is None}
    others = [symbol for symbol in symbols if symbol not in rows]
    for base in (3, 9) if len(others) <= _MANY else ():
        for total in others:
            for parts in combinations([s for s in others if s != total], 2):
                sizes = {s: 2 if s in rows else base + 2 * i for i, s in enumerate(symbols)}
                yield _filled(model, names, {**sizes, total: sum(sizes[s] for s in parts)})


def _filled(model: OnnxModel, names: dict[str, list[str]], sizes: dict[str, int]) -> Shapes:
    return {item.name: tuple(sizes[name] if d is None else d
                             for name, d in zip(names[item.name], item.shape or ()))
            for item in model.inputs}


def outputs_at(model: OnnxModel, run: Runner, shapes: Shapes,
               ranges: dict[str, range]) -> list[np.ndarray] | None:
    """Of inputs of these shapes, whose whole numbers lie in `ranges`; None where the network
    does not take them."""
    for tried in made_inputs.narrower(ranges):
        values = made_inputs.random_inputs(model.inputs, shapes, None, tried, 0)
        try:
            return run(values)
        except Exception:  # References have a dozen classes of their own.
            continue
    return None
