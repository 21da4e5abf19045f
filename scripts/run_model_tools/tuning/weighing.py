"""Which of a layer's trials is best for a network that has the layer.

The fastest by itself may want its channels in other blocks than the layers around it: then these
numbers are converted before and after it, which often costs more than it gains.  And a
configuration that is only as fast as the untuned one, within what measurements tell, is no gain.

Also imported inside TVM's process (run_model_tools.inside_tvm), so Python 3.8 has to understand it;
it needs the standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

# What memory moves at least, about (Raspberry Pi 4: 2 to 4 GB/s).
BYTES_PER_SECOND = 3e9

# A gain below this is not told from noise.
LEAST_GAIN = 0.02


def blocks_of_entity(template: str,
                     entity: Iterable[Sequence[Any]]) -> tuple[int, int] | None:
    """(input, output): how many channels lie together before and after a layer of a template, by
    its knobs [(name, kind, choice)]; None where the template leaves channels as they are."""
    if not template.endswith("NCHWc.x86"):
        return None
    sizes = {name: choice[-1] for name, _, choice in entity
             if isinstance(choice, (list, tuple)) and choice}
    if "tile_oc" not in sizes or "tile_ic" not in sizes:
        return None
    return sizes["tile_ic"], sizes["tile_oc"]


class Weighing:
    """What the records of a network's layers cost it.

    tasks: as the worker describes them (session.Task.describe): their keys, and for each the place
    of the untuned configuration in its space and its blocks.
    """

    def __init__(self, tasks: Iterable[dict[str, Any]] = ()) -> None:
        self._untuned = {key: task.get("untuned") or {} for task in tasks for key in task["keys"]}

    def seconds(self, record: Any) -> float:
        """Of one call, with the conversions that it may bring, so that the least is the best."""
        untuned = self._untuned.get(record.key, {})
        if record.kind != "autotvm" or not untuned:
            return float(record.seconds)
        value = json.loads(record.text)["config"]
        if untuned.get("index") is not None and value["index"] == untuned["index"]:
            return float(record.seconds) * (1 - LEAST_GAIN)
        return float(record.seconds) + self._conversions(record, value["entity"],
                                                         untuned.get("blocks"))

    def _conversions(self, record: Any, entity: list[Sequence[Any]],
                     usual: Sequence[int] | None) -> float:
        blocks = blocks_of_entity(record.template, entity)
        if blocks is None or usual is None:
            return 0.0
        data, weight, strides = json.loads(record.key)[1][:3]
        before = _numbers(data[1])
        after = data[1][0] * weight[1][0] * _numbers(data[1][2:])
        for stride in strides if isinstance(strides, list) else [strides]:
            after //= stride
        moved = before * (blocks[0] != usual[0]) + after * (blocks[1] != usual[1])
        # Read and written, four bytes each.
        return 2 * 4 * moved / BYTES_PER_SECOND


def _numbers(shape: list[int]) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product
