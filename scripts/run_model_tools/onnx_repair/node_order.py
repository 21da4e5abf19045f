"""Nodes in an order in which they can be run.

ONNX asks for that order, and tools that convert to half precision append their casts at the end;
runtimes sort them silently.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

import onnx

from run_model_tools.onnx_repair.outputs import reads


def in_order(nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes, each after those that make its inputs and else in the order given; as they were
    where they read each other in a circle."""
    listed = list(nodes)
    makers = {name: index for index, node in enumerate(listed) for name in node.output if name}
    needs = [{makers[name] for name in reads(node) if name in makers} - {index}
             for index, node in enumerate(listed)]
    if all(maker < index for index, need in enumerate(needs) for maker in need):
        return listed
    readers: list[list[int]] = [[] for _ in listed]
    for index, need in enumerate(needs):
        for maker in need:
            readers[maker].append(index)
    ready = [index for index, need in enumerate(needs) if not need]
    heapify(ready)
    missing = [len(need) for need in needs]
    order = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    return [listed[index] for index in order] if len(order) == len(listed) else listed
