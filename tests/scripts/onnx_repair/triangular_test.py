"""Rows that are computed one after the other from those before them, as the delta rule of linear
attention is exported, become the inverse of a triangular matrix; what only looks so does not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from repaired_models import FLOAT, check, model_of, noise, operators

ROWS, BATCH = 12, (1, 3)
SHAPE = (*BATCH, ROWS, ROWS)


def substitution(form, mask=None, factor=1.0, rows=range(1, ROWS)):
    """x, masked, whose row i gets factor * row[:i] @ x[:i, :i] more, one row after the other."""
    constants = {"mask": np.tri(ROWS, k=-1, dtype=bool) if mask is None else mask,
                 "zero": np.float32(0), "one": np.array([1]), "from": np.array([0]),
                 "factor": np.float32(factor), "last": np.array([-1]), "before": np.array([-2]),
                 "axes": np.array([2, 3]), "columns": np.array([3])}
    nodes = [helper.make_node("Where", ["mask", "x", "zero"], ["masked"]),
             helper.make_node("Neg", ["masked"], ["a0"])]
    name = "a0"
    for row in rows:
        constants |= {f"from{row}": np.array([row, 0]), f"to{row}": np.array([row + 1, row]),
                      f"square{row}": np.array([row, row]), f"zeros{row}": np.array([0, 0]),
                      f"row{row}": np.array([row]), f"end{row}": np.array([ROWS])}
        nodes += [
            helper.make_node("Slice", [name, f"from{row}", f"to{row}", "axes"], [f"row_{row}"]),
            helper.make_node("Slice", [name, f"zeros{row}", f"square{row}", "axes"], [f"sub{row}"]),
            helper.make_node("Squeeze", [f"row_{row}", "before"], [f"flat{row}"]),
            helper.make_node("Unsqueeze", [f"flat{row}", "last"], [f"column{row}"]),
            helper.make_node("Mul", [f"column{row}", f"sub{row}"], [f"products{row}"]),
            helper.make_node("ReduceSum", [f"products{row}", "before"], [f"sum{row}"], keepdims=0),
            helper.make_node("Mul", [f"sum{row}", "factor"], [f"scaled{row}"]),
            helper.make_node("Add", [f"flat{row}", f"scaled{row}"], [f"new{row}"])]
        if form == "ScatterND":
            places = np.stack(np.meshgrid(*map(np.arange, BATCH), [row], np.arange(row),
                                          indexing="ij"), -1)
            constants[f"places{row}"] = places
            nodes += [helper.make_node("Unsqueeze", [f"new{row}", "before"], [f"updates{row}"]),
                      helper.make_node("ScatterND", [name, f"places{row}", f"updates{row}"],
                                       [f"a{row}"])]
        else:
            constants[f"places{row}"] = np.full((*BATCH, 1, ROWS), row)
            nodes += [helper.make_node("Slice", [name, f"row{row}", f"to{row}_", "axes_"],
                                       [f"whole{row}"]),
                      helper.make_node("Slice", [f"whole{row}", f"row{row}", f"end{row}",
                                                 "columns"], [f"rest{row}"]),
                      helper.make_node("Unsqueeze", [f"new{row}", "before"], [f"begin{row}"]),
                      helper.make_node("Concat", [f"begin{row}", f"rest{row}"], [f"updates{row}"],
                                       axis=3),
                      helper.make_node("ScatterElements", [name, f"places{row}", f"updates{row}"],
                                       [f"a{row}"], axis=2)]
            constants |= {f"to{row}_": np.array([row + 1]), "axes_": np.array([2])}
        name = f"a{row}"
    nodes.append(helper.make_node("Identity", [name], ["y"]))
    used = {i for node in nodes for i in node.input}
    return model_of(nodes, {"x": (FLOAT, SHAPE)}, {"y": FLOAT}, 18,
                    {key: array for key, array in constants.items() if key in used})


@pytest.mark.parametrize("form", ["ScatterElements", "ScatterND"])
def test_substitution_is_an_inverse(form):
    made = check(substitution(form), {"x": noise(*SHAPE)})
    assert operators(made).count("MatMul") == 6 and len(made.graph.node) < 25


@pytest.mark.parametrize("form", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize("changed", [
    {"factor": 2.0}, {"mask": np.ones((ROWS, ROWS), bool)}, {"rows": range(2, ROWS)},
    {"mask": np.tri(ROWS, dtype=bool)}])
def test_what_is_none_stays_as_it_is(form, changed):
    made = check(substitution(form, **changed), {"x": 0.1 * noise(*SHAPE)})
    assert "MatMul" not in operators(made)
