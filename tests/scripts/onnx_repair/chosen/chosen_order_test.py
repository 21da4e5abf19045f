"""The largest of chosen rows, as detectors go on with them, held to ONNX Runtime."""

from __future__ import annotations

import pytest
from chosen_rows import BEST, CHOSEN, model, same

from run_model_tools.onnx_repair.repair import counted_outputs


@pytest.mark.parametrize("nodes, outputs", [
    (BEST + "rows = Gather(c, order)", "best order rows"),
    (BEST + "rows = Gather(c, order) w = Sigmoid(rows) p = Add(order, one)", "w p"),
    (CHOSEN + """column = GatherND(flat, t) best, order = TopK(column, n) rows = Gather(c, order)
        zeros = Mul(order, minus) ones = Sub(zeros, one) last = Gather(rows, ones)""", "last"),
    (CHOSEN + """column = GatherND(flat, t) zero_ = CastLike(zero, flat) u = Div(column, zero_)
        v = Neg(u) most, first = TopK(v, n) least, same = TopK<largest = 0>(u, n)""",
     "most first least same")])
def test_the_largest_ones(nodes, outputs):
    same(model(nodes, outputs.split()))


def test_outputs_of_as_many_rows_share_their_count():
    ours = same(model(BEST + "rows = Gather(c, order)", ["best", "rows", "c", "k"]))
    assert counted_outputs(ours) == [4, 0, 4, 0, 5, 0, -1, 0]
    assert [v.name for v in ours.graph.output][4:] == ["rows of best", "rows of c"]


OF_CLASS = """scores{c} = Gather<axis = 1>(x, class{c}) keep{c} = Greater(scores{c}, least)
    z{c} = NonZero(keep{c}) t{c} = Transpose<perm = [1, 0]>(z{c})
    column{c} = GatherND(scores{c}, t{c}) c{c} = GatherND(x, t{c}) s{c} = Shape(column{c})
    count{c} = Concat<axis = 0>(three, s{c}) k{c} = ReduceMin<keepdims = 1>(count{c})
    best{c}, order{c} = TopK(column{c}, k{c}) rows{c} = Gather(c{c}, order{c})
    each{c} = Shape(best{c}) label{c} = ConstantOfShape<value = int64[1] {{{c}}}>(each{c}) """


@pytest.mark.parametrize("classes", [[0, 1, 2, 3], [3, 1, 0, 2, 1], [2, 0, 1]])
def test_what_is_chosen_class_by_class_is_chosen_at_once(classes):
    """As torchvision's SSD is exported, with a branch for each of 90 classes."""
    nodes = "three = Constant<value_ints = [3]>() least = Constant<value_float = 0.0>() "
    nodes += "".join(
        f"class{c} = Constant<value_int = {c}>() " + OF_CLASS.format(c=c) for c in set(classes))
    nodes += "".join(f"{joined} = Concat<axis = 0>({', '.join(f'{one}{c}' for c in classes)}) "
                     for joined, one in (("b", "best"), ("r", "rows"), ("l", "label")))
    ours = same(model(nodes, "brl", rows=400))
    assert sum(node.op_type == "TopK" for node in ours.graph.node) == (
        1 if len(classes) > 3 else 3)
