"""Which kernel computes a layer, with which parameters."""

from __future__ import annotations

from types import ModuleType

from run_model_kernels import (choices, dense, depthwise, direct, grouped, inverted_residual, planar,
                               pointwise, pooling, winograd)
from run_model_kernels.convolution import Convolution
from run_model_kernels.isa import Isa
from run_model_kernels.layer import Layer

# In the order of preference where nothing was measured.
KERNELS: dict[str, ModuleType] = {
    "planar": planar, "pointwise": pointwise, "depthwise": depthwise, "winograd": winograd,
    "direct": direct, "grouped": grouped}


def options(conv: Convolution, isa: Isa) -> list[tuple[str, dict[str, object]]]:
    """All that can compute a convolution, best guess first: (kernel, parameters)."""
    return [(name, parameters) for name, kernel in KERNELS.items()
            for parameters in kernel.options(conv, isa)]


def can_convolve(conv: Convolution, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return any(kernel.options(conv, isa) for kernel in KERNELS.values())


def can_pool(pool: pooling.Pooling, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return bool(pooling.options(pool, isa))


def can_multiply(layer: dense.Dense, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return bool(dense.options(layer, isa))


def chosen(conv: Convolution, isa: Isa) -> tuple[str, dict[str, object]]:
    """What was measured best for such a layer (kernels/choices), if it is still offered, or the guess."""
    offered = options(conv, isa)
    measured = choices.find(conv, isa)
    return measured if measured in offered else offered[0]


def make_convolution(conv: Convolution, isa: Isa) -> Layer:
    """The layer, with the kernel that was measured best or, where none was, guessed."""
    name, parameters = chosen(conv, isa)
    return KERNELS[name].make(conv, isa, **parameters)


def make_fused(block: inverted_residual.InvertedResidual, isa: Isa) -> Layer:
    """The layer of convolutions that are computed together."""
    return inverted_residual.make(block, isa, **inverted_residual.options(block, isa)[0])


def make_pooling(pool: pooling.Pooling, isa: Isa) -> Layer:
    """The layer of a pooling."""
    return pooling.make(pool, isa, **pooling.options(pool, isa)[0])


def make_dense(layer: dense.Dense, isa: Isa) -> Layer:
    """The layer of a fully connected layer."""
    return dense.make(layer, isa, **dense.options(layer, isa)[0])
