"""Tensors that a network makes of few numbers: constants, ranges, the random ones of training."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.onnx_repair.refusal import Refused, data_dependent
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast
from run_model_tools.onnx_repair.stored_tensors import spread
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("Constant")
def constant(walk: Walk, node: Node) -> Value:
    attrs = node.attrs
    if "value" in attrs:
        return walk.graph.initializer(attrs["value"])
    for key, dtype in (("value_float", np.float32), ("value_floats", np.float32),
                       ("value_int", np.int64), ("value_ints", np.int64)):
        if key in attrs:
            return walk.graph.constant(attrs[key], dtype)
    if "sparse_value" in attrs:
        return walk.graph.constant(spread(attrs["sparse_value"]))
    raise Refused("it is a constant of strings", "export the network without it.", "strings")


@rule("ConstantOfShape")
def constant_of_shape(walk: Walk, node: Node) -> Value | Chosen:
    from run_model_tools.onnx_repair.rules.chosen.axes import for_each

    value = (numpy_helper.to_array(node.attrs["value"]).reshape(()) if "value" in node.attrs
             else np.zeros((), np.float32))
    if node.tensor(0).array is None and (rows := for_each(
            walk, walk.graph.constant(value), node.tensor(0))) is not None:
        return rows
    extents = node.ints(0, "the shape") or []
    if np.prod(extents) * value.itemsize <= 1 << 18 and not walk.graph.kept:
        return walk.graph.constant(np.full(extents, value))
    # What is large is not written into the model.
    return walk.graph.op("Expand", walk.graph.constant(value), np.array(extents, np.int64))


@rule("EyeLike")
def eye_like(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    dtype = helper.tensor_dtype_to_np_dtype(node.attrs.get("dtype", x.elem_type))
    rows, columns = x.shape
    if walk.is_open and not x.is_constant:
        graph = walk.graph
        diagonal = graph.op("Unsqueeze", graph.counting(rows), np.array([1]))
        if node.attrs.get("k", 0):
            diagonal = graph.op("Add", diagonal, node.attrs["k"])
        return cast(walk, graph.op("Equal", graph.counting(columns), diagonal),
                    helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    return walk.graph.constant(np.eye(rows, columns, node.attrs.get("k", 0), dtype))


@rule("Range", ignored=("stash_type",))
def range_rule(walk: Walk, node: Node) -> Value | Chosen:
    from run_model_tools.onnx_repair.rules.chosen.places import every_place

    if (node.ints(0, "the begin"), node.ints(2, "the step")) == ([0], [1]) and (
            rows := every_place(walk, node.tensor(1))) is not None:
        return rows
    start, limit, step = (node.constant(index, "a bound") for index in range(3))
    if not walk.graph.kept or start is None or limit is None or step is None or not step:
        raise data_dependent("its length")
    graph = walk.graph
    count = max(0, int(np.ceil((limit.item() - start.item()) / step.item())))
    places = cast(walk, graph.counting(count), node.tensor(0).elem_type)
    # What depends on open extents among these is written as operators on extents.
    if step.item() != 1 or node.tensor(2).varies:
        places = graph.op("Mul", places, node.tensor(2))
    if start.item() != 0 or node.tensor(0).varies:
        places = graph.op("Add", places, node.tensor(0))
    return places


@rule("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
      "RandomUniformLike")
def random_numbers(walk: Walk, node: Node) -> Value:
    raise Refused("its result is random, and compiled code gives the same for the same inputs",
                  "make the noise an input of the network, or end it before (compile_model "
                  "--outputs).", "random")


@rule("Dropout")
def dropout(walk: Walk, node: Node) -> list:
    """Nothing, when a network is used; in training it would be random."""
    x = node.tensor(0)
    training = node.constant(2, "whether it trains") if node.opset >= 12 else None
    ratio = node.constant(1, "its ratio") if node.opset >= 12 else None
    if training is not None and training.item() and (ratio is None or ratio.item()):
        raise Refused("it is to drop values at random, which is for training",
                      "export the network for inference (model.eval()).", "random")
    mask_type = TensorProto.BOOL if node.opset >= 10 else x.elem_type
    mask = np.ones(x.shape, helper.tensor_dtype_to_np_dtype(mask_type))
    return [x, walk.graph.constant(mask) if node.outputs > 1 and node.wanted[1] else None]
