"""Models that choose rows of their input where the run time finds them, and a comparison of what
the repaired ones give with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
from repaired_models import noise, run

from run_model_tools.compiling.graph_file import with_rows_counted
from run_model_tools.onnx_repair.repair import counted_outputs, repair

ROWS = 8
CONSTANTS = "".join(f"{name} = Constant<value_ints = {numbers}>() " for name, numbers in {
    "zero": [0], "one": [1], "two": [2], "minus": [-1], "four": [4], "five": [5], "eight": [8],
    "end": [1 << 62], "pair": [-1, 2], "square": [-1, 2, 2]}.items())
PLACES = """scores = Gather<axis = 1>(x, zero) flat = Reshape(scores, minus)
    none = CastLike(zero, flat) keep = Greater(flat, none) z = NonZero(keep)
    t = Transpose<perm = [1, 0]>(z) at = Squeeze(t, one) """
CHOSEN = PLACES + "c = Gather(x, at) s = Shape(c) n = Slice(s, zero, one) "
BEST = CHOSEN + """column = GatherND(flat, t) count = Concat<axis = 0>(five, n)
    k = ReduceMin<keepdims = 1>(count) best, order = TopK(column, k) """


def model(nodes, outputs, opset=17, rows=ROWS):
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{rows}, 4] x) => (float[1] none) '
        f"{{ {CONSTANTS} {nodes} }}")
    del made.graph.output[:]
    # Which type each has, ONNX infers.
    kinds = {v.name: v.type for v in onnx.shape_inference.infer_shapes(made).graph.value_info}
    for name in outputs:
        made.graph.output.add(name=name, type=kinds[name])
        made.graph.output[-1].type.tensor_type.ClearField("shape")
    return made


def same(made):
    """That both give the same, for some, all and none of the rows; gives the repaired model."""
    ours = repair(made, {}, counts=True)
    counted = counted_outputs(ours)
    shape = [d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim]
    for seed in range(8):
        x = noise(*shape) if not seed else np.random.default_rng(seed).standard_normal(
            shape).astype(np.float32)
        x = [x, np.abs(x), -np.abs(x)][min(seed, 2)] if seed < 3 else x
        have = with_rows_counted(run(ours, {"x": x}), counted)
        for name, want, one in zip(made.graph.output, run(made, {"x": x}), have, strict=True):
            assert want.shape == one.shape and want.dtype == one.dtype, name.name
            np.testing.assert_allclose(one, want, rtol=1e-5, atol=1e-6)
    return ours
