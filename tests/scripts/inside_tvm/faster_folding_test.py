"""The faster constant folding gives what TVM gives."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from run_model_tools import tvm_process
from run_model_tools.inside_tvm.faster_folding import evaluate, transform_layout
from run_model_tools.params_file import read_params
from small_networks import save_network, weights


def save_block(path):
    """A convolution, a depthwise and a grouped one, each normalised; a shuffle; a sum."""
    found = {}
    for i, (name, shape) in enumerate({"first": (16, 3, 3, 3), "depth": (16, 1, 3, 3),
                                       "grouped": (16, 4, 3, 3)}.items()):
        found |= weights(3 + i, **{f"{name}_w": shape}, **{f"{name}_{part}": (16,)
                                                           for part in "gbmv"})
        found[f"{name}_v"] = np.abs(found[f"{name}_v"])
    norms = {name: f"BatchNormalization({name}_c, {name}_g, {name}_b, {name}_m, {name}_v)"
             for name in ("first", "depth", "grouped")}
    save_network(path, f"""(float[1,3,8,8] x) => (float[1,16,8,8] y) {{
        first_c = Conv<pads=[1,1,1,1]>(x, first_w)
        first_n = {norms["first"]}
        first = Relu(first_n)
        depth_c = Conv<pads=[1,1,1,1],group=16>(first, depth_w)
        depth = {norms["depth"]}
        grouped_c = Conv<pads=[1,1,1,1],group=4>(depth, grouped_w)
        grouped_n = {norms["grouped"]}
        grouped = Relu(grouped_n)
        s1 = Reshape(grouped, apart)
        s2 = Transpose<perm=[0,2,1,3,4]>(s1)
        s3 = Reshape(s2, together)
        y = Add(s3, first)
    }}""", {**found, "apart": [1, 4, 4, 8, 8], "together": [1, 16, 8, 8]}, ir_version=7)


def save_attention(path):
    """What the rules of SimplifyExpr are for, as exporters write it in transformers."""
    save_network(path, """(float[1,16,8] x, int32[1,16,8] i) => (float[8,1,16] y, int32[1,16,8] z) {
        m = ReduceMean<axes=[-1]>(x)
        d = Sub(x, m)
        s = Mul(d, d)
        v = ReduceMean<axes=[-1]>(s)
        e = Add(v, eps)
        r = Sqrt(e)
        n = Div(d, r)
        a = Mul(n, g)
        b = Add(a, h)
        c = Add(b, h)
        p = Mul(c, k)
        q = Mul(p, one)
        t = Transpose<perm=[0,2,1]>(q)
        u = Transpose<perm=[2,1,0]>(t)
        flat = Reshape(u, one_row)
        wide = Reshape(flat, apart)
        twice = Add(wide, wide)
        back = Transpose<perm=[0,1,2]>(twice)
        turned = Transpose<perm=[1,0,2]>(back)
        y = Transpose<perm=[1,0,2]>(turned)
        long = Cast<to=7>(i)
        z = Cast<to=6>(long)
    }""", {**weights(5, g=(8,), h=(8,), k=(8,)), "eps": np.float32(1e-5), "one": np.float32(1),
           "one_row": [1, 128], "apart": [8, 1, 16]}, ir_version=7)


@pytest.mark.parametrize("save, target", [
    (save_block, "llvm -mcpu=x86-64-v2"), (save_attention, "llvm -mcpu=x86-64-v2"),
    pytest.param(save_block, "llvm -mtriple=aarch64-linux-gnu -device=arm_cpu -mattr=+neon",
                 marks=pytest.mark.full)])
def test_files_are_those_of_tvm_alone(tmp_path, save, target):
    save(tmp_path / "block.onnx")
    for fast in (True, False):
        folder = tmp_path / str(fast)
        folder.mkdir()
        tvm_process.call("compile", None, onnx=str(tmp_path / "block.onnx"), target=target,
                         shapes={}, opt_level=3, directory=str(folder), fast=fast,
                         cc="aarch64-linux-gnu-g++" if "aarch64" in target else "g++")
    library, graph = (tmp_path / "True" / name for name in ("model.so", "model.json"))
    assert library.read_bytes() == (tmp_path / "False" / "model.so").read_bytes()
    described = json.loads(graph.read_text())
    # TVM alone forgets early on what was made of which node.
    names = [node["attrs"].pop("onnx_nodes", None) for node in described["nodes"]
             if node["op"] == "tvm_op"]
    assert any(names)
    assert described == json.loads((tmp_path / "False" / "model.json").read_text())
    ours, theirs = (read_params((tmp_path / made / "model.params").read_bytes())
                    for made in ("True", "False"))
    assert ours and ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert (tensor.dtype, tensor.shape) == (theirs[name].dtype, theirs[name].shape)
        assert bytes(tensor.data) == bytes(theirs[name].data)


def test_blocks_of_channels_are_found_by_their_index():
    source = np.arange(8 * 6 * 2 * 3).reshape(8, 6, 2, 3)
    blocked = transform_layout(source, "OIHW", "OIHW2i4o")
    assert blocked.shape == (2, 3, 2, 3, 2, 4)
    for o, i, h, w in np.ndindex(source.shape):
        assert blocked[o // 4, i // 2, h, w, i % 2, o % 4] == source[o, i, h, w]
    assert transform_layout(source, "OIHW",
                            "HWIO").tolist() == source.transpose(2, 3, 1, 0).tolist()


@pytest.mark.parametrize("source, target", [
    ("OIHW", "OIHW5o"), ("OIHW4o", "OIHW"), ("OIHW", "OIHW2i2i"), ("OIHW", "OIH"),
    ("OIHW", "OIHW4c"), ("NCHWD", "NCHWD"), ("OIHW", "OIHWo"), ("OIHW", "OIHW4o_")])
def test_other_layouts_are_left_to_tvm(source, target):
    assert transform_layout(np.zeros((8, 6, 2, 3)), source, target) is None


def test_only_what_rounds_alike_is_evaluated():
    a, b = np.float32([1, 2]), np.float32([3, 0])
    assert evaluate("divide", None, [a, b]).tolist() == [np.float32(1) / np.float32(3), np.inf]
    assert evaluate("exp", None, [a]) is None
    assert evaluate("add", None, [a.astype(np.float16)] * 2) is None
    assert evaluate("add", None, [a, a.astype(np.float64)]) is None
    attrs = SimpleNamespace(axis=-1, num_newaxis=2)
    assert evaluate("expand_dims", attrs, [a]).shape == (2, 1, 1)


def test_conditions_of_loops_are_evaluated():
    """Of whole numbers and flags; floats are left to TVM, whose NaNs are its own."""
    a, b = np.array([1, 2, 3], np.int32), np.array([2, 2, 2], np.int32)
    below = evaluate("less", None, [a, b])
    assert below.dtype == np.bool_ and below.tolist() == [True, False, False]
    assert evaluate("equal", None, [a, b]).tolist() == [False, True, False]
    assert evaluate("logical_and", None, [below, ~below]).tolist() == [False] * 3
    assert evaluate("logical_and", None, [a, b]) is None
    assert evaluate("less", None, [a.astype(np.float32), b.astype(np.float32)]) is None
