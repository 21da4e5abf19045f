"""The same small network in the forms that a compiled model comes in."""

import numpy as np
from tvm import relay

from .layers import Layers, global_pool
from .registry import NATIVE_TARGET, Network, network, variable, zeros


def _small(rng: np.random.Generator, **options: object) -> Network:
    n, data = Layers(rng), zeros(1, 3, 14, 14)
    x = relay.nn.relu(n.conv_norm(variable("data", data), 8, pad=1))
    return n.network(relay.nn.softmax(n.dense(global_pool(x), 10)), {"data": data}, **options)


#: C has no vectors.
C_SOURCE = {"target": "c", "config": {"tir.disable_vectorize": True}}


@network
def single_file(rng: np.random.Generator) -> Network:
    return _small(rng, package="single_file")


@network
def single_file_without_params(rng: np.random.Generator) -> Network:
    return _small(rng, package="single_file_without_params")


@network
def linked_params(rng: np.random.Generator) -> Network:
    """The weights are data inside the library; the graph has no parameters."""
    return _small(rng, link_params=True)


@network
def target_c(rng: np.random.Generator) -> Network:
    """C source compiled by gcc: calls TVMBackend* by name, without pointer slots."""
    return _small(rng, **C_SOURCE)


@network
def target_c_single_file(rng: np.random.Generator) -> Network:
    return _small(rng, package="single_file", **C_SOURCE)


@network
def target_native(rng: np.random.Generator) -> Network:
    return _small(rng, target=NATIVE_TARGET)


@network
def opt_level_0(rng: np.random.Generator) -> Network:
    return _small(rng, opt_level=0)


@network
def opt_level_1(rng: np.random.Generator) -> Network:
    return _small(rng, opt_level=1)


@network
def without_assertions(rng: np.random.Generator) -> Network:
    """The library has no slot for reporting errors."""
    return _small(rng, config={"tir.disable_assert": True})


@network
def named_module(rng: np.random.Generator) -> Network:
    """Function names and the factory inside the library carry the name instead of "default"."""
    return _small(rng, package="single_file", module_name="classifier")
