"""RNN, LSTM and GRU: the importer's where it is right, else one step after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import reversed_places, sliced
from run_model_tools.onnx_repair.rules.shapes import concatenated, transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
# Of activations that have parameters, what these are if the node does not say.
_PARAMETERS = {"LeakyRelu": (0.01, 0.0), "ThresholdedRelu": (1.0, 0.0), "HardSigmoid": (0.2, 0.5),
               "Elu": (1.0, 0.0), "Affine": (1.0, 0.0), "ScaledTanh": (1.0, 1.0)}
_WITH_BETA = ("HardSigmoid", "Affine", "ScaledTanh")


Product = Callable[[Value], Value]
Products = tuple[Product, ...]


@rule("RNN", "LSTM", "GRU")
def recurrent(walk: Walk, node: Node) -> list[Value | None]:
    graph = walk.graph
    x, w, r = node.tensor(0), node.tensor(1), node.tensor(2)
    b, lengths, h = node.get(3), node.get(4), node.get(5)
    c, peepholes = (node.get(6), node.get(7)) if node.op == "LSTM" else (None, None)
    batched = bool(node.attrs.get("layout", 0))
    direction = node.attrs.get("direction", "forward")
    _check_shapes(walk, node, direction)
    if batched:
        x = transposed(walk, x, [1, 0, 2])
        h, c = (None if s is None else transposed(walk, s, [1, 0, 2]) for s in (h, c))
    if lengths is not None and lengths.array is not None and (
            lengths.array == x.shape[0]).all():
        lengths = None
    count, hidden = w.shape[0], r.shape[-1]
    acts = node.attrs.get("activations") or _DEFAULTS[node.op] * count
    relu = walk.is_open and node.op == "RNN" and acts == ["Relu"] * count
    usual = (lengths is None and not node.attrs.get("clip")
             and not node.attrs.get("input_forget", 0)
             and (acts == _DEFAULTS[node.op] * count or relu))
    known = walk.knows(node.op) and (direction != "reverse" or walk.is_open)
    if usual and (known or walk.keeps_layers and _has_kernel(node, x, (w, r, b), peepholes)):
        attrs = {"linear_before_reset": node.attrs.get("linear_before_reset", 0)} \
            if node.op == "GRU" else {"activations": acts} if relu else {}
        states = [x, w, r, b, None, h] + ([c, peepholes] if node.op == "LSTM" else [])
        results = graph.ops(node.op, states, 3 if node.op == "LSTM" else 2, hidden_size=hidden,
                            direction=direction, **attrs)
    else:
        whole = [[transposed(walk, part(walk, v, i), [1, 0]) for v in (w, r)]
                 for i in range(count)]
        weights = [(times(walk, inputs), times(walk, state)) if node.op != "GRU" else
                   (times(walk, inputs), *(times(walk, gate) for gate in _gates(walk, state, 3)))
                   for inputs, state in whole]
        results = unrolled(walk, node, node.op, hidden, x, weights, [b, h, c, peepholes], lengths)
    if batched:
        results = [transposed(walk, results[0], [2, 0, 1, 3]),
                   *(transposed(walk, s, [1, 0, 2]) for s in results[1:])]
    return list(results)


def _check_shapes(walk: Walk, node: Node, direction: str) -> None:
    """Shapes as ONNX defines them: what does not fit would be read as weights of another layer.

    A projection of PyTorch's LSTM (proj_size), which ONNX has not, is such a case.
    """
    x, gates = node.tensor(0), _GATES[node.op]
    count = 2 if direction == "bidirectional" else 1
    r = node.tensor(2)
    for name, tensor in (("X", x), ("R", r)):
        if tensor.rank != 3:
            raise _does_not_fit(name, tensor, "three axes")
    batch_first = bool(node.attrs.get("layout", 0))
    batch, hidden = x.shape[0 if batch_first else 1], node.attrs.get("hidden_size", r.shape[2])
    state = (batch, count, hidden) if batch_first else (count, batch, hidden)
    expected = {"W": (count, gates * hidden, x.shape[2]), "R": (count, gates * hidden, hidden),
                "B": (count, 2 * gates * hidden), "sequence_lens": (batch,),
                "initial_h": state, "initial_c": state, "P": (count, 3 * hidden)}
    for index, (name, shape) in enumerate(expected.items(), 1):
        value = node.get(index) if index < 6 or node.op == "LSTM" else None
        if value is None:
            continue
        # Extents that callers choose may have two names and still have to be the same.
        fits = [a == b or (walk.is_open and b == batch) for a, b in zip(value.shape, shape)]
        if value.rank != len(shape) or not all(fits):
            raise _does_not_fit(name, value, f"{list(shape)} with {hidden} hidden features and "
                                             f"direction={direction}")


def _does_not_fit(name: str, value: Value, expected: str) -> Refused:
    return invalid(f"its {name} has the shape {list(value.shape)}, and {expected} is expected")


def _has_kernel(node: Node, x: Value, weights: tuple[Value | None, ...],
                peepholes: Value | None) -> bool:
    """Whether a layer with the usual activations is one for kernels/recurrent.py."""
    return (peepholes is None and node.op != "RNN" and x.dtype in ("float16", "float32")
            and min(x.shape) > 0 and all(w is None or w.is_constant for w in weights)
            and (node.op == "LSTM" or bool(node.attrs.get("linear_before_reset", 0))))


def times(walk: Walk, matrix: Value) -> Product:
    return lambda x: walk.graph.op("MatMul", x, matrix)


def unrolled(walk: Walk, node: Node, kind: str, hidden: int, x: Value,
             weights: list[Products], others: list[Value | None],
             lengths: Value | None) -> list[Value]:
    """The outputs of one step after the other, and the last states.

    weights: for each direction the products of the inputs and of the state, of a GRU's state one
    for each gate.  others: biases, the states before the first step, peepholes.
    """
    graph = walk.graph
    count, each = len(weights), len(_DEFAULTS[kind])
    b, h, c, peepholes = others
    zeros = graph.constant(np.zeros((count, x.shape[1], hidden), x.dtype))
    acts = node.attrs.get("activations") or _DEFAULTS[kind] * count
    sides = [_side(walk, node, kind, i, x, weights[i], [
        None if v is None else part(walk, v, i) for v in (b, h or zeros, c or zeros, peepholes)],
        lengths, node.attrs.get("direction", "forward") == "reverse" or i == 1, acts[i * each:])
        for i in range(count)]
    results = []
    for k in range(3 if kind == "LSTM" else 2):
        axis = 1 if k == 0 else 0
        wide = [graph.op("Unsqueeze", side[k], np.array([axis])) for side in sides]
        results.append(concatenated(walk, wide, axis))
    return results


def part(walk: Walk, value: Value, index: int) -> Value:
    part = sliced(walk, value, {0: range(index, index + 1)})
    return reshaped(walk, part, part.shape[1:])


def _side(walk: Walk, node: Node, kind: str, index: int, x: Value, weights: Products,
          parts: list[Value | None], lengths: Value | None, backwards: bool,
          acts: list[str]) -> list[Value]:
    """One direction: the outputs of all steps, and the last states."""
    graph = walk.graph
    b, h, c, peepholes = parts
    assert h is not None and c is not None
    functions = _functions(walk, node, kind, index, acts)
    steps, batch = x.shape[:2]
    gates = _GATES[kind]
    hidden = h.shape[-1]
    if backwards:
        x = _turned(walk, x, lengths)
    halves = [None, None] if b is None else [
        sliced(walk, b, {0: range(k * gates * hidden, (k + 1) * gates * hidden)})
        for k in (0, 1)]
    inputs = weights[0](x)
    inputs = inputs if halves[0] is None else graph.op("Add", inputs, halves[0])
    outputs = []
    for step in range(steps):
        here = reshaped(walk, sliced(walk, inputs, {0: range(step, step + 1)}),
                        (batch, gates * hidden))
        new_h, new_c = _STEPS[kind](walk, node, here, h, c, weights[1:], halves[1], peepholes,
                                    functions)
        if lengths is not None:
            live = reshaped(walk, graph.op("Greater", cast(walk, lengths, TensorProto.INT64),
                                           step), (batch, 1))
            outputs.append(graph.op("Where", live, new_h, graph.like(0, new_h)))
            new_h, new_c = graph.op("Where", live, new_h, h), graph.op("Where", live, new_c, c)
        else:
            outputs.append(new_h)
        h, c = new_h, new_c
    y = concatenated(walk, [graph.op("Unsqueeze", o, np.array([0])) for o in outputs], 0)
    return [_turned(walk, y, lengths) if backwards else y, h, c]


def _turned(walk: Walk, x: Value, lengths: Value | None) -> Value:
    if lengths is None:
        return sliced(walk, x, {0: range(x.shape[0] - 1, -1, -1)})
    return walk.graph.op("GatherElements", x, reversed_places(walk, x, lengths, 0, 1), axis=0)


def _functions(walk: Walk, node: Node, kind: str, index: int,
               acts: list[str]) -> list[Callable[[Value], Value]]:
    """The activations of one direction."""
    graph = walk.graph
    each = len(_DEFAULTS[kind])
    parameters_of = _parameters(node)
    limit = float(node.attrs.get("clip", 0) or 0)

    def function(name: str, place: int) -> Callable[[Value], Value]:
        alpha, beta = parameters_of[place] if place < len(parameters_of) else (0.0, 0.0)

        def run(x: Value) -> Value:
            # A cell's state is not clipped on its way out, as ONNX Runtime reads the definition.
            if limit and (kind != "LSTM" or place % each < 2):
                x = graph.op("Clip", x, graph.like(-limit, x), graph.like(limit, x))
            if name == "Affine":
                return graph.op("Add", graph.op("Mul", x, alpha), beta)
            if name == "ScaledTanh":
                return graph.op("Mul", graph.op("Tanh", graph.op("Mul", x, beta)), alpha)
            if name not in ("Tanh", "Sigmoid", "Relu", "LeakyRelu", "Elu", "HardSigmoid",
                            "ThresholdedRelu", "Softsign", "Softplus"):
                raise Refused(f"its activation '{name}' is not known")
            parameters: dict[str, dict[str, Any]] = {
                "LeakyRelu": {"alpha": alpha}, "Elu": {"alpha": alpha},
                "ThresholdedRelu": {"alpha": alpha},
                "HardSigmoid": {"alpha": alpha, "beta": beta}}
            return walk.node_in(name, 18, [x], 1, **parameters.get(name, {}))

        return run

    return [function(name, index * each + i) for i, name in enumerate(acts[:each])]


def _parameters(node: Node) -> list[tuple[float, float]]:
    """(alpha, beta) of each activation of both directions.

    The node lists those of activations that have such parameters, one after the other.
    """
    alphas, betas = (iter(node.attrs.get(k, ())) for k in ("activation_alpha", "activation_beta"))
    found = []
    for name in node.attrs.get("activations", ()):
        alpha, beta = _PARAMETERS.get(name, (0.0, 0.0))
        found.append((next(alphas, alpha) if name in _PARAMETERS else alpha,
                      next(betas, beta) if name in _WITH_BETA else beta))
    return found


def _gates(walk: Walk, value: Value, count: int) -> list[Value]:
    hidden = value.shape[-1] // count
    return [sliced(walk, value, {value.rank - 1: range(i * hidden, (i + 1) * hidden)})
            for i in range(count)]


def _plus(walk: Walk, a: Value, b: Value | None) -> Value:
    return a if b is None else walk.graph.op("Add", a, b)


Functions = list[Callable[[Value], Value]]


def _rnn_step(walk: Walk, node: Node, x: Value, h: Value, c: Value, r: Products,
              bias: Value | None, peepholes: Value | None,
              functions: Functions) -> tuple[Value, Value]:
    return functions[0](_plus(walk, walk.graph.op("Add", x, r[0](h)), bias)), c


def _gru_step(walk: Walk, node: Node, x: Value, h: Value, c: Value, r: Products,
              bias: Value | None, peepholes: Value | None,
              functions: Functions) -> tuple[Value, Value]:
    graph = walk.graph
    f, g = functions
    xz, xr, xh = _gates(walk, x, 3)
    rz, rr, rh = r
    bz, br, bh = _gates(walk, bias, 3) if bias is not None else (None, None, None)
    z = f(_plus(walk, graph.op("Add", xz, rz(h)), bz))
    reset = f(_plus(walk, graph.op("Add", xr, rr(h)), br))
    if node.attrs.get("linear_before_reset", 0):
        inner = graph.op("Mul", reset, _plus(walk, rh(h), bh))
    else:
        inner = _plus(walk, rh(graph.op("Mul", reset, h)), bh)
    new = g(graph.op("Add", xh, inner))
    kept = graph.op("Mul", z, graph.op("Sub", h, new))
    return graph.op("Add", new, kept), c


def _lstm_step(walk: Walk, node: Node, x: Value, h: Value, c: Value, r: Products,
               bias: Value | None, peepholes: Value | None,
               functions: Functions) -> tuple[Value, Value]:
    graph = walk.graph
    f, g, out = functions
    i, o, forget, cell = _gates(walk, _plus(walk, graph.op("Add", x, r[0](h)), bias), 4)
    pi, po, pf = _gates(walk, peepholes, 3) if peepholes is not None else (None, None, None)

    def seen(gate: Value, state: Value, weight: Value | None) -> Value:
        return gate if weight is None else graph.op("Add", gate, graph.op("Mul", weight, state))

    i = f(seen(i, c, pi))
    if node.attrs.get("input_forget", 0):
        forget = graph.op("Add", graph.op("Neg", i), 1)
    else:
        forget = f(seen(forget, c, pf))
    new_c = graph.op("Add", graph.op("Mul", forget, c), graph.op("Mul", i, g(cell)))
    o = f(seen(o, new_c, po))
    return graph.op("Mul", o, out(new_c)), new_c


_STEPS = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}
