"""One number of each channel's plane, against the definition in float64."""

from __future__ import annotations

import numpy as np

from layer_runner import on_machines_with_vectors, run_on_noise
from random_convolutions import EPS
from random_poolings import random_global
from run_model_tools.kernels.pictures import plane_reduction
from run_model_tools.kernels.pictures.plane_reduction import PlaneReduction
from run_model_tools.kernels.programs.expressions import Builder, Expression, Operand


def square() -> Expression:
    builder, x = Builder(), Operand(input=0)
    return builder.finish(builder.apply("multiply", x, x), 1)


def square_of_distance() -> Expression:
    builder = Builder()
    apart = builder.apply("subtract", Operand(input=0), Operand(input=1))
    return builder.finish(builder.apply("multiply", apart, apart), 2)


def random_reduction(rng: np.random.Generator, lanes: int) -> PlaneReduction:
    like = random_global(rng, lanes)
    expression = (None, square(), square_of_distance())[rng.integers(3)]
    return PlaneReduction(str(rng.choice(["sum", "max", "min"])), like.input_shapes,
                          like.input_lanes, float(rng.choice([1.0, 0.125, -3.0])), expression)


def expected(work: PlaneReduction, tensors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The result in float64 and a bound of its error."""
    planes = np.stack([tensors[p.tensor][0, p.block, :, :, p.first + i].astype(np.float64)
                       for p in work.input_lanes for i in range(p.count)])
    planes = planes.reshape(work.channels, -1)
    if work.expression:
        others = [tensors[-1].reshape(-1, 1)] if work.by_channel else []
        planes = work.expression.evaluate([planes, *others])
    result = getattr(np, work.kind)(planes, axis=1) * work.factor
    roundings = (planes.shape[1] if work.kind == "sum" else 1) + 4
    largest = abs(planes).sum(1) if work.kind == "sum" else abs(planes).max(1)
    return result, roundings * EPS * largest * abs(work.factor)


@on_machines_with_vectors
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    works = [(random_reduction(rng, isa.lanes), isa) for isa in machine.isas
             for _ in range(machine.count(9))]
    layers = [plane_reduction.make(work, isa) for work, isa in works]
    runs = run_on_noise(layers, rng, tmp_path, machine.toolchain)
    for (work, isa), (tensors, output) in zip(works, runs, strict=True):
        want, bound = expected(work, tensors)
        assert output.shape == (1, work.channels, 1, 1)
        assert (abs(output.reshape(-1) - want) <= bound).all(), (work, isa.name)
