"""Sizes for which a network with open extents is compiled once more, as one of fixed shapes."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

from run_model_tools.compiling.open_shapes import outputs_at
from run_model_tools.compiling.open_sizes import Extents, Sizes, shapes_of, ways_to_name
from run_model_tools.errors import USAGE, ToolError
from run_model_tools.onnx_model import OnnxModel
from run_model_tools.source_model import Shapes
from run_model_tools.verifying import inputs as made_inputs

_MOST = 64
"""Functions of one artifact."""
_PART = re.compile(r"(.+)=([1-9][0-9]{0,8}(?:/[1-9][0-9]{0,8})*)")

Wanted = tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
"""For each --exact the sizes of each extent by its name."""


@dataclass(frozen=True)
class ExactSizes:
    """What the artifact has functions of its own for."""

    sizes: list[Sizes]
    shapes: list[Shapes]
    """The inputs' shapes at these sizes."""

    def request(self) -> list[dict[str, Any]]:
        """What the worker is told of them."""
        return [{"name": function_name(sizes), "sizes": sizes, "shapes": shapes}
                for sizes, shapes in zip(self.sizes, self.shapes)]


def function_name(sizes: Sizes) -> str:
    """As profiles and virtual machines show it: "exact_batch_1_length_16"."""
    words = [f"{re.sub('[^A-Za-z0-9]', '_', name)}_{size}" for name, size in sizes.items()]
    return "_".join(["exact", *words])


def parse_exact(texts: list[str]) -> Wanted:
    """--exact's values: "batch=1,length=16/64".  Raises ToolError (2)."""
    wanted = []
    for text in texts:
        parts: dict[str, tuple[int, ...]] = {}
        for part in text.split(","):
            match = _PART.fullmatch(part.strip())
            if match is None or match[1] in parts:
                raise ToolError(USAGE, f"--exact {text} is not of the form NAME=SIZE,NAME=SIZE "
                                       "..., with sizes such as 16 or 16/64/128.")
            parts[match[1]] = tuple(map(int, match[2].split("/")))
        wanted.append(tuple(parts.items()))
    return tuple(wanted)


def exact_sizes(model: OnnxModel, wanted: Wanted, inputs: Extents | None) -> ExactSizes:
    """All that is `wanted` of the extents of `inputs` (None: as the file names them).  Raises
    ToolError (2) for other names, and for sizes that the network does not take in its reference."""
    if inputs is None:
        inputs = ways_to_name(model)[0]
    names = dict.fromkeys(e for extents in inputs.values() for e in extents if isinstance(e, str))
    found: list[Sizes] = []
    for parts in map(dict, wanted):
        if set(parts) != set(names):
            raise ToolError(USAGE, (
                f"--exact names {', '.join(parts)}, and the open extents of {model.path} are "
                f"{', '.join(names)}: give a size of each."))
        for chosen in itertools.product(*(parts[name] for name in names)):
            sizes = dict(zip(names, chosen))
            if sizes not in found:
                found.append(sizes)
    if len(found) > _MOST:
        raise ToolError(USAGE, f"--exact asks for {len(found)} sizes, and {_MOST} are possible: "
                               "name those that matter.")
    shapes = [shapes_of(inputs, sizes) for sizes in found]
    ranges = made_inputs.whole_number_ranges(model, *shapes)
    for sizes, one in zip(found, shapes):
        if outputs_at(model, model.run, one, ranges) is None:
            text = ",".join(f"{name}={size}" for name, size in sizes.items())
            raise ToolError(USAGE, f"--exact {text}: {model.path} does not take inputs of that "
                                   "size in its reference; leave it out.")
    return ExactSizes(found, shapes)
