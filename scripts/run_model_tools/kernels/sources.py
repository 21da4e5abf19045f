"""Which nodes of the network's file each step of a plan computes.

Steps are joined after they are read, in several places: what a step that is gone computed is then
part of the step that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from run_model_tools.kernels.tensors import Tensor


class _Step(Protocol):
    inputs: list[Tensor]
    output: Tensor


@dataclass
class Sources:
    """Names by the tensors that steps make, as the network was read."""

    names: dict[Tensor, list[str]] = field(default_factory=dict)
    _links: list[tuple[tuple[Tensor, ...], Tensor]] = field(default_factory=list)

    def add(self, steps: Sequence[_Step], names: Iterable[str]) -> None:
        """Names for the last of these steps: those before it brought its inputs to a layout."""
        self._links += [(tuple(step.inputs), step.output) for step in steps]
        self.names[steps[-1].output] = list(dict.fromkeys(names))

    def renamed(self, instead: dict[Tensor, Tensor]) -> Sources:
        """The names where other tensors stand for some."""
        def now(tensor: Tensor) -> Tensor:
            return instead.get(tensor, tensor)
        return Sources({now(tensor): names for tensor, names in self.names.items()},
                       [(tuple(map(now, inputs)), now(output)) for inputs, output in self._links])

    def of(self, steps: Sequence[_Step]) -> dict[Tensor, list[str]]:
        """The names of each of the steps that there are now, by what it makes."""
        there = {step.output for step in steps}
        readers: dict[Tensor, Tensor] = {}
        for inputs, output in self._links:
            for tensor in inputs:
                readers.setdefault(tensor, output)
        found: dict[Tensor, list[str]] = {}
        for _, output in self._links:
            place = _first_there(output, there, readers.get)
            if place is not None:
                known = found.setdefault(place, [])
                known += [name for name in self.names.get(output, ()) if name not in known]
        return found


def _first_there(tensor: Tensor | None, there: set[Tensor],
                 following: Callable[[Tensor], Tensor | None]) -> Tensor | None:
    for _ in range(1000):
        if tensor is None or tensor in there:
            return tensor
        tensor = following(tensor)
    return None
