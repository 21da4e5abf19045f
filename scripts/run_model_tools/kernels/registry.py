"""Which kernel computes a layer, with which parameters."""

from __future__ import annotations

from types import ModuleType

from run_model_tools.kernels import choices
from run_model_tools.kernels.choices import Kernel, Work
from run_model_tools.kernels.convolutions import (
    bfloat16_convolution,
    depthwise,
    direct,
    grouped,
    inverted_residual,
    planar,
    pointwise,
    pooled_convolution,
    winograd,
)
from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.convolutions.inverted_residual import InvertedResidual
from run_model_tools.kernels.convolutions.pooled_convolution import PooledConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.pictures import pooling
from run_model_tools.kernels.products import dense, matmul
from run_model_tools.kernels.programs import rows
from run_model_tools.kernels.programs.program import Program

# By what they compute, in the order of preference where nothing was measured.
_KERNELS: dict[type[Work], dict[str, ModuleType]] = {
    Convolution: {"bfloat16": bfloat16_convolution, "planar": planar, "pointwise": pointwise,
                  "depthwise": depthwise, "winograd": winograd, "direct": direct,
                  "grouped": grouped},
    InvertedResidual: {"inverted_residual": inverted_residual},
    PooledConvolution: {"planar_max_pool": pooled_convolution}}

KERNELS = {name: kernel for kernels in _KERNELS.values() for name, kernel in kernels.items()}
"""All that compute a convolution, or several layers together, by their names."""


def options(work: Work, isa: Isa) -> list[Kernel]:
    """All that can compute a convolution, or several layers together, best guess first."""
    return [(name, parameters) for name, kernel in _KERNELS[type(work)].items()
            for parameters in kernel.options(work, isa)]


def can_convolve(conv: Convolution, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return any(kernel.options(conv, isa) for kernel in _KERNELS[Convolution].values())


def can_pool(pool: pooling.Pooling, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return bool(pooling.options(pool, isa))


def can_multiply(layer: dense.Dense, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return bool(dense.options(layer, isa))


def chosen(work: Work, isa: Isa) -> Kernel:
    """What was measured best for such a layer (choices.py) if it is still offered, or the guess."""
    offered = options(work, isa)
    # Choices were measured in float32.
    measured = None if isa.bfloat16 else choices.find(work, isa)
    return measured if measured in offered else offered[0]


def make_convolution(work: Work, isa: Isa) -> Layer:
    """The layer of a convolution, or of several layers together, with the chosen kernel."""
    name, parameters = chosen(work, isa)
    return KERNELS[name].make(work, isa, **parameters)


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
