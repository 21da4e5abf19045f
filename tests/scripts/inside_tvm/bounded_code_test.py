"""No layer compiles for ever: schedules whose code would have no end give way to plain ones."""

from __future__ import annotations

import json

import numpy as np

from small_networks import save_network, weights


def test_a_layer_without_end_gets_a_plain_schedule(command, tmp_path):
    found = weights(8, w=(32, 1, 15), b=(32,), v=(16, 32, 9))
    # Conv1d over a second of sound: LLVM does not finish TVM's schedule of it in ten minutes.
    save_network(tmp_path / "sound.onnx", """(float[1,1,16000] x) => (float[1,16,1000] y) {
        c = Conv<strides=[4],kernel_shape=[15]>(x, w, b)
        r = Relu(c)
        d = Conv<strides=[4],pads=[4,4]>(r, v)
        y = Sigmoid(d)
    }""", {name: array / 8 for name, array in found.items()}, ir_version=7)
    result = command("compile_model", "sound.onnx", "--kernels", "stock", "--target", "x86_64_v3",
                     cwd=tmp_path)
    assert "nn.conv1d (1x1x16000, 32x1x15) has a plain schedule" in result.stdout
    metadata = json.loads((tmp_path / "artifacts/sound/x86_64_v3/metadata.json").read_text())
    assert metadata["plain_schedules"][0]["schedule"] == "conv1d_ncw.x86"
    assert metadata["verification"]["done"]


def test_a_chain_of_roundings_and_maxima_is_not_written_out_many_times(command, tmp_path):
    """Both use what they are made of more than once; TVM fuses chains of them into one loop."""
    before = ["x", *(f"d{i}" for i in range(11))]
    links = "".join(f"""
        s{i} = Sub({value}, step)
        q{i} = QuantizeLinear(s{i}, scale, zero)
        d{i} = DequantizeLinear(q{i}, scale, zero)
        m{i} = Mul(x, c{i})""" for i, value in enumerate(before))
    save_network(tmp_path / "chain.onnx", f"""(float[4,30] x)
            => (float[4,30] d11, float[4,30] most) {{
        {links}
        most = Max({", ".join(f"m{i}" for i in range(12))})
    }}""", {"step": np.float32(0.0625), "scale": np.float32(0.01), "zero": np.uint8(120),
            **{f"c{i}": np.float32(i - 5) for i in range(12)}})
    command("compile_model", "chain.onnx", "--kernels", "stock", "--target", "x86_64_v3",
            cwd=tmp_path)
    metadata = json.loads((tmp_path / "artifacts/chain/x86_64_v3/metadata.json").read_text())
    assert metadata["verification"]["done"]
