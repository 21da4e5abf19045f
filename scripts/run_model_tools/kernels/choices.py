"""Which kernels were measured to be best: the files of kernels/choices.

FAMILY.TARGET.json has what `tune_model --kernels ours` found for those layers of one network for
which something else than the kernels' guess makes the whole network faster:

    {"schema_version": 1, "family": ..., "target": ..., "measured_on": CPU, "threads": 2, ...
     "layers": {KEY: {"kernel": "winograd", "parameters": {...},
                      "microseconds": 235.1, "guess_microseconds": 260.0}}}

A key says all of a layer that its time depends on, and the instruction set, so a choice serves
every network and every target of that instruction set with such a layer.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from run_model_tools.environment import DATA_ROOT
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.convolutions.inverted_residual import InvertedResidual
from run_model_tools.kernels.convolutions.pooled_convolution import PooledConvolution
from run_model_tools.kernels.isa import Isa

FOLDER = DATA_ROOT / "kernels" / "choices"
SCHEMA_VERSION = 1

Work = Convolution | InvertedResidual | PooledConvolution
"""What kernels are chosen for: a convolution, or several layers that are computed together."""

Kernel = tuple[str, dict[str, object]]
"""A kernel's name and its parameters, as choice.options gives them."""

# What stands in for the committed files, the last of them.
_instead: list[Mapping[str, Kernel]] = []


class MalformedFile(Exception):
    """A file of choices that is not as this module describes it."""


def key_of(work: Work, isa: Isa) -> str:
    """The layer without its numbers, as text: "avx512 64x56x56 -> 64x56x56 kernel 3x3 pad 1,1,1,1".

    Layers that are computed together are joined by " + ".
    """
    if isinstance(work, Convolution):
        return f"{isa.name} {_text(work, isa)}"
    parts = [_text(conv, isa) for conv in work.convolutions]
    if isinstance(work, PooledConvolution):
        pool = work.pooling
        parts.append(f"max pool {_by(pool.window)} strides {_by(pool.strides)} "
                     f"pad {','.join(map(str, pool.padding))} to {_by(pool.output_size)}")
    return f"{isa.name} " + " + ".join(parts)


def _text(conv: Convolution, isa: Isa) -> str:
    height, width = conv.output_size
    parts = [f"{conv.input_channels}x{conv.input_size[0]}x{conv.input_size[1]}", "->",
             f"{conv.output_channels}x{height}x{width}", f"kernel {_by(conv.kernel)}"]
    if conv.strides != (1, 1):
        parts.append(f"strides {_by(conv.strides)}")
    if any(conv.padding):
        parts.append("pad " + ",".join(map(str, conv.padding)))
    if conv.dilation != (1, 1):
        parts.append(f"dilation {_by(conv.dilation)}")
    if conv.groups > 1:
        parts.append(f"groups {conv.groups}")
    if conv.residual:
        parts.append("residual")
    bounds = [name for name, bound in (("low", conv.low), ("high", conv.high))
              if math.isfinite(bound)]
    if bounds:
        parts.append("clamp " + ",".join(bounds))
    if conv.expression:
        parts.append("then " + conv.expression.text)
    if conv.planar:
        parts.append("planar")
    elif (conv.input_lanes != plain_lanes(conv.input_channels, isa.lanes)
          or conv.input_shapes[0][1] != len(conv.input_lanes)):
        # Channels that a network split, shuffled or concatenated.
        table = repr((conv.input_shapes, [(p.tensor, p.block, p.first, p.count)
                                          for p in conv.input_lanes]))
        parts.append("lanes " + hashlib.sha256(table.encode()).hexdigest()[:12])
    return " ".join(parts)


def find(work: Work, isa: Isa) -> Kernel | None:
    """What was measured best for such a layer, or None.  Raises MalformedFile."""
    table = _instead[-1] if _instead else committed()
    return table.get(key_of(work, isa))


@contextmanager
def replaced_by(table: Mapping[str, Kernel]) -> Iterator[None]:
    """While it is open, `table`, by keys, stands for all that was measured."""
    _instead.append(table)
    try:
        yield
    finally:
        _instead.pop()


def committed() -> Mapping[str, Kernel]:
    """All that is committed, by keys.  Raises MalformedFile."""
    return _committed(files())


def files() -> tuple[Path, ...]:
    """The committed files."""
    return tuple(sorted(FOLDER.glob("*.json")))


def forget() -> None:
    """Lets the files be read again, which is done once in a process."""
    _committed.cache_clear()


@lru_cache(maxsize=1)
def _committed(paths: tuple[Path, ...]) -> dict[str, Kernel]:
    found: dict[str, tuple[float, Kernel]] = {}
    for path in paths:
        for key, (microseconds, kernel) in read(path).items():
            # Of two for one layer the faster one counts.
            if key not in found or microseconds < found[key][0]:
                found[key] = microseconds, kernel
    return {key: kernel for key, (_, kernel) in found.items()}


def read(path: Path) -> dict[str, tuple[float, Kernel]]:
    """A file's choices by their keys, with the microseconds measured.  Raises MalformedFile."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema_version"] != SCHEMA_VERSION:
            raise MalformedFile(f"{path} has schema_version {content['schema_version']}, and "
                                f"{SCHEMA_VERSION} was expected: measure again with tune_model")
        found = {}
        for key, layer in content["layers"].items():
            kernel, parameters = layer["kernel"], layer["parameters"]
            if not isinstance(kernel, str) or not isinstance(parameters, dict):
                raise TypeError(f"the kernel of '{key}' is no name with parameters")
            found[key] = float(layer["microseconds"]), (kernel, parameters)
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedFile(f"{path} is no file of measured kernels: {error!r}; measure again with "
                            "tune_model --kernels ours, or remove it") from None


def _by(sizes: tuple[int, int]) -> str:
    return f"{sizes[0]}x{sizes[1]}"
