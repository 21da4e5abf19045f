"""What a network of the differential tests is, and the list of all of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tvm
from tvm import relay

#: The oldest x86-64 level that compilers are asked for in practice.
BASELINE_TARGET = "llvm -mcpu=x86-64-v2"
AVX2_TARGET = "llvm -mcpu=x86-64-v3"
#: The best that the machine at hand can do.
NATIVE_TARGET = f"llvm -mcpu={tvm.target.codegen.llvm_get_system_cpu()}"

#: What /proc/cpuinfo has to list.
_CPU_FEATURES = {BASELINE_TARGET: {"ssse3", "sse4_1", "sse4_2", "popcnt"},
                 AVX2_TARGET: {"avx2", "fma", "f16c", "bmi1", "bmi2", "movbe"}}

#: (graph JSON, compiled module, parameters): what relay.build gives.
Built = tuple[str, tvm.runtime.Module, dict[str, tvm.nd.NDArray]]


@dataclass
class Network:
    """A network, how to compile it and what to feed it.

    `inputs` maps each input to an example array: its shape and type say what the input is; two
    further sets of values are drawn from `draw`, or by type where that is None.
    """

    module: tvm.IRModule | None
    inputs: dict[str, np.ndarray]
    params: dict[str, np.ndarray] = field(default_factory=dict)
    target: str = BASELINE_TARGET
    opt_level: int = 3
    config: dict[str, object] = field(default_factory=dict)
    link_params: bool = False
    module_name: str = "default"
    #: "triple", "single_file" (everything inside the library) or "single_file_without_params"
    #: (the graph inside the library, the parameters beside it).
    package: str = "triple"
    #: Keep what every node wrote as well, to compare node by node.
    record_nodes: bool = False
    #: Rewrites the finished graph JSON, for what the compiler itself does not emit.
    edit_graph: Callable[[dict], dict] | None = None
    #: Replaces relay.build altogether.
    build: Callable[[], Built] | None = None
    #: TVM runs it, a runtime without TVM cannot: what the refusal has to name.
    refused: str | None = None
    draw: Callable[[np.random.Generator], dict[str, np.ndarray]] | None = None


_networks: dict[str, Callable[[np.random.Generator], Network]] = {}


def network(make: Callable[[np.random.Generator], Network]):
    """Registers `make` under its function name."""
    if make.__name__ in _networks:
        raise ValueError(f"two networks are called {make.__name__}")
    _networks[make.__name__] = make
    return make


def all_networks() -> list[str]:
    return sorted(_networks)


def make_network(name: str) -> Network:
    """The network `name`; its weights depend on nothing but the name."""
    return _networks[name](np.random.default_rng(zlib.crc32(name.encode())))


def missing_cpu_features(made: Network) -> list[str]:
    """Why the code of this network cannot run here; empty if it can."""
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines()
                 if line.startswith("flags")).split()
    return sorted(_CPU_FEATURES.get(made.target, set()) - set(flags))


def expression_network(outputs: relay.Expr | list[relay.Expr], inputs: dict[str, np.ndarray],
                       **options: object) -> Network:
    """A Network whose function returns `outputs` (a list becomes a tuple)."""
    body = relay.Tuple(outputs) if isinstance(outputs, list) else outputs
    free = {v.name_hint: v for v in relay.analysis.free_vars(body)}
    params = options.get("params", {})
    # Inputs first and in the order given, also those that the body does not use.
    order = [free[name] if name in free else relay.var(name, shape=value.shape,
                                                       dtype=str(value.dtype))
             for name, value in inputs.items()]
    order += [v for name, v in free.items() if name not in inputs]
    missing = [v.name_hint for v in order if v.name_hint not in inputs and
               v.name_hint not in params]
    if missing:
        raise ValueError(f"neither an input nor a parameter: {missing}")
    return Network(tvm.IRModule.from_expr(relay.Function(order, body)), inputs, **options)


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    """An example input: only its shape and type matter."""
    return np.zeros(shape, dtype)


def variable(name: str, example: np.ndarray) -> relay.Var:
    return relay.var(name, shape=example.shape, dtype=str(example.dtype))
