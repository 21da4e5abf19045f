"""This project's own kernels for one layer as a Space, and the layer in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from run_model_tools.tuners.space import Knob, Space

Option = tuple[str, dict[str, Any]]
"""A kernel's name and its parameters, as registry.options lists them."""

_ABSENT = [0]


def space_of(options: Sequence[Option]) -> tuple[Space, list[int]]:
    """(space, the index of each option).

    The kernel's name is a knob, each parameter is one, or one for each of its numbers, and so is
    the option's place among its kernel's, which are offered best guess first.  Parameters that a
    kernel does not have are 0.  Only the options are configurations of the space.
    """
    rows: list[dict[str, list[Any]]] = []
    places: dict[str, int] = {}
    for kernel, parameters in options:
        places[kernel] = places.get(kernel, 0) + 1
        row: dict[str, list[Any]] = {"kernel": [kernel], "place": [places[kernel]]}
        for name, value in parameters.items():
            if isinstance(value, (list, tuple)):
                row.update({f"{name}{i}": [part] for i, part in enumerate(value)})
            else:
                row[name] = [value]
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    choices: dict[str, list[list[Any]]] = {name: [] for name in names}
    for row in rows:
        for name in names:
            value = row.get(name, _absent(rows, name))
            if value not in choices[name]:
                choices[name].append(value)
    knobs = tuple(Knob(name, choices[name]) for name in names)
    unlisted = Space(knobs)
    indices = [unlisted.index(np.array([choices[name].index(row.get(name, _absent(rows, name)))
                                        for name in names])) for row in rows]
    return Space(knobs, listed=indices), indices


def _absent(rows: list[dict[str, list[Any]]], name: str) -> list[Any]:
    """What stands for a parameter that a kernel does not have: no word among numbers."""
    words = any(isinstance(row[name][0], str) for row in rows if name in row)
    return [""] if words else _ABSENT


def description_of(layer: Any) -> list[Any]:
    """A Convolution in numbers, or those that are computed together one after the other."""
    if hasattr(layer, "convolutions"):
        return [_numbers(part) for part in layer.convolutions]
    return _numbers(layer)


def _numbers(conv: Any) -> list[Any]:
    return [conv.input_channels, *conv.input_size, conv.output_channels, *conv.output_size,
            *conv.kernel, *conv.strides, *conv.dilation, conv.groups, int(conv.planar)]
