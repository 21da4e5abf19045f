"""A network for TVM -> the same network in 8 bits on our kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm

from run_model_tools.kernels.int8.from_float32 import calibration, quantize, sensitivity
from run_model_tools.kernels.int8.from_float32.calibration import Host
from run_model_tools.kernels.int8.from_float32.fallback import (
    Chooser,
    Demand,
    share_for_bytes,
    work,
)
from run_model_tools.kernels.int8.from_float32.readers import readers
from run_model_tools.kernels.int8.from_float32.search import LEAST_WORK, Try, best_try
from run_model_tools.kernels.int8.quantized import Quantization
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layers_of_plan import report as report_of_plan
from run_model_tools.kernels.plan import ConvolutionStep, Plan, Step
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.relay.reading import NotForUs, read_plan
from run_model_tools.kernels.relay.rewriting import Rewritten
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.verifying import agreement
from run_model_tools.verifying.judged import judge_all

# Pictures are judged by ranges that were taken from those of the other folds.
_FOLDS = 3
# Numbers of each output that are compared of one view, and of all of them together.
_NUMBERS, _ALL_NUMBERS = 2 ** 16, 2 ** 23


@dataclass(frozen=True)
class Request:
    """What a network of 8 bits is made by."""

    views: dict[str, np.ndarray]
    """Of each of the network's inputs, views (one more axis in front) of pictures."""
    pictures: np.ndarray
    """(views,): the number of each view's picture."""
    demand: Demand
    least: float
    """The agreement that will do where more would cost much time (search.py)."""
    host: Host
    stated: list[str | None]
    """What is said of each output (judged.stated)."""
    kept: tuple[int, ...] | None = None
    """The layers to keep float32, if that is known: their places in the plan."""


def rewrite(mod: tvm.IRModule, target: tvm.target.Target, request: Request) -> Rewritten:
    """Like rewriting.rewrite.  Raises NotForUs too where no network of 8 bits meets the demand."""
    isa, plan = read_plan(mod, target, expressions=False)
    if plan.has_batches():
        raise NotForUs("layers of bytes are for one picture at a time, and it takes several")
    share = share_for_bytes(plan)
    if share < LEAST_WORK:
        raise NotForUs(f"of its work {share:.0%} is in layers that can be bytes "
                       "(convolutions, poolings, fully connected layers of one row), so that 8 "
                       "bits would gain nothing; leave it in float32")
    views = _one_by_one(request.views)
    request.host.tell("ranges of activations")
    floats = calibration.FloatPlan(plan, isa, request.host)
    seen = calibration.observe(floats, views, request.stated, _numbers(len(views)),
                               request.host.tell)
    clamps = {step.output: step.convolution.high for step in plan.steps
              if isinstance(step, ConvolutionStep)}
    choices = {tensor: one.choose(readers(plan, tensor), clamps.get(tensor, math.inf))
               for tensor, one in seen.tensors.items()}

    def known(places: np.ndarray) -> quantize.Quantizations:
        return quantize.Quantizations(
            {tensor: one.quantization(choices[tensor], places)
             for tensor, one in seen.tensors.items()},
            _of_pictures(plan, [views[place] for place in places]), seen.moments)
    everything = known(np.arange(len(views)))
    found: dict[str, object] = {}
    if request.kept is None:
        folds = [Fold(known(np.setdiff1d(np.arange(len(views)), places)), places)
                 for places in _folds(request.pictures)]
        kept, found = _choose(plan, isa, folds, floats, views, seen, request)
    else:
        kept = {plan.steps[at] for at in request.kept}
    quantized, counts = quantize.quantize(plan, isa, everything, kept)
    if not counts["int8_layers"]:
        raise NotForUs("no layer of the network has a kernel of 8 bits")
    module, layers = write_module(quantized, isa)
    report = {**report_of_plan(quantized, isa), **counts, "calibration_pictures": len(views),
              **found}
    return Rewritten(module, layers, report)


def _numbers(views: int) -> int:
    """How many of an output's are compared of each view."""
    return max(1, min(_NUMBERS, _ALL_NUMBERS // views))


@dataclass(frozen=True)
class Fold:
    """Some of the pictures, and what all others say of how bytes should stand for activations."""

    known: quantize.Quantizations
    places: np.ndarray
    """Of the views of its pictures."""


def _folds(pictures: np.ndarray) -> list[np.ndarray]:
    """The places of each fold's views.  Of a single picture, each fold has some of the views."""
    numbers = pictures if len(set(pictures)) > 1 else np.arange(len(pictures))
    folds = [np.flatnonzero(numbers % _FOLDS == fold) for fold in range(_FOLDS)]
    return [places for places in folds if len(places)]


def _choose(plan: Plan, isa: Isa, folds: list[Fold], floats: calibration.FloatPlan,
            views: list[dict[str, np.ndarray]], seen: calibration.Seen,
            request: Request) -> tuple[set[Step], dict[str, object]]:
    """The layers to keep float32, and what to say of them."""
    found = sensitivity.measure(floats, isa, request.host, [
        (fold.known, [views[place] for place in fold.places]) for fold in folds], seen.judged)
    # Margins do not depend on the layers, so they can be those of all views.
    margins = [None if how.axis is None else agreement.margins(
        np.concatenate([how.scores(each[i]) for each in seen.outputs]))
        for i, how in enumerate(seen.judged)]
    chooser = Chooser(found, margins)
    tries: list[Try] = []

    def attempt(asked: Demand, kept: set[int]) -> Try:
        measured = next((one.measured for one in tries if one.kept == kept), None)
        if measured is None:
            request.host.tell(f"choice {len(tries) + 1}, {len(kept)} of {len(found.groups)} "
                              "layers in float32")
            measured = _measure(plan, isa, folds, found.steps(kept), views, seen, request)
        tries.append(Try(kept, asked, measured))
        return tries[-1]
    best = best_try(chooser, request.demand, request.least, attempt)
    if best is None:
        raise NotForUs(_refusal(Demand(request.least, request.demand.error), tries,
                                len(found.groups)))
    without = chooser.expected(set())
    best.measured["all_in_8_bits"] = {"expected_agreement": without.agreement,
                                      "relative_error": without.error}
    return found.steps(best.kept), {
        "agreement": best.measured, "kept_float32": _describe(plan, chooser, best.kept)}


def _refusal(demand: Demand, tries: list[Try], layers: int) -> str:
    said = [f"{len(one.kept)} of {layers} layers in float32: off by {one.have.error:.2g}"
            + (f", another class in {one.measured['other_class']} of "
               f"{one.measured.get('places', one.measured['views'])}, "
               f"{one.have.agreement:.1%} expected the same"
               if "other_class" in one.measured else "") for one in tries]
    return (
        f"in 8 bits it would not be expected to name the same best class as in float32 for "
        f"{demand.agreement:.1%} of pictures like those for calibration, or differ by "
        f"more than {demand.error:g} of its outputs' root mean square, unless nearly all "
        f"layers stay float32 (tried: {'; '.join(said) or 'nothing less'}): leave it in float32, "
        "calibrate with more pictures and better ones, or ask for less (--agreement, --tolerance)")


def _measure(plan: Plan, isa: Isa, folds: list[Fold], kept: set[Step],
             views: list[dict[str, np.ndarray]], seen: calibration.Seen,
             request: Request) -> dict[str, Any]:
    """How the network of 8 bits answers, run on this machine, each view by what the other folds'
    pictures say."""
    made: list[list[np.ndarray]] = [[] for _ in views]
    for fold in folds:
        executor = request.host.executor(quantize.quantize(plan, isa, fold.known, kept)[0], isa)
        for place in fold.places:
            executor.set_input(**views[place])
            executor.run()
            made[place] = [how.sample(executor.get_output(i).numpy(), _numbers(len(views)))
                           for i, how in enumerate(seen.judged)]
    found = judge_all(seen.judged, seen.outputs, made)
    result: dict[str, Any] = {"views": len(views), "folds": len(folds),
                              "asked_error": request.demand.error, "relative_error": found.error}
    if found.places:
        result |= {"asked": request.demand.agreement, "least": request.least,
                   "expected_agreement": found.agreement,
                   "top1_agreement": 1 - found.other / found.places, "other_class": found.other,
                   "places": found.places}
    return result


def _describe(plan: Plan, chooser: Chooser, kept: set[int]) -> list[dict[str, object]]:
    names = plan.sources.of(plan.steps)
    return [{"layer": plan.steps.index(step), "onnx_nodes": names.get(step.output, []),
             "share_of_work": round(work(step) / float(chooser.costs.sum()), 4),
             "alone_changes_outputs_by": round(chooser.alone(k), 5)}
            for k, group in enumerate(chooser.found.groups) if k in kept for step in group]


def _one_by_one(pictures: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    count = min(len(array) for array in pictures.values())
    return [{name: array[i] for name, array in pictures.items()} for i in range(count)]


def _of_pictures(plan: Plan, runs: list[dict[str, np.ndarray]],
                 ) -> dict[Tensor, tuple[Quantization, ...]]:
    result = {}
    for parameter, tensor in zip(plan.parameters, plan.parameter_tensors):
        if len(tensor.shape) == 4 and tensor.dtype == "float32":
            result[tensor] = calibration.observe_channels(
                [run[parameter.name_hint] for run in runs])
    return result
