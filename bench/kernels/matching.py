"""Which node of a compiled network computes which of its layers.

Names do not survive compilation, so a node is known by its shapes. Of layers alike in all of these,
the first one in the network's order goes to the first node; their times are alike too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernels.layers import MATRIX_PRODUCTS, NetworkLayer
from kernels.profiles import Node

#: How many layers one of our kernels joins at most.
_LONGEST_CHAIN = 3
#: Channels are filled up to a multiple of at most so many.
_FILLED_TO = 16


def match_ours(nodes: Sequence[Node], layers: Sequence[NetworkLayer]) -> dict[int, tuple[int, ...]]:
    """By the place of a node with multiply_adds, the places of the layers that it computes."""
    found: dict[int, tuple[int, ...]] = {}
    used: set[int] = set()
    # First those whose operations agree exactly: a depthwise kernel may count channels that fill a
    # block, and must not take another layer's place with them.
    for exactly in (True, False):
        for place, node in enumerate(nodes):
            if node.multiply_adds is None or place in found:
                continue
            chain = next((c for c in _chains(layers, used) if _computes(node, c, layers, exactly)),
                         None)
            if chain:
                found[place] = chain
                used.update(chain)
    return found


def _chains(layers: Sequence[NetworkLayer], used: set[int]) -> list[tuple[int, ...]]:
    """Single layers, then pairs of which one reads only the other, and so on."""
    chains = [(place,) for place in range(len(layers)) if place not in used]
    found = list(chains)
    for _ in range(_LONGEST_CHAIN - 1):
        chains = [(*chain, place) for chain in chains for place in range(chain[-1] + 1, len(layers))
                  if place not in used and layers[place].reads == {chain[-1]}]
        found += chains
    return found


def _computes(node: Node, chain: tuple[int, ...], layers: Sequence[NetworkLayer],
              exactly: bool) -> bool:
    least = sum(layers[place].multiply_adds for place in chain)
    most = sum(_filled_operations(layers[place]) for place in chain)
    if not (node.multiply_adds == least if exactly else least < node.multiply_adds <= most):
        return False
    last = layers[chain[-1]]
    if len(node.output) == 2:
        return last.output_size == (1, 1) and node.output[1] == last.channels[1]
    return node.output[2:4] == last.output_size


def _filled_operations(layer: NetworkLayer) -> int:
    if not layer.is_depthwise:
        return layer.multiply_adds
    # Blocks that hold channels of another branch too may be twice as many.
    return 2 * layer.multiply_adds // layer.channels[1] * _filled(layer.channels[1])


def match_others(nodes: Sequence[Node], layers: Sequence[NetworkLayer]) -> dict[int, int]:
    """By the place of a layer, that of the node of TVM's schedules or ONNX Runtime's."""
    found: dict[int, int] = {}
    used: set[int] = set()
    for place, layer in enumerate(layers):
        node = next((n for n, node in enumerate(nodes) if n not in used and _is(node, layer)), None)
        if node is not None:
            found[place] = node
            used.add(node)
    return found


def _is(node: Node, layer: NetworkLayer) -> bool:
    if layer.is_dense:
        return (len(node.output) == 2 and _fits(node.output[1], layer.channels[1])
                and bool(re.search("dense|matmul|" + "|".join(MATRIX_PRODUCTS), node.operator)))
    if not re.search("conv", node.operator, re.IGNORECASE) or len(node.weight) not in (4, 6):
        return False
    # Blocked: outer channels in front of and inner ones behind the picture's or the kernel's size.
    output = node.output[1] * (node.output[4] if len(node.output) == 5 else 1)
    outer, inner, *kernel = node.weight[:4]
    if len(node.weight) == 6:
        outer, inner = outer * node.weight[5], inner * node.weight[4]
    depth = layer.channels[0] // layer.groups
    return (node.output[2:4] == layer.output_size and tuple(kernel) == layer.kernel
            and _fits(output, layer.channels[1]) and _fits(outer, layer.channels[1])
            and (inner == depth if depth == 1 else _fits(inner, depth)))


def _fits(stored: int, channels: int) -> bool:
    return channels <= stored <= _filled(channels)


def _filled(channels: int) -> int:
    return -(-channels // _FILLED_TO) * _FILLED_TO
