"""Matrix products."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import transposed
from run_model_tools.onnx_repair.values import INTEGERS, Node, Value
from run_model_tools.onnx_repair.walk import Walk


def product(walk: Walk, a: Value, b: Value) -> Value:
    """numpy.matmul."""
    if a.rank == 1 or b.rank == 1:
        left = reshaped(walk, a, (1, a.size)) if a.rank == 1 else a
        right = reshaped(walk, b, (b.size, 1)) if b.rank == 1 else b
        made = product(walk, left, right)
        shape = made.shape[:-1] if b.rank == 1 else made.shape
        shape = (*shape[:-1 - (b.rank != 1)], *shape[-1:]) if a.rank == 1 and b.rank > 1 else \
            shape[:-1] if a.rank == 1 else shape
        return reshaped(walk, made, shape)
    if not a.shape[-1]:
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        return walk.graph.constant(np.zeros(shape), a.dtype)
    return walk.graph.op("MatMul", a, b)


@rule("MatMul")
def matmul(walk: Walk, node: Node) -> Value:
    a, b = node.tensor(0), node.tensor(1)
    if a.elem_type in INTEGERS and a.elem_type not in (TensorProto.INT32, TensorProto.INT64):
        wide = TensorProto.INT64
        return cast(walk, product(walk, cast(walk, a, wide), cast(walk, b, wide)), a.elem_type)
    return product(walk, a, b)


@rule("Gemm")
def gemm(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    a, b, c = node.tensor(0), node.tensor(1), node.get(2)
    alpha, beta = float(node.attrs.get("alpha", 1.0)), float(node.attrs.get("beta", 1.0))
    if a.rank != 2:
        a = reshaped(walk, a, (a.shape[0], a.size // a.shape[0]))
    if c is not None and c.rank > 2:
        c = reshaped(walk, c, c.shape[-2:])
    if a.is_float and a.size:
        return graph.op("Gemm", a, b, c, alpha=alpha, beta=beta,
                        transA=node.attrs.get("transA", 0), transB=node.attrs.get("transB", 0))
    if not a.is_float and (alpha != int(alpha) or beta != int(beta)):
        raise Refused("it scales whole numbers by a fraction")
    left = transposed(walk, a, [1, 0]) if node.attrs.get("transA", 0) else a
    right = transposed(walk, b, [1, 0]) if node.attrs.get("transB", 0) else b
    made = graph.op("Mul", product(walk, left, right), graph.like(alpha, a))
    return made if c is None else graph.op("Add", made, graph.op("Mul", c, graph.like(beta, c)))


@rule("Einsum")
def einsum(walk: Walk, node: Node) -> Value:
    """As products of two operands at a time, each by a batched MatMul."""
    values = node.tensors()
    terms, out = _terms(node.attrs["equation"], values)
    while True:
        for index, (term, value) in enumerate(zip(terms, values)):
            terms[index], values[index] = _diagonals(walk, term, value)
        others = set(out).union(*terms[2:])
        if len(values) == 1:
            return _arranged(walk, *_summed(walk, terms[0], values[0], set(out)), out)
        term, value = _pair(walk, (terms[0], terms[1]), (values[0], values[1]), others)
        terms[:2], values[:2] = [term], [value]


def _terms(equation: str, values: list[Value]) -> tuple[list[str], str]:
    """Each operand's letters, and the output's; an ellipsis becomes letters of its own."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    letters = iter(chr(c) for c in range(0x3b1, 0x3b1 + 64))
    hidden = max((v.rank - len(t.replace("...", "")) for t, v in zip(terms, values)
                  if "..." in t), default=0)
    names = "".join(next(letters) for _ in range(hidden))
    full = []
    for term, value in zip(terms, values):
        count = value.rank - len(term.replace("...", ""))
        full.append(term.replace("...", names[hidden - count:] if count else ""))
    if not arrow:
        plain = "".join(full)
        out = names + "".join(sorted(c for c in set(plain) if plain.count(c) == 1
                                     and c not in names))
    return full, out.replace("...", names)


def _diagonals(walk: Walk, term: str, value: Value) -> tuple[str, Value]:
    """Letters that stand twice for one operand, as its diagonal."""
    graph = walk.graph
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            i = term.index(letter)
            j = term.index(letter, i + 1)
            extent = value.shape[i]
            perm = [k for k in range(value.rank) if k not in (i, j)] + [i, j]
            moved = transposed(walk, value, perm)
            flat = reshaped(walk, moved, (*moved.shape[:-2], extent * extent))
            value = graph.op("Gather", flat, np.arange(extent) * (extent + 1),
                             axis=flat.rank - 1)
            term = "".join(term[k] for k in perm[:-2]) + letter
    return term, value


def _summed(walk: Walk, term: str, value: Value, kept: set[str]) -> tuple[str, Value]:
    gone = [i for i, letter in enumerate(term) if letter not in kept]
    if gone:
        value = reduce(walk, "ReduceSum", value, gone, False)
    return "".join(letter for letter in term if letter in kept), value


def _arranged(walk: Walk, term: str, value: Value, out: str) -> Value:
    return transposed(walk, value, [term.index(letter) for letter in out]) if out else value


def _pair(walk: Walk, terms: tuple[str, str], values: tuple[Value, Value],
          kept: set[str]) -> tuple[str, Value]:
    """The product of two operands, summed over the letters that nobody else has."""
    (a, x), (b, y) = (_summed(walk, t, v, kept | set(u)) for t, v, u in zip(
        terms, values, terms[::-1]))
    # An extent of 1 is broadcast.
    extents = {c: max(t.shape[s.index(c)] for s, t in ((a, x), (b, y)) if c in s) for c in a + b}
    both = [c for c in a if c in b]
    if any(x.shape[a.index(c)] != y.shape[b.index(c)] for c in both):
        out = "".join(dict.fromkeys(a + b))
        wide = [reshaped(walk, transposed(walk, v, [t.index(c) for c in out if c in t]), tuple(
            v.shape[t.index(c)] if c in t else 1 for c in out)) for t, v in ((a, x), (b, y))]
        return _summed(walk, out, walk.graph.op("Mul", *wide), kept)
    batch = [c for c in both if c in kept]
    summed = [c for c in both if c not in kept]
    rows = [c for c in a if c not in both]
    columns = [c for c in b if c not in both]

    def size(letters: list[str]) -> int:
        return int(np.prod([extents[c] for c in letters], dtype=np.int64))

    left = reshaped(walk, transposed(walk, x, [a.index(c) for c in batch + rows + summed]),
                    (size(batch), size(rows), size(summed)))
    right = reshaped(walk, transposed(walk, y, [b.index(c) for c in batch + summed + columns]),
                     (size(batch), size(summed), size(columns)))
    letters = batch + rows + columns
    return "".join(letters), reshaped(walk, product(walk, left, right), tuple(
        extents[c] for c in letters))
