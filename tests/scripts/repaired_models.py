"""Small models, what becomes of them in onnx_repair, and a comparison of both in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import repair
from small_networks import hidden_numbers

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(nodes, inputs, outputs, opset, constants=None, functions=(), imports=()):
    """inputs: {name: (type, shape)}; outputs: {name: type}; constants: {name: array}."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *imports],
                             functions=list(functions), ir_version=8)


def run(model, inputs):
    options = onnxruntime.SessionOptions()
    # Optimised, ONNX Runtime 1.20 takes a Pad and an AveragePool for one that counts no pads.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {**inputs, **hidden_numbers(model)})


def repaired(model, inputs=None, frozen=None, **options):
    made = repair(model, {n: a.shape for n, a in (inputs or {}).items()}, frozen, **options)
    onnx.checker.check_model(made, full_check=True)
    assert made.opset_import[0].version == 18
    return made


def operators(model):
    return [node.op_type for node in model.graph.node]


def check(model, inputs, **options):
    """That both give the same in ONNX Runtime; gives the repaired model."""
    made = repaired(model, inputs, **options)
    for want, have in zip(run(model, inputs), run(made, inputs), strict=True):
        assert want.shape == have.shape and want.dtype == have.dtype
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    return made


def noise(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def whole(dtype, *shape):
    """Whole numbers of all that the type has."""
    kind = np.iinfo(dtype)
    return np.random.default_rng(6).integers(kind.min, kind.max + 1, shape, dtype)


def refusal(model, inputs, frozen=None):
    with pytest.raises(ToolError) as caught:
        repair(model, {n: a.shape for n, a in inputs.items()}, frozen, "net.onnx")
    assert caught.value.code == 4
    return str(caught.value)


def one(op, arrays, opset=18, outputs=1, domain="", constants=(), **attrs):
    """(model, inputs): one node on arrays; those at `constants` are constants, None is left out."""
    names = ["" if a is None else f"i{n}" for n, a in enumerate(arrays)]
    given = {n: a for n, a in zip(names, arrays) if a is not None}
    fixed = {f"i{n}" for n in constants}
    node = helper.make_node(op, names, [f"o{n}" for n in range(outputs)], domain=domain, **attrs)
    model = model_of(
        [node], {n: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                 for n, a in given.items() if n not in fixed},
        {f"o{n}": FLOAT for n in range(outputs)}, opset, {n: given[n] for n in fixed},
        imports=[helper.make_opsetid(domain, 1)] if domain else [])
    for value in model.graph.output:
        value.type.Clear()
    return model, {n: a for n, a in given.items() if n not in fixed}


def matches(*arguments, **options):
    return check(*one(*arguments, **options))


def attention(q, k, v, bias, cap=0.0):
    """As ONNX defines it: the bias comes after the cap, and who sees no key gets zeros."""
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    scores = (np.tanh(scores / cap) * cap if cap else scores) + bias
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.nan_to_num(weights / weights.sum(-1, keepdims=True)) @ v


def attention_step_by_step(q, k, v, state, decay, rate, kind):
    """With a state; all [batch, steps, heads, size]."""
    found = []
    for t in range(q.shape[1]):
        if kind.startswith("gated"):
            state = state * np.exp(decay[:, t, :, :, None])
        u = v[:, t]
        if kind.endswith("delta"):
            u = rate[:, t] * (u - np.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + k[:, t, :, :, None] * u[:, :, None]
        groups = q.shape[2] // k.shape[2]
        found.append(np.einsum("bhkv,bhk->bhv", state.repeat(groups, 1), q[:, t])
                     / np.sqrt(q.shape[-1]))
    return np.stack(found, 1), state


def unless(seen):
    return np.where(seen, 0, -np.inf)
