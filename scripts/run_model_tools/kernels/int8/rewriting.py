"""A network for TVM -> the same network in 8 bits on our kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm

from run_model_tools.kernels.int8 import calibration, quantize, sensitivity
from run_model_tools.kernels.int8.fallback import Chooser, Demand
from run_model_tools.kernels.int8.host import Host
from run_model_tools.kernels.int8.quantized import Quantization
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layers_of_plan import report as report_of_plan
from run_model_tools.kernels.plan import Plan, Step
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.relay.reading import NotForUs, read_plan
from run_model_tools.kernels.relay.rewriting import Rewritten
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.verifying import agreement

# How much of its own a channel's scale is (calibration.Observed.quantization): halves what
# activations and what weights lose.
_CHANNEL_SHARE = 0.5
# Of the views to be judged on, those by which each layer's part is measured.
_MEASURED_VIEWS = 24
# How often layers are chosen anew, for half of the disagreement, where it was more than estimated.
_ROUNDS = 6
# With less of its work in bytes, a network gains nothing by them.
_LEAST_WORK = 0.1


@dataclass(frozen=True)
class Request:
    """What a network of 8 bits is made by."""

    pictures: dict[str, np.ndarray]
    """Of each of the network's inputs, views (one more axis in front) to take ranges from."""
    judged: dict[str, np.ndarray]
    """Views to compare it on."""
    demand: Demand
    host: Host
    kept: tuple[int, ...] | None = None
    """The layers to keep float32, if that is known: their places in the plan."""


def rewrite(mod: tvm.IRModule, target: tvm.target.Target, request: Request) -> Rewritten:
    """Like rewriting.rewrite.  Raises NotForUs too where no network of 8 bits meets the demand."""
    isa, plan = read_plan(mod, target, expressions=False)
    if plan.has_batches():
        raise NotForUs("layers of bytes are for one picture at a time, and it takes several")
    views = _one_by_one(request.pictures)
    request.host.tell("ranges of activations")
    floats = calibration.FloatPlan(plan, isa, request.host)
    seen, moments = calibration.observe(floats, views)
    known = quantize.Quantizations(
        {tensor: one.quantization(_CHANNEL_SHARE) for tensor, one in seen.items()},
        _of_pictures(plan, views), moments)
    found: dict[str, object] = {}
    if request.kept is None:
        kept, found = _choose(plan, isa, known, floats, request)
    else:
        kept = {plan.steps[at] for at in request.kept}
    quantized, counts = quantize.quantize(plan, isa, known, kept)
    if not counts["int8_layers"]:
        raise NotForUs("no layer of the network has a kernel of 8 bits")
    module, layers = write_module(quantized, isa)
    operators.compile_all(layers.values(), target)
    report = {**report_of_plan(quantized, isa), **counts, "calibration_pictures": len(views),
              **found}
    return Rewritten(module, layers, report)


def _choose(plan: Plan, isa: Isa, known: quantize.Quantizations, floats: calibration.FloatPlan,
            request: Request) -> tuple[set[Step], dict[str, object]]:
    """The layers to keep float32, and what to say of them."""
    views = _one_by_one(request.judged)
    some = views[::max(1, len(views) // _MEASURED_VIEWS)][:_MEASURED_VIEWS]
    found = sensitivity.measure(floats, plan, isa, known, request.host, some)
    chooser = Chooser(found)
    wanted = []
    for view in views:
        floats.run(view)
        wanted.append(floats.outputs())
    asked = request.demand
    tries: list[str] = []
    for _ in range(_ROUNDS):
        kept = chooser.choose(asked)
        if chooser.costs[list(set(range(len(found.steps))) - kept)].sum() < (
                _LEAST_WORK * chooser.costs.sum()):
            break
        steps = {found.steps[k] for k in kept}
        request.host.tell(f"{len(kept)} of {len(found.steps)} layers in float32")
        measured = _measure(quantize.quantize(plan, isa, known, steps)[0], isa, views, wanted,
                            request)
        if _meets(measured, request.demand, len(views)):
            without = chooser.expected(set())
            measured["all_in_8_bits"] = {"top1_agreement": without.agreement,
                                         "relative_error": without.error}
            return steps, {"agreement": measured, "kept_float32": _describe(plan, chooser, kept)}
        tries.append(f"{len(kept)} of {len(found.steps)} layers in float32: off by "
                     f"{measured['relative_error']:.2g}"
                     + (f", another class in {measured['other_class']} of {len(views)} views, "
                       f"{measured['expected_agreement']:.1%} expected the same"
                        if "other_class" in measured else ""))
        asked = Demand(1 - (1 - asked.agreement) / 2, asked.error / 1.5)
    raise NotForUs(
        f"in 8 bits it would not name the same best class as in float32 for "
        f"{request.demand.agreement:.1%} of the views of the calibration pictures, or differ by "
        f"more than {request.demand.error:g} of its outputs' root mean square, unless nearly all "
        f"layers stay float32 (tried: {'; '.join(tries) or 'nothing less'}): leave it in float32, "
        "calibrate with more pictures and better ones, or ask for less (--agreement, --tolerance)")


def _measure(quantized: Plan, isa: Isa, views: list[dict[str, np.ndarray]],
             wanted: list[list[np.ndarray]], request: Request) -> dict[str, Any]:
    """How the network of 8 bits answers, run on this machine."""
    executor = request.host.executor(quantized, isa)
    made = []
    for view in views:
        executor.set_input(**view)
        executor.run()
        made.append([executor.get_output(i).numpy() for i in range(len(wanted[0]))])
    different, expected, error = None, 1.0, 0.0
    for index, one in enumerate(wanted[0]):
        want, have = (np.stack([each[index] for each in of]) for of in (wanted, made))
        error = max(error, agreement.relative_error(want, have))
        if agreement.are_scores(one):
            different = max(different or 0, agreement.disagreements(want, have))
            scores, others = (np.stack([agreement.scores_of(one) for one in of])
                              for of in (want, have))
            expected = min(expected, agreement.expected_agreement(scores, others - scores))
    result: dict[str, Any] = {"views": len(views), "asked_error": request.demand.error,
                              "relative_error": error}
    if different is not None:
        result |= {"asked": request.demand.agreement, "top1_agreement": 1 - different / len(views),
                   "expected_agreement": expected,
                   "other_class": different}
    return result


def _meets(measured: dict[str, Any], demand: Demand, views: int) -> bool:
    """In the views themselves, or where these are not many enough to tell, in all cases."""
    if measured["relative_error"] > demand.error:
        return False
    others = measured.get("other_class", 0)
    return others <= max(int(demand.agreement < 1), int((1 - demand.agreement) * views + 1e-9)) or (
        measured["expected_agreement"] >= demand.agreement
        and others <= agreement.most_disagreements(demand.agreement, views))


def _describe(plan: Plan, chooser: Chooser, kept: set[int]) -> list[dict[str, object]]:
    names = plan.sources.of(plan.steps)
    return [{"layer": plan.steps.index(step), "onnx_nodes": names.get(step.output, []),
             "share_of_work": round(float(chooser.costs[k] / chooser.costs.sum()), 4),
             "alone_changes_outputs_by": round(chooser.alone(k), 5)}
            for k, step in enumerate(chooser.found.steps) if k in kept]


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
