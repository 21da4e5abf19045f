"""Operators of StableHLO in TensorFlow Lite's files, held to LiteRT; to NumPy where it has none."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_operators_test import Operators, gives_what_litert_gives
from tflite_test import compile_many, outputs_of

from tflite_networks import TfliteNetwork

pytestmark = pytest.mark.full  # operators that few files have

SHAPE = (1, 6, 10)


class Calling(Operators):
    """Operators that say by a graph what becomes of two numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = self.gives("RESHAPE", [self.x, self.whole(6, 10)], (6, 10))
        self.others = self.gives("RESHAPE", [self.y, self.whole(6, 10)], (6, 10))
        positive = self.gives("ABS", [self.y], SHAPE)
        self.places = self.gives("CAST", [self.gives(
            "MUL", [positive, self.constant(np.float32(4))], SHAPE, options="MulOptions")],
            SHAPE, "int32", "CastOptions")

    def graph(self, code: str | None) -> int:
        """The number of one that has an operator, or gives the second of its tensors."""
        made = TfliteNetwork()
        made.inputs = [made.tensor(()), made.tensor(())]
        made.outputs = [made.add(code, made.inputs, [made.tensor(())])
                        if code else made.inputs[1]]
        self.graphs.append(made)
        return len(self.graphs)

    def some(self, source: int, *shape: int) -> int:
        """As many of its numbers, in a shape of their own."""
        kind, count = self.tensors[source]["dtype"], int(np.prod(shape))
        flat = self.gives("RESHAPE", [source, self.whole(60)], (60,), kind)
        first = self.gives("SLICE", [flat, self.whole(0), self.whole(count)], (count,), kind,
                           "SliceOptions")
        return self.gives("RESHAPE", [first, self.whole(*shape)], shape, kind)


def scattered() -> Calling:
    """Rows, single numbers and windows, of which some lie behind the end."""
    n = Calling()
    for code in (None, "ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"):
        combined = n.graph(code and f"STABLEHLO_{code}")
        forms = (
                (n.some(n.places, 5, 1), n.some(n.y, 5, 10), dict(
                    UpdateWindowDims=[1], InsertedWindowDims=[0], ScatterDimsToOperandDims=[0],
                    IndexVectorDim=1)),
                (n.some(n.places, 5), n.some(n.y, 6, 5), dict(
                    UpdateWindowDims=[0], InsertedWindowDims=[1], ScatterDimsToOperandDims=[1],
                    IndexVectorDim=1)),
                (n.some(n.places, 2, 7), n.some(n.y, 7), dict(
                    InsertedWindowDims=[0, 1], ScatterDimsToOperandDims=[1, 0],
                    IndexVectorDim=0)),
                (n.some(n.places, 2, 2), n.some(n.y, 3, 2, 4), dict(
                    UpdateWindowDims=[0, 2], ScatterDimsToOperandDims=[0, 1],
                    IndexVectorDim=1)),
                (n.constant(np.array([[4], [0]], np.int32)), n.some(n.y, 2, 10), dict(
                    UpdateWindowDims=[1], InsertedWindowDims=[0], ScatterDimsToOperandDims=[0],
                    IndexVectorDim=1)))
        for places, updates, fields in forms if code in (None, "ADD") else forms[2:3]:
            n.gives("STABLEHLO_SCATTER", [n.rows, places, updates], (6, 10),
                    options="StablehloScatterOptions",
                    UpdateComputationSubgraphIndex=combined, **fields)
    return n


def gathered() -> Calling:
    """Parts that are moved into the tensor, with their axes at the front, at the end and apart."""
    n = Calling()
    for places, shape, fields in (
            (n.some(n.places, 5, 1), (5, 10), dict(
                OffsetDims=[1], CollapsedSliceDims=[0], StartIndexMap=[0], IndexVectorDim=1,
                SliceSizes=[1, 10])),
            (n.some(n.places, 4), (6, 4), dict(
                OffsetDims=[0], CollapsedSliceDims=[1], StartIndexMap=[1], IndexVectorDim=1,
                SliceSizes=[6, 1])),
            (n.some(n.places, 2, 5), (2, 5, 3), dict(
                OffsetDims=[0, 2], StartIndexMap=[1, 0], IndexVectorDim=0, SliceSizes=[2, 3]))):
        n.gives("STABLEHLO_GATHER", [n.rows, places], shape, options="StablehloGatherOptions",
                **fields)
    return n


def windows() -> Calling:
    """Far apart, beyond the edges, between numbers, and long."""
    n = Calling()
    for code, start in (("ADD", 0), ("ADD", 2), ("MAXIMUM", -np.inf), ("MINIMUM", 0.5),
                        ("MULTIPLY", 1)):
        combined, first = n.graph(f"STABLEHLO_{code}"), n.constant(np.float32(start))
        forms = (
                ((5, 9), dict(WindowDimensions=[2, 2])),
                ((3, 4), dict(WindowDimensions=[3, 4], WindowStrides=[2, 3],
                              Padding=[1, 1, 2, 1])),
                ((4, 4), dict(WindowDimensions=[2, 3], WindowDilations=[2, 3])),
                ((9, 9), dict(WindowDimensions=[3, 2], BaseDilations=[2, 1])),
                ((4, 8), dict(WindowDimensions=[2, 1], Padding=[-1, 0, 0, -2])),
                ((6, 10), dict(WindowDimensions=[1, 10], Padding=[0, 0, 9, 0])),
                ((6, 5), dict(WindowDimensions=[1, 11], WindowStrides=[1, 2],
                              Padding=[0, 0, 5, 4])))
        for shape, fields in forms if start == 0 else forms[1:2]:
            for name in ("WindowStrides", "WindowDilations", "BaseDilations"):
                fields.setdefault(name, [1, 1])
            n.gives("STABLEHLO_REDUCE_WINDOW", [n.rows, first], shape,
                    options="StablehloReduceWindowOptions", BodySubgraphIndex=combined,
                    **{"Padding": [0, 0, 0, 0], **fields})
    return n


def others() -> Calling:
    n = Calling()
    for code in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"):
        n.gives(f"STABLEHLO_{code}", [n.x, n.y], SHAPE)
    value = n.constant(np.float32(-3))
    for shape, low, high, between in (((9, 11), (1, 0), (2, 1), (0, 0)),
                                      ((13, 27), (2, -1), (0, 0), (1, 2)),
                                      ((4, 8), (-1, -2), (-1, 0), (0, 0))):
        n.gives("STABLEHLO_PAD", [n.rows, value], shape, options="StablehloPadOptions",
                EdgePaddingLow=list(low), EdgePaddingHigh=list(high),
                InteriorPadding=list(between))
    n.gives("DILATE", [n.rows, n.whole(2, 3), value], (11, 28), options="DilateOptions")
    n.gives("STABLEHLO_SHIFT_LEFT", [n.places, n.places], SHAPE, "int32",
            "StablehloShiftLeftOptions")
    inner = TfliteNetwork()
    inner.inputs = [inner.tensor((6, 10)), inner.tensor((6, 10))]
    inner.outputs = [inner.add("TANH", [inner.binary("MUL", *inner.inputs)],
                               [inner.tensor((6, 10))])]
    n.graphs.append(inner)
    n.gives("STABLEHLO_COMPOSITE", [n.rows, n.others], (6, 10),
            options="StableHLOCompositeOptions", Name="ours.tanh", CompositeAttributes=b"\0",
            DecompositionSubgraphIndex=len(n.graphs))
    n.gives("RANK", [n.x], (), "int32")
    shape = n.gives("BROADCAST_ARGS", [n.whole(6, 1), n.whole(2, 1, 10)], (3,), "int32")
    n.gives("BROADCAST_TO", [n.rows, shape], (2, 6, 10))
    return n


def test_they_give_what_litert_gives(tmp_path):
    gives_what_litert_gives({"scattered": scattered(), "gathered": gathered(),
                             "windows": windows(), "others": others()}, tmp_path)


def sorting(key: int, direction: int, axis: int = 2, both: bool = False) -> Calling:
    """x and y along an axis, by the numbers of one or of both."""
    n, order = Calling(), TfliteNetwork()
    order.inputs = [order.tensor(()) for _ in range(4)]
    pairs = [order.inputs[:2], order.inputs[2:]]
    pair = ([order.add("ADD", list(sides), [order.tensor(())]) for sides in zip(*pairs)]
            if both else pairs[key])
    order.outputs = [order.add("STABLEHLO_COMPARE", pair, [order.tensor((), "bool")],
                               "StablehloCompareOptions", ComparisonDirection=direction)]
    n.graphs.append(order)
    n.outputs = [n.tensor(SHAPE), n.tensor(SHAPE)]
    n.add("STABLEHLO_SORT", [n.x, n.y], n.outputs, "StablehloSortOptions", Dimension=axis,
          ComparatorSubgraphIndex=1)
    return n


def test_sorted_by_one_of_several_tensors(tmp_path):
    answers = compile_many({"least": sorting(0, 5), "largest": sorting(1, 3, axis=1),
                            "sums": sorting(0, 5, both=True)}, tmp_path)
    assert "by more than whether a number of one tensor" in answers.pop("sums")["error"]
    assert not {name: a["error"] for name, a in answers.items() if "error" in a}
    random = np.random.default_rng(3)
    x, y = (random.standard_normal(SHAPE).astype(np.float32) for _ in "xy")
    for name, axis, order in (("least", 2, np.argsort(x, 2)), ("largest", 1, np.argsort(-y, 1))):
        for made, given in zip(outputs_of(tmp_path / name, {"x": x, "y": y}), (x, y)):
            np.testing.assert_array_equal(made, np.take_along_axis(given, order, axis))
        # Which only TVM's own runtime has.
        assert b"tvm.contrib" not in (tmp_path / name / "model.so").read_bytes()
