"""--outputs: a model up to tensors of its middle, and where to cut one that ends in other things.

Detectors end in a part whose shapes depend on values (which boxes are left); what comes before is
most of the work and has fixed shapes.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Container, Iterable, Sequence

import onnx

from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.onnx_repair.smallest_cut import smallest_cut

# What a network is made of: where it is cut, as many of these as possible are before the cut.
LAYERS = frozenset((
    "Attention", "AveragePool", "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose",
    "DeformConv", "Einsum", "GRU", "Gemm", "GlobalAveragePool", "GlobalMaxPool",
    "GroupNormalization", "InstanceNormalization", "LSTM", "LayerNormalization", "MatMul",
    "MatMulInteger", "MaxPool", "QLinearConv", "QLinearMatMul", "RNN", "Resize", "Upsample"))
_FEW_TENSORS, _MOST_TENSORS = 4, 32


def resolve(path: str, model: onnx.ModelProto, texts: Iterable[str]) -> list[str]:
    """The names in --outputs NAME,... of tensors that the model's graph makes."""
    made = [name for node in model.graph.node for name in node.output if name]
    known, names = set(made), []
    for text in texts:
        # A name may hold commas.
        names += [text] if text in known else [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, made, 3, 0.5)
            raise ToolError(MISMATCH, (
                f"--outputs names '{name}', which no node of {path} makes"
                + (f"; it makes {', '.join(near)}." if near else ".")))
    return list(dict.fromkeys(names))


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Makes tensors the model's only outputs, takes out what they do not need, gives it back."""
    graph = model.graph
    types = {value.name: value for value in (*graph.value_info, *graph.output)}
    nodes = [onnx.NodeProto.FromString(node.SerializeToString())
             for node in needed(graph.node, names)]
    used = set(names).union(*map(reads, nodes))
    outputs = [onnx.ValueInfoProto.FromString(types[name].SerializeToString())
               if name in types else onnx.ValueInfoProto(name=name) for name in names]
    for field, items in ((graph.node, nodes), (graph.output, outputs)):
        del field[:]
        field.extend(items)
    for tensors in (graph.initializer, graph.input):
        unused = [i for i, item in enumerate(tensors) if item.name not in used]
        for index in reversed(unused):
            del tensors[index]
    return model


def needed(nodes: Sequence[onnx.NodeProto], names: Iterable[str]) -> list[onnx.NodeProto]:
    """Those of some nodes, in order, that lead to the named tensors."""
    wanted, kept = set(names), []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(reads(node))
    return kept[::-1]


def reads(node: onnx.NodeProto) -> set[str]:
    """The names that a node reads, those in its subgraphs too."""
    found = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            inside = {value.name for value in (*graph.input, *graph.initializer)}
            for inner in graph.node:
                found |= reads(inner) - inside
                inside.update(inner.output)
            found |= {value.name for value in graph.output} - inside
    return found


def is_layer(node: onnx.NodeProto,
             functions: dict[tuple[str, str, str], onnx.FunctionProto]) -> bool:
    """Whether a node is, or a function's body or subgraph holds, an operator of LAYERS."""
    body = functions.get((node.domain, node.op_type, node.overload))
    if body is not None:
        return any(is_layer(inner, functions) for inner in body.node)
    return node.op_type in LAYERS or any(
        is_layer(inner, functions) for attribute in node.attribute for inner in attribute.g.node)


def where_to_cut(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], computed: Container[int],
                 weight: Callable[[str], int]) -> list[str]:
    """The tensors up to which a model can be compiled; none where nothing useful remains.

    computed: the indices of the `nodes` that can be.  weight: of a name, 0 for what is no tensor of
    the run time (a constant), 1 for a tensor, UNCUTTABLE for anything else.  Of all sets of tensors
    that have every layer before them, and behind them what cannot be computed, the smallest, and
    of those the last: boxes and scores, instead of what is made of them class by class.
    """
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    done = [node for index, node in enumerate(nodes) if index in computed]
    left = [node for index, node in enumerate(nodes) if index not in computed]
    before = [node for node in done if is_layer(node, functions)]
    behind = [node for node in left if is_layer(node, functions)]
    if len(before) <= len(behind):
        return []
    made = {name: index for index, name in enumerate(
        name for node in done for name in node.output if name and weight(name))}
    ends = {name for node in left for name in reads(node) if name in made}
    few = len(ends) <= _FEW_TENSORS and all(weight(name) == 1 for name in ends)
    cut = sorted(ends) if few else smallest_cut(
        {name: weight(name) for name in made},
        {(name, output) for node in done for name in reads(node) if name in made
         for output in node.output if output in made},
        {name for node in before for name in node.output if name in made},
        ends, most=_MOST_TENSORS)
    if not cut:
        return []
    kept = [value.name for value in model.graph.output if weight(value.name) == 1]
    return list(dict.fromkeys([*kept, *sorted(cut, key=made.__getitem__)]))
