"""Which kernel computes a layer, with which parameters."""

from __future__ import annotations

from types import ModuleType

from run_model_tools.kernels import (
    choices,
    dense,
    depthwise,
    direct,
    grouped,
    inverted_residual,
    matmul,
    planar,
    pointwise,
    pooling,
    rows,
    winograd,
)
from run_model_tools.kernels.choices import Kernel
from run_model_tools.kernels.convolution import Convolution
from run_model_tools.kernels.inverted_residual import InvertedResidual
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.programs import Program

# In the order of preference where nothing was measured.
_ONE: dict[str, ModuleType] = {
    "planar": planar, "pointwise": pointwise, "depthwise": depthwise, "winograd": winograd,
    "direct": direct, "grouped": grouped}
_SEVERAL: dict[str, ModuleType] = {"inverted_residual": inverted_residual}

KERNELS = {**_ONE, **_SEVERAL}
"""All that compute a convolution, or several of them together, by their names."""


def options(conv: Convolution | InvertedResidual, isa: Isa) -> list[Kernel]:
    """All that can compute a convolution, or several together, best guess first."""
    kernels = _SEVERAL if isinstance(conv, InvertedResidual) else _ONE
    return [(name, parameters) for name, kernel in kernels.items()
            for parameters in kernel.options(conv, isa)]


def can_convolve(conv: Convolution, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return any(kernel.options(conv, isa) for kernel in _ONE.values())


def can_pool(pool: pooling.Pooling, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return bool(pooling.options(pool, isa))


def can_multiply(layer: dense.Dense, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return bool(dense.options(layer, isa))


def chosen(conv: Convolution | InvertedResidual, isa: Isa) -> Kernel:
    """What was measured best for such a layer (choices.py) if it is still offered, or the guess."""
    offered = options(conv, isa)
    measured = choices.find(conv, isa)
    return measured if measured in offered else offered[0]


def make_convolution(conv: Convolution | InvertedResidual, isa: Isa) -> Layer:
    """The layer of a convolution, or of several, with the chosen kernel."""
    name, parameters = chosen(conv, isa)
    return KERNELS[name].make(conv, isa, **parameters)


def make_pooling(pool: pooling.Pooling, isa: Isa) -> Layer:
    """The layer of a pooling."""
    return pooling.make(pool, isa, **pooling.options(pool, isa)[0])


def make_dense(layer: dense.Dense, isa: Isa) -> Layer:
    """The layer of a fully connected layer."""
    return dense.make(layer, isa, **dense.options(layer, isa)[0])


def make_product(product: matmul.Product, isa: Isa) -> Layer:
    """The layer of a product of matrices."""
    return matmul.make(product, isa, **matmul.options(product, isa)[0])


def make_program(program: Program, isa: Isa) -> Layer:
    """The layer of a program."""
    return rows.make(program, isa, **rows.options(program, isa)[0])
