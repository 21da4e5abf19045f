"""This machine, on which plans are run while a network of 8 bits is made, for whatever target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tvm
from tvm.contrib import graph_executor

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import Plan
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.tensors import Tensor


@dataclass(frozen=True)
class Host:
    target: tvm.target.Target
    build: Callable
    """(module, target) -> the compiled factory."""
    tell: Callable[[str], None]
    """Told of what is at work."""

    def executor(self, plan: Plan, isa: Isa,
                 outputs: list[Tensor] | None = None) -> graph_executor.GraphModule:
        """What runs the plan, of whose instruction set any CPU can run the C code."""
        # Threads that wait for each other at every layer make a busy machine crawl.
        tvm.get_global_func("runtime.config_threadpool")(1, 1)
        module, layers = write_module(plan, isa, outputs)
        with operators.loaded(layers.values(), self.target):
            factory = self.build(module, self.target)
        return graph_executor.GraphModule(factory["default"](tvm.cpu(0)))
