"""Configurations and workloads as numbers, so that near means alike, also across tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from run_model_tools.tuners.space import Knob, Space


class Description:
    """Columns for configurations of one template, whatever the task.

    A split gives the logarithm of each of its parts, a number its own, and any other choice a
    column for each value that it may have.  One column more has the logarithm of the product of
    all innermost parts: how much is computed at once.
    """

    def __init__(self, spaces: list[Space]) -> None:
        self._values: dict[str, dict[str, int]] = {}
        self._parts: dict[str, int] = {}
        for space in spaces:
            for knob in space.knobs:
                if _is_numeric(knob):
                    self._parts[knob.name] = max(self._parts.get(knob.name, 0),
                                                 len(_numbers(knob)[0]))
                else:
                    values = self._values.setdefault(knob.name, {})
                    for choice in knob.choices:
                        values.setdefault(repr(choice), len(values))
        self._names = list(dict.fromkeys(k.name for space in spaces for k in space.knobs))

    def columns(self, space: Space) -> list[np.ndarray]:
        """For each knob of the template, [choices, columns]; zeros for one that this space has
        not."""
        knobs = {knob.name: knob for knob in space.knobs}
        return [self._of_knob(name, knobs.get(name)) for name in self._names]

    def _of_knob(self, name: str, knob: Knob | None) -> np.ndarray:
        values = self._values.get(name, {})
        width = self._parts.get(name, 0) + len(values)
        table = np.zeros((len(knob.choices) if knob else 1, width))
        if knob is None:
            return table
        if name in self._parts and _is_numeric(knob):
            numbers = _numbers(knob)
            table[:, :numbers.shape[1]] = numbers
        else:
            for row, choice in enumerate(knob.choices):
                if repr(choice) in values:
                    # Two different values are 1 apart.
                    table[row, self._parts.get(name, 0) + values[repr(choice)]] = np.sqrt(0.5)
        return table

    def configurations(self, space: Space, indices: np.ndarray) -> np.ndarray:
        """[indices, columns]."""
        genes = space.genes(np.asarray(indices))
        order = {knob.name: place for place, knob in enumerate(space.knobs)}
        parts, volume = [], np.zeros(len(genes))
        for name, table in zip(self._names, self.columns(space)):
            rows = (table[genes[:, order[name]]] if name in order
                    else np.repeat(table, len(genes), 0))
            parts.append(rows)
            if name in order and _is_split(space.knobs[order[name]]):
                volume += rows[:, -1]
        return np.concatenate([*parts, volume[:, None]], axis=1)


def workload_columns(arguments: Any) -> np.ndarray:
    """The logarithms of all extents, strides and paddings of a workload, in their order."""
    return np.array([np.log2(1.0 + number) for number in _flat(arguments)])


def _flat(value: Any) -> list[float]:
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in _flat(item)]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [float(value)]
    return []


def _is_split(knob: Knob) -> bool:
    return _is_numeric(knob) and len(knob.choices[0]) > 1


def _is_numeric(knob: Knob) -> bool:
    """Whether the choices are sizes or numbers; an order of loops, which has a 0, is not."""
    sizes = all(isinstance(item, int) and (item == -1 or item > 0)
                for choice in knob.choices for item in choice)
    return (sizes or len(knob.choices[0]) == 1 and
            all(isinstance(choice[0], (int, float)) for choice in knob.choices))


def _numbers(knob: Knob) -> np.ndarray:
    """[choices, parts]; the first part of a split is what the others leave."""
    if len(knob.choices[0]) > 1:
        return np.array([[np.log2(max(1.0, float(part))) for part in choice[1:]]
                         for choice in knob.choices])
    return np.array([[np.log2(1.0 + abs(float(choice[0])))] for choice in knob.choices])
