"""What the readers see a network as: Relay's expressions, or with a TVM that has none, their like
(relax/nodes.py).  And what writes them: relay/writing.py or relax/writing.py."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import tvm

PREFIX = "run_model."
"""What the names of our operators in Relay begin with."""

HAS_RELAY = find_spec("tvm.relay") is not None

_nodes = import_module("tvm.relay" if HAS_RELAY else "run_model_tools.kernels.relax.nodes")
Expr, Call, Constant, Var = _nodes.Expr, _nodes.Call, _nodes.Constant, _nodes.Var
Tuple, TupleGetItem, Function = _nodes.Tuple, _nodes.TupleGetItem, _nodes.Function
TensorType, TupleType = _nodes.TensorType, _nodes.TupleType
Op = tvm.ir.Op if HAS_RELAY else _nodes.Op

writing = import_module(
    f"run_model_tools.kernels.{'relay' if HAS_RELAY else 'relax'}.writing")


def post_order(body: Any) -> list[Any]:
    """All expressions, each after what it reads."""
    if not HAS_RELAY:
        return _nodes.post_order(body)
    order: list[Any] = []
    _nodes.analysis.post_order_visit(body, order.append)
    return order
