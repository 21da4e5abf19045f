"""The table of single layers: which node computes which layer, and what is made of their times."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.layers import NetworkLayer, read_layers
from kernels.matching import match_others, match_ours
from kernels.onnxruntime_profile import nodes_of_events
from kernels.profiles import Node, ProfileFailed, fastest, nodes_of_onnxruntime, nodes_of_profile
from kernels.table import as_markdown, make_table
from small_networks import save_network


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> list[NetworkLayer]:
    path = tmp_path_factory.mktemp("layers") / "net.onnx"
    shapes = {"a": (24, 3, 3, 3), "b": (24, 1, 3, 3), "p": (24, 24, 1, 1), "m": (5, 24), "n": (5,)}
    return read_layers(save_network(path, """(float[1,3,16,16] x) => (float[1,5] y) {
        [first] c = Conv<strides=[2,2],pads=[1,1,1,1]>(x, a)
        r = Relu(c)
        [depth] d = Conv<group=24,pads=[1,1,1,1]>(r, b)
        [point] q = Conv(d, p)
        s = Add(q, r)
        g = GlobalAveragePool(s)
        f = Flatten(g)
        [last] y = Gemm<transB=1>(f, m, n)
    }""", {name: np.ones(shape, np.float32) for name, shape in shapes.items()}))


def test_layers_of_a_network(layers):
    assert [layer.name for layer in layers] == ["first", "depth", "point", "last"]
    assert [layer.multiply_adds for layer in layers] == [
        8 * 8 * 24 * 27, 8 * 8 * 24 * 9, 8 * 8 * 24 * 24, 24 * 5]
    assert [layer.reads for layer in layers] == [set(), {0}, {1}, {0, 2}]
    assert [str(layer) for layer in layers] == [
        "3×16×16 → 24×8×8, 3×3/2", "24×8×8 → 24×8×8, 3×3 depthwise", "24×8×8 → 24×8×8, 1×1",
        "24 → 5"]


def our_node(multiply_adds: int | None, output: tuple[int, ...], microseconds: float = 1.0) -> Node:
    return Node(f"node{multiply_adds}", "fused", output, (), microseconds, multiply_adds,
                {"kernel": "direct", "tile": [14, 2]})


_BLOCKED = (1, 2, 8, 8, 16)


def test_a_node_of_one_layer_each(layers):
    nodes = [our_node(layer.multiply_adds, (1, 5) if layer.is_dense else _BLOCKED)
             for layer in layers]
    assert match_ours(nodes, layers) == {0: (0,), 1: (1,), 2: (2,), 3: (3,)}


def test_a_node_that_joins_layers(layers):
    joined = layers[1].multiply_adds + layers[2].multiply_adds
    nodes = [our_node(None, (1, 2, 8, 8, 16)), our_node(layers[0].multiply_adds, _BLOCKED),
             our_node(joined, _BLOCKED), our_node(120, (1, 5))]
    assert match_ours(nodes, layers) == {1: (0,), 2: (1, 2), 3: (3,)}


def test_a_depthwise_node_may_count_what_fills_its_blocks(layers):
    filled = 8 * 8 * 32 * 9
    assert match_ours([our_node(filled, _BLOCKED)], layers) == {0: (1,)}
    # One that is counted exactly comes first.
    both = [our_node(filled, _BLOCKED), our_node(layers[1].multiply_adds, _BLOCKED)]
    assert match_ours(both, layers) == {1: (1,)}


@pytest.mark.parametrize(("multiply_adds", "output"), [
    (8 * 8 * 24 * 27 + 1, _BLOCKED), (8 * 8 * 24 * 27, (1, 2, 16, 16, 16)), (120, (1, 6)),
    (120, _BLOCKED)])
def test_what_is_no_layer_of_the_network(layers, multiply_adds, output):
    assert match_ours([our_node(multiply_adds, output)], layers) == {}


def other(operator: str, output: tuple[int, ...], weight: tuple[int, ...], us: float = 1.0) -> Node:
    return Node(operator, operator, output, weight, us)


def test_nodes_of_tvms_schedules(layers):
    nodes = [
        other("fused_layout_transform", (1, 1, 16, 16, 3), ()),
        # 24 channels became 32, two blocks of 16.
        other("fused_nn_contrib_conv2d_NCHWc_add_nn_relu", _BLOCKED, (2, 1, 3, 3, 3, 16)),
        other("fused_nn_contrib_conv2d_NCHWc_add", _BLOCKED, (2, 2, 1, 1, 16, 16)),
        other("fused_nn_contrib_depthwise_conv2d_NCHWc_add", _BLOCKED, (2, 1, 3, 3, 1, 16)),
        other("fused_nn_contrib_dense_pack_add", (1, 5), (1, 24, 5))]
    assert match_others(nodes, layers) == {0: 1, 1: 3, 2: 2, 3: 4}


def test_nodes_of_onnxruntime(layers):
    reply = [{"name": "a", "op": "Conv", "inputs": [[1, 3, 16, 16], [32, 3, 3, 3]],
              "outputs": [[1, 32, 8, 8]], "us": 5.0},
             {"name": "p", "op": "Conv", "inputs": [[1, 32, 8, 8], [32, 32, 1, 1]],
              "outputs": [[1, 32, 8, 8]], "us": 6.0},
             {"name": "d", "op": "Conv", "inputs": [[1, 32, 8, 8], [32, 1, 3, 3]],
              "outputs": [[1, 32, 8, 8]], "us": 7.0},
             {"name": "g", "op": "GlobalAveragePool", "inputs": [[1, 32, 8, 8]],
              "outputs": [[1, 32, 1, 1]], "us": 1.0},
             {"name": "m", "op": "Gemm", "inputs": [[1, 24], [5, 24], [5]], "outputs": [[1, 5]],
              "us": 2.0}]
    assert match_others(nodes_of_onnxruntime(reply), layers) == {0: 0, 1: 2, 2: 1, 3: 4}


def test_a_layer_of_another_size_is_none(layers):
    nodes = [other("conv2d", (1, 3, 8, 8, 16), (3, 1, 3, 3, 3, 16)),  # 48 channels
             other("conv2d", (1, 24, 16, 16), (24, 3, 3, 3)),
             other("conv2d", (1, 24, 8, 8), (24, 3, 5, 5)),
             other("max_pool2d", (1, 24, 8, 8), (24, 3, 3, 3))]
    assert match_others(nodes, layers) == {}


def test_nodes_of_a_profile():
    def node(index: int, name: str, family: str = "conv2d", inputs: int = 2) -> dict:
        shapes = [{"shape": [1, 1, 8, 8, 16]}, {"shape": [432]}][:inputs]
        return {"index": index, "name": name, "function": f"fused_{name}", "family": family,
                "inputs": shapes, "outputs": [{"shape": [1, 2, 8, 8, 16]}],
                "time_ms": {"p50": 0.25}}

    profile = {"nodes": [node(2, "soft", inputs=1), node(0, "conv"), node(1, "nop", "view")]}
    graph = {"nodes": [{"name": "x"}, {"name": "conv", "attrs": {
        "multiply_adds": "41472", "kernel": '{"kernel": "planar", "parts": 4}'}},
        {"name": "soft", "attrs": {"func_name": "fused_soft"}}]}
    assert nodes_of_profile(profile, graph) == [
        Node("conv", "fused_conv", _BLOCKED, (432,), 250.0, 41472,
             {"kernel": "planar", "parts": 4}),
        Node("soft", "fused_soft", _BLOCKED, (), 250.0)]


def test_onnxruntimes_events():
    def event(index: int, dur: int, name: str = "conv", cat: str = "Node") -> dict:
        return {"cat": cat, "name": f"{name}_kernel_time", "dur": dur, "args": {
            "node_index": str(index), "op_name": "Conv",
            "input_type_shape": [{"float": [1, 3, 8, 8]}, {"float": [4, 3, 1, 1]}],
            "output_type_shape": [{"float": [1, 4, 8, 8]}]}}

    events = [event(0, 900), event(1, 800, "next"), {"cat": "Session", "name": "run", "dur": 5}]
    for dur in (30, 10, 20):
        events += [event(0, dur), event(1, 2 * dur, "next")]
    nodes = nodes_of_events(events, 1)
    assert [(n["name"], n["us"]) for n in nodes] == [("conv", 20), ("next", 40)]
    assert nodes[0]["inputs"] == [[1, 3, 8, 8], [4, 3, 1, 1]]


def test_a_layers_time_is_its_fastest_rounds():
    first, second = [[other("a", (1, 1), (), us), other("b", (1, 1), (), 10 - us)] for us in (3, 4)]
    assert [node.microseconds for node in fastest([first, second])] == [3, 6]
    with pytest.raises(ProfileFailed, match="different nodes"):
        fastest([first, second[:1]])


def make_nodes(layers: list[NetworkLayer]) -> tuple[list[Node], dict[str, list[Node]]]:
    joined = layers[1].multiply_adds + layers[2].multiply_adds
    ours = [our_node(layers[0].multiply_adds, _BLOCKED, 2.0), our_node(joined, _BLOCKED, 1.0),
            our_node(None, (1, 24), 0.5), our_node(120, (1, 5), 0.25)]
    stock = [other("conv2d", _BLOCKED, (2, 1, 3, 3, 3, 16), 4.0),
             other("conv2d", _BLOCKED, (2, 1, 3, 3, 1, 16), 1.5),
             other("conv2d", _BLOCKED, (2, 2, 1, 1, 16, 16), 1.0),
             other("mean", (1, 24), (), 0.75), other("dense", (1, 5), (5, 24), 0.25)]
    return ours, {"stock": stock, "onnxruntime": stock[:1]}


def test_a_table(layers):
    ours, others = make_nodes(layers)
    table = make_table(layers, ours, others, peak=50.0)
    assert [row.layers for row in table.rows] == [("first",), ("depth", "point"), ("last",)]
    assert [row.microseconds for row in table.rows] == [
        {"ours": 2.0, "stock": 4.0, "onnxruntime": 4.0}, {"ours": 1.0, "stock": 2.5},
        {"ours": 0.25, "stock": 0.25}]
    assert table.rest == {"ours": 0.5, "stock": 0.75, "onnxruntime": 0}
    assert table.totals() == {"ours": 3.75, "stock": 7.5, "onnxruntime": 4.0}
    # 41 472 multiply-adds in 2 µs.
    assert table.rows[0].gflop_per_s == pytest.approx(41.472)
    assert table.rows[0].peak_share == pytest.approx(41.472 / 50)
    text = as_markdown("small", 2, table)
    assert ("| 3×16×16 → 24×8×8, 3×3/2 | direct tile=[14,2] | 0.04 | 2.0 | 4.0 | 4.0 | 0.50 | 41 | "
            "83% |") in text.splitlines()
    assert "| all |  |  | 3.8 | 7.5 | 4.0 | 0.50 |  |  |" in text.splitlines()
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1
    assert "Winograd" not in text


def test_winograd_is_marked(layers):
    ours = [Node("w", "w", _BLOCKED, (), 1.0, layers[0].multiply_adds, {"kernel": "winograd"})]
    text = as_markdown("small", 1, make_table(layers, ours, {}, None))
    assert "| 83 |  † |" in text and "more than the peak is possible" in text


def test_what_fills_blocks_is_no_work(layers):
    table = make_table(layers, [our_node(8 * 8 * 32 * 9, _BLOCKED)], {}, None)
    assert table.rows[0].multiply_adds == layers[1].multiply_adds
