"""Which sizes a network with open extents takes, and at which of them it is read.

Each open extent has a symbol.  ONNX Runtime says of which number it has to be a multiple (a
U-shaped network without paddings takes sides of 32, 64, 96 ... only), the repair up to which size
the network is one (tables of positions end), and the worker whether the readings are one network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from run_model_tools.compiling.open_shapes import outputs_at, shapes_to_try
from run_model_tools.errors import USAGE, ToolError
from run_model_tools.onnx_model import OnnxModel, run_onnx
from run_model_tools.onnx_repair.repair import load, repair
from run_model_tools.onnx_repair.walk import RELAX
from run_model_tools.source_model import Shapes
from run_model_tools.verifying import inputs as made_inputs

Sizes = dict[str, int]
Extents = dict[str, tuple[str | int, ...]]
"""For each input the symbol or the number that each extent is."""
Taker = Callable[[Sizes], bool]

_STEPS = (1, 2, 4, 8, 16, 32, 64)
_COUNTS = (21, 27, 38)
"""Multiples that soon become odd numbers when they are halved."""
_MOST = 4096
"""The largest extent that is tried, where nothing in the network ends before."""
_ENDLESS = 2 ** 31 - 1
"""The most samples, where any number of them is computed alike, also none."""
_NUMBERS = 64
"""That are looked at of each operand."""
_SMALL = 3
"""Steps, of sizes at which it is compared."""
_LEAST_CORE = 4
"""Samples at which it has to be read."""
_COMPARED = 2
"""Sizes at least."""
_OFFSETS = (3, 8, 1, 14, 6, 11)
"""What the samples' sizes have above the least, in steps: even and odd numbers, so that no two
symbols have the same size in all samples."""
_FACTORS = (1, 9, 27)
"""By which these sizes grow until the network is the one that it is at large sizes, which have no
extents of 1 that strides leave of small pictures, and no single window: odd numbers, which leave
even and odd sizes so."""


@dataclass(frozen=True)
class Total:
    """What an extent always is: the sum of others and a number.  A mask over the words in a cache
    of keys and those behind them is one."""

    parts: tuple[str, ...]
    more: int


Totals = dict[str, Total]


def with_totals(totals: Totals, sizes: Sizes) -> Sizes:
    """The sizes of all symbols, by those that are no totals."""
    return {**sizes, **{name: sum(sizes[part] for part in total.parts) + total.more
                        for name, total in totals.items()}}


@dataclass(frozen=True)
class Reading:
    """What the repaired network is made of at some sizes."""

    operators: list[str]
    numbers: list[list[int]]
    """Those of its operands that shapes, bounds and places are made of."""

    def is_one_with(self, others: list[Reading]) -> bool:
        """Whether it has their operators, and whatever is one number in all of them, such as that
        of a picture's windows, is this number here."""
        return self.operators == others[0].operators and all(
            number == values.pop()
            for here, *there in zip(self.numbers, *(other.numbers for other in others))
            for number, *all_values in zip(here, *there) if len(values := set(all_values)) == 1)


@dataclass(frozen=True)
class OpenSizes:
    """What a network with open extents takes."""

    inputs: Extents
    samples: list[Sizes]
    """At which the network is read; the last one has the largest sizes."""
    least: Sizes
    """It is compared at these, which may be read otherwise: extents of 1 are spread over others."""
    steps: Sizes
    tried: list[Sizes]
    """At which it is compared: others than the samples."""
    reason: str = ""
    """Why its samples are not computed one after the other."""
    totals: Totals = field(default_factory=dict)
    """Extents that follow from others: they have no step."""
    endless: bool = False
    """Whether the extents are numbers of samples that are known to be computed apart."""

    @property
    def most(self) -> Sizes:
        return self.samples[-1]

    def shapes_to_try(self, exact: list[Sizes]) -> list[Shapes]:
        """Shapes at which it is compared; `exact` sizes are not computed by what is for any."""
        tried = [sizes for sizes in self.tried if sizes not in exact
                 and all(size >= self.least[name] for name, size in sizes.items())]
        others = [sizes for sizes in self.samples[:-1] if sizes not in exact]
        return [shapes_of(self.inputs, sizes)
                for sizes in tried + others[:max(0, _COMPARED - len(tried))]]

    def limits(self) -> dict[str, Sizes]:
        """As metadata.json has them."""
        return {name: {"least": 0 if self.endless else self.least[name],
                       "most": _ENDLESS if self.endless else self.most[name],
                       "step": self.steps.get(name, 1)} for name in self.most}

    def request(self) -> dict[str, Any]:
        """What the worker is told of them."""
        return {"inputs": self.inputs, "samples": self.samples, "limits": self.limits(),
                "shapes": [shapes_of(self.inputs, sizes) for sizes in self.samples],
                "totals": {name: [total.parts, total.more]
                           for name, total in self.totals.items()},
                "reason": self.reason}

    def without_largest(self) -> OpenSizes | None:
        """For a network that is not one up to the largest sizes; None after all were tried."""
        core = self.samples[:-1]
        largest = {name: max(s[name] for s in core) for name in self.steps}
        if all(self.most[name] == size for name, size in largest.items()):
            return None
        most = with_totals(self.totals, {
            name: max(largest[name], self.most[name] // 4 // step * step)
            for name, step in self.steps.items()})
        return replace(self, samples=[*core, most])

    def without_least(self) -> OpenSizes | None:
        """For a network that is wrong at the least sizes; None where it is for none of them."""
        smallest = {name: min(s[name] for s in self.samples) for name in self.most}
        return None if self.least == smallest else replace(self, least=smallest)


def shapes_of(inputs: Extents, sizes: Sizes) -> Shapes:
    """The inputs' shapes at some sizes."""
    return {name: tuple(sizes[e] if isinstance(e, str) else e for e in extents)
            for name, extents in inputs.items()}


def open_sizes(model: OnnxModel, given: Shapes, reason: str = "") -> OpenSizes:
    """Raises ToolError where no two shapes are found that the network takes, or where it cannot be
    repaired at any."""
    known = shapes_to_try(model, given)
    empty: set[str] = set()
    ways = [*ways_to_name(model), *(_named_by_size(model, shapes) for shapes in known)]
    for look, is_fixed in ((_all_free, False), (_all_but_one, False), (_all_free, True)):
        for inputs in ways:
            takes = _taker(model, inputs, empty)
            bases = filter(None, (_sizes_of(inputs, shapes) for shapes in known))
            for base in filter(takes, bases):
                if is_fixed:
                    inputs, base = _without_fixed(inputs, takes, base)
                    takes = _taker(model, inputs, empty)
                found = look(takes, base) if base else None
                if found is None:
                    continue
                steps, totals = found
                rounded = {name: -(-base[name] // step) * step for name, step in steps.items()}
                # Of 1 beside any other one takes all: it is spread over the other.
                apart = {name: step * (n + 2) if rounded[name] == step else rounded[name]
                         for n, (name, step) in enumerate(steps.items())}
                if all(takes(with_totals(totals, sizes)) for sizes in (rounded, apart)):
                    return replace(_with_bounds(model, inputs, rounded, steps, totals, takes),
                                   reason=reason)
    if empty:
        raise ToolError(USAGE, (
            f"the output '{min(empty)}' of {model.path} is empty for some inputs, as where a "
            "length depends on values, so that it is not seen what sizes it takes: leave "
            "--dynamic out."))
    raise ToolError(USAGE, f"the sizes that {model.path} takes depend on each other in a way that "
                           "is not known: leave --dynamic out.")


def _without_fixed(inputs: Extents, takes: Taker, base: Sizes) -> tuple[Extents, Sizes]:
    """The extents and sizes without those symbols of which no other size is taken: exporters leave
    them open and have written the example's size into the network."""
    left = {name: size for name, size in base.items()
            if any(takes({**base, name: other}) for other in (size + 1, 2 * size, 3 * size))}
    return {item: tuple(base[e] if isinstance(e, str) and e not in left else e for e in extents)
            for item, extents in inputs.items()}, left


def _all_free(takes: Taker, base: Sizes, totals: Totals | None = None
              ) -> tuple[Sizes, Totals] | None:
    """(the step of each symbol that is no total, `totals`); None where some have none."""
    totals = totals or {}
    free = {name: size for name, size in base.items() if name not in totals}
    steps: Sizes = {}
    for name in free:
        step = _step(lambda sizes: takes(with_totals(totals, sizes)), free, name)
        if step is None:
            return None
        steps[name] = step
    return steps, totals


def _all_but_one(takes: Taker, base: Sizes) -> tuple[Sizes, Totals] | None:
    """Steps and totals where one extent is the sum of one or two others and what that leaves in
    this example."""
    for count in (1, 2):
        for name in base:
            for parts in combinations([other for other in base if other != name], count):
                more = base[name] - sum(base[part] for part in parts)
                if more < 0 or count > 1 and more:
                    continue
                totals = {name: Total(parts, more)}
                free = {other: size for other, size in base.items() if other != name}
                # What is soon seen of most: a multiple of a size that is taken fits every step.
                if not all(takes(with_totals(totals, {**free, other: 2 * size}))
                           for other, size in free.items()):
                    continue
                found = _all_free(takes, base, totals)
                if found is not None:
                    return found
    return None


def ways_to_name(model: OnnxModel) -> list[Extents]:
    """Symbols as the file has them; then those of one axis as the same, which exporters forget."""
    graph = onnx.load(str(model.path), load_external_data=False).graph
    dims = {value.name: value.type.tensor_type.shape.dim for value in graph.input}
    named, by_axis = {}, {}
    for item in model.inputs:
        shape = list(enumerate(item.shape or ()))
        named[item.name] = tuple(
            (dims[item.name][i].dim_param or f"{item.name}_{i}") if d is None else d
            for i, d in shape)
        by_axis[item.name] = tuple(f"axis_{i}" if d is None else d for i, d in shape)
    return [named, by_axis]


def _named_by_size(model: OnnxModel, shapes: Shapes) -> Extents:
    """Those of one axis as the same where they are in these shapes: a mask over the words of a text
    and of a cache is longer than the text."""
    named = ways_to_name(model)[0]
    names: dict[tuple[int, int], str] = {}
    return {item: tuple(
        names.setdefault((axis, shapes[item][axis]), extent) if isinstance(extent, str) else extent
        for axis, extent in enumerate(extents)) for item, extents in named.items()}


def _sizes_of(inputs: Extents, shapes: Shapes) -> Sizes | None:
    """What the symbols are in these shapes, None if that is not one number for each."""
    sizes: Sizes = {}
    for name, extents in inputs.items():
        for extent, size in zip(extents, shapes[name]):
            if isinstance(extent, str) and sizes.setdefault(extent, size) != size:
                return None
    return sizes


def _taker(model: OnnxModel, inputs: Extents, empty: set[str]) -> Taker:
    """empty: gets the names of outputs that had no elements."""
    ranges = made_inputs.whole_number_ranges(model)

    def takes(sizes: Sizes) -> bool:
        outputs = outputs_at(model, lambda values: run_onnx(model.path, values),
                             shapes_of(inputs, sizes), ranges)
        if outputs is None:
            return False
        without = {name for name, output in zip(model.outputs, outputs) if not np.size(output)}
        empty.update(without)
        return not without

    return takes


def _step(takes: Taker, base: Sizes, name: str) -> int | None:
    """Of which number a size has to be a multiple, the others being those of `base`."""
    ends = None
    for step in _STEPS:
        odd = max(1, base[name] // step) | 1
        # Above all others, too: what is equal in truth is sometimes taken where it is less.
        beyond = (max(base.values()) // step + 3) | 1
        counts = sorted({odd, odd + 1, beyond, beyond + 1, *_COUNTS})
        taken = [takes({**base, name: step * count}) for count in counts]
        if all(taken):
            return step
        # Texts are at most as long as a table of positions: all sizes up to one.
        if ends is None and sum(taken) > 3 and taken == sorted(taken, reverse=True) and all(
                takes({**base, name: step * count})
                for count in range(odd, counts[sum(taken) - 1])):
            ends = step
    return ends


def _with_bounds(model: OnnxModel, inputs: Extents, base: Sizes, steps: Sizes, totals: Totals,
                 takes_all: Taker) -> OpenSizes:
    """base, steps: of all symbols but the totals; takes_all: of all symbols' sizes."""
    loaded = load(model.path)

    def full(sizes: Sizes) -> Sizes:
        return with_totals(totals, sizes)

    def takes(sizes: Sizes) -> bool:
        return takes_all(full(sizes))

    def read(sizes: Sizes) -> Reading:
        return _reading(repair(loaded, shapes_of(inputs, full(sizes)), None, str(model.path),
                               RELAX, is_open=True).graph)

    def read_if_taken(sizes: Sizes) -> Reading | None:
        try:
            return read(sizes)
        except Exception:  # Extents that do not fit together are found by NumPy, too.
            return None

    def is_read(sizes: Sizes) -> bool:
        return read_if_taken(sizes) is not None

    core, is_grown = _core(base, steps, read_if_taken)
    if len(core) < _LEAST_CORE:
        read(base)  # Where it cannot be read at all, that says why.
        raise ToolError(USAGE, f"{model.path} is not seen to be one network at several sizes: "
                               "leave --dynamic out, or name a larger size with --shape.")
    least, most = {}, {}
    for name, step in steps.items():
        smallest = min(sizes[name] for sizes in core)
        least[name] = next((size for size in (step, 2 * step, 3 * step, base[name])
                            if size < smallest and takes({**base, name: size})
                            and is_read({**base, name: size})), smallest)
        low = max(sizes[name] for sizes in core)
        most[name] = _largest(lambda size, name=name: is_read(  # type: ignore[misc]
            {**core[0], name: size}), low, max(low, _MOST // step * step, 4 * base[name]), step)
    def odd(most: int) -> Sizes:
        return {name: step * (min(most, max(2, base[name] // step)) + 2 * n + 5)
                for n, (name, step) in enumerate(steps.items())}

    # Large ones take minutes where convolutions are plain loops.
    other = odd(_SMALL)
    if other in core or not takes(other):
        other = odd(max(base.values()))
    # At small sizes one that had to grow is not what it is made of.
    grown = [{name: min(sizes[name] for sizes in core) + 2 * step
              for name, step in steps.items()}] if is_grown else []
    tried: list[Sizes] = []
    for sizes in (base, other, *grown, least,
                  *({**base, name: size} for name, size in least.items())):
        if sizes not in tried and takes(sizes):
            tried.append(sizes)
    return OpenSizes(inputs, [full(sizes) for sizes in (*core, most)], full(least), steps,
                     [full(sizes) for sizes in tried], totals=totals)


def _reading(graph: onnx.GraphProto) -> Reading:
    constants = {tensor.name: tensor for tensor in graph.initializer
                 if tensor.data_type == onnx.TensorProto.INT64}
    return Reading([node.op_type for node in graph.node], [
        numpy_helper.to_array(constants[name]).ravel()[:_NUMBERS].tolist()
        for node in graph.node for name in node.input if name in constants])


def _core(base: Sizes, steps: Sizes, read: Callable[[Sizes], Reading | None]
          ) -> tuple[list[Sizes], bool]:
    """Sizes at which the network has the same operators, if there are such (fewer where it is not
    read at all of them), and whether they had to grow for that.  A size does only where it is
    needed, since constants grow with it."""

    def samples(factors: Sizes) -> list[Sizes]:
        return [{name: step * (factors[name] * (
            max(2, base[name] // step) + _OFFSETS[(i + 2 * n) % len(_OFFSETS)]) + n)
            for n, (name, step) in enumerate(steps.items())} for i in range(len(_OFFSETS))]

    def alike(factor: int) -> list[Sizes]:
        return samples(dict.fromkeys(steps, factor))

    possible = [factor for factor in _FACTORS
                if factor == 1 or max(max(s.values()) for s in alike(factor)) <= _MOST]
    # Sizes of which each is another one: at the largest that it takes they are equal.
    far = alike(possible[-1])[0]
    seen_far = read(far)

    def are_one(core: list[Sizes], is_far_one: bool) -> bool:
        readings: list[Reading] = []
        for sizes in core:
            reading = read(sizes)
            if reading is None or readings and reading.operators != readings[0].operators:
                return False
            readings.append(reading)
        return not is_far_one or seen_far is None or seen_far.is_one_with(readings)

    for is_far_one in (True, False):
        for factor in possible:
            if not are_one(alike(factor), is_far_one):
                continue
            factors = dict.fromkeys(steps, factor)
            for name in steps if factor > 1 else ():
                if are_one(samples({**factors, name: 1}), is_far_one):
                    factors[name] = 1
            core = samples(factors)
            if is_far_one and seen_far is not None and far not in core:
                core.append(far)
            return core, factor > 1
    return [sizes for sizes in alike(1) if read(sizes) is not None], False


def _largest(fits: Callable[[int], bool], low: int, high: int, step: int) -> int:
    """The largest multiple of `step` from `low`, which fits, to `high` that fits."""
    if fits(high):
        return high
    while high - low > step:
        middle = (low + high) // 2 // step * step
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
