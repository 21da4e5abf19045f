"""Whole small networks with our kernels through Relax, in TVM's virtual machine, against ONNX
Runtime."""

from __future__ import annotations

import pytest

from networks_test import LEVEL, check_outputs, compile_networks
from onnx_matrices import NETWORKS as MATRIX_NETWORKS
from onnx_networks import NETWORKS

pytestmark = pytest.mark.skipif(LEVEL < "x86-64-v3", reason="this CPU is no x86-64-v3")


# The kernels are Relay's, which networks_test tries: what a change needs to see here is that layers
# find them.
FEW = ("activations", "shuffled_units", "encoder_with_norms_first", "recurrent_with_kernels")


@pytest.mark.parametrize("which", ["few", pytest.param("others", marks=pytest.mark.slow)])
def test_networks_give_what_onnx_runtime_gives(tmp_path, which):
    models = {name: make() for name, make in (NETWORKS | MATRIX_NETWORKS).items()
              if (name in FEW) == (which == "few")}
    answers = compile_networks(models, tmp_path, "llvm -mcpu=x86-64-v3", "_relax")
    assert {name: a["error"] for name, a in answers.items() if "error" in a} == {}
    # As with Relay, there is a kernel of ours for every layer.
    for name in answers.keys() & set(FEW):
        assert answers[name]["kernels"]["left_to_tvm"] == {}, name
    check_outputs(models, tmp_path, "_relax")
    if which == "few":
        functions = answers["recurrent_with_kernels"]["kernels"]["functions"].values()
        assert {(f["kernel"], f["steps"]) for f in functions if "steps" in f} == {
            ("lstm", 5), ("gru", 5)}


def test_recurrent_layers_are_steps_where_kernels_are_not_wanted(tmp_path):
    models = {"recurrent_with_kernels": MATRIX_NETWORKS["recurrent_with_kernels"]()}
    answers = compile_networks(models, tmp_path, "llvm -mcpu=x86-64-v3", "_relax",
                               kernels="stock")
    assert answers["recurrent_with_kernels"]["kernels"]["method"] == "stock"
    check_outputs(models, tmp_path, "_relax")
