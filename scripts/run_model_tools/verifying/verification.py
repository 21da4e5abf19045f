"""Executes what was compiled before it is written, and compares it with the network it is of."""

from __future__ import annotations

import functools
import os
import platform
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.compiling import artifact
from run_model_tools.errors import FAILED_RUN, ToolError, last_line
from run_model_tools.onnx_repair.reference import NoReference
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.source_model import SourceModel
from run_model_tools.tflite.model import TfliteModel
from run_model_tools.verifying import agreement, probabilities
from run_model_tools.verifying import inputs as made_inputs
from run_model_tools.verifying.choices import choice_behind
from run_model_tools.verifying.comparison import (
    JITTER,
    Difference,
    compare,
    compare_steps,
    in_order_of,
    largest_slice_error,
)
from run_model_tools.verifying.execution import Machine, NotRun, machines, run_artifact
from run_model_tools.verifying.judged import Judged, judge
from run_model_tools.verifying.noise import noisy_runs, output_steps

TOLERANCE = 1e-3
# What outputs are kept of, all views together and of each output of one view.
_MOST_BYTES, _MOST_NUMBERS = 2 ** 28, 2 ** 20
HALF_TOLERANCE = 0.05
"""Of networks in float16, of which trained ones were seen to be off by 0.002 to 0.008, or bfloat16.
"""

Tensors = dict[str, np.ndarray]
Noisy = Callable[[], list[list[np.ndarray]]]
HostPlan = Callable[[Path], str]
"""Compiles the same plan for this machine into an empty folder, and says how in some words."""
Runner = Callable[[Path, Machine, list[list[str]], list[Tensors]], list[list[np.ndarray]]]
"""What execution.run_artifact() is for artifacts of a graph."""
DeviceRunner = Callable[[list[Tensors]], tuple[list[list[np.ndarray]], dict[str, Any]]]
"""The outputs of as many runs as time allows, and metadata's words on where they took place."""


@dataclass(frozen=True)
class Subject:
    """What is verified: the files in `folder`, compiled of `model` for the TVM target `target`."""

    model: SourceModel
    folder: Path
    shapes: dict[str, tuple[int, ...]]
    preprocessing: Preprocessing | None
    target: str
    compilers: list[list[str]]
    """Of C code that is to run where the artifact does, the likeliest first."""
    host_plan: HostPlan
    run: Runner | None = None
    """None: run_artifact()."""
    other_shapes: tuple[dict[str, tuple[int, ...]], ...] = ()
    """Of a network for inputs of any shape: what else is tried than `shapes`."""
    pictures: Sequence[Tensors] = ()
    """Inputs to compare it on, besides random ones."""
    on_device: DeviceRunner | None = None
    """Of an artifact for a GPU, in the place of `run` and `host_plan`."""
    of_values: Mapping[int, int | None] = field(default_factory=dict)
    """The outputs of which values say how many rows they have, and in what order; those of one
    number have the same rows."""


def verify(subject: Subject, tolerance: float) -> dict[str, Any]:
    """Compares with the reference on random inputs and gives metadata's "verification".

    Raises ToolError (8) where they differ.
    """
    try:
        given, expected, reference = _reference_runs(subject)
    except NoReference as error:
        return {"done": False, "reason": str(error)}
    results, where = _execute(subject, given)
    steps = output_steps(subject.model)
    from_softmax = probabilities.made_by_softmax(subject.model) if steps is None else []
    largest, undecided = 0.0, None
    for inputs, wanted, outputs in zip(given, expected, results):
        run = _Run(inputs, wanted, _as_many(outputs, wanted), _once(
            lambda inputs=inputs: noisy_runs(subject.model, inputs)))  # type: ignore[misc]
        for index, name in enumerate(subject.model.outputs):
            found = _difference(subject, run, index, tolerance, steps,
                                steps is None and from_softmax[index])
            if found.complaint is not None:
                raise ToolError(FAILED_RUN, (
                    f"{found.complaint}: the artifact was not written ({_describe(where)}); "
                    "--tolerance allows more, --no-verify compares nothing."))
            largest = max(largest, found.largest)
            undecided = undecided or (name if found.undecided else None)
    for index in sorted(subject.of_values):
        if not any(outputs[index].size for outputs in results):
            return {"done": False, "reason": f"output '{subject.model.outputs[index]}' was empty "
                                             "for all inputs that were tried (--verify-with FOLDER "
                                             "tries pictures)"}
    if undecided is not None:
        return {"done": False, "reason": (
            f"output '{undecided}' of the network turns into another one when its weights and "
            f"inputs change as rounding changes them, by {JITTER:.0e} of their values or, of one "
            "in a hundred whole numbers, by a step")}
    return {"done": True, "reference": reference, **where, **_runs(subject, given, results),
            "tolerance": tolerance, "relative_difference": largest}


@dataclass(frozen=True)
class _Run:
    """What the reference and the compiled network gave for some inputs."""

    inputs: Tensors
    wanted: list[np.ndarray]
    outputs: list[np.ndarray]
    noisy: Noisy
    """The reference's outputs with weights and inputs changed as rounding changes them."""


def _difference(subject: Subject, run: _Run, index: int, tolerance: float,
                steps: list[float | None] | None, is_softmax: bool) -> Difference:
    """How an output differs from the reference's.  steps: of all outputs of a network that rounds
    between its layers (output_steps())."""
    model, name = subject.model, subject.model.outputs[index]
    want, have = run.wanted[index], run.outputs[index]

    def samples() -> list[np.ndarray]:
        return [sample[index] for sample in run.noisy()]

    step = steps[index] if steps else None
    unit: float | None = None
    if model.output_scales[index] is not None:
        unit = 1.0
    elif isinstance(model, TfliteModel) and model.were_bytes[index]:
        unit = step
    if unit is not None:
        found = compare_steps(name, np.rint(want / unit), np.rint(have / unit), tolerance,
                              lambda: [np.rint(sample / unit) for sample in samples()])
    else:
        found = compare(name, want, have, tolerance, samples, steps is not None, step,
                        functools.partial(_equally_good, model, run.inputs, index, tolerance))
        if found.complaint is None and is_softmax:
            found = found.and_also(probabilities.compare_logarithms(
                name, want, have, tolerance, samples))
    if (found.complaint or found.undecided) and index in subject.of_values and any(
            compare(name, want, sample, tolerance, list).complaint for sample in samples()):
        # Rounding decides which rows these are, or in what order they come.
        found = compare(name, want, _ordered(subject, index, run.wanted, run.outputs), tolerance,
                        list)
        if found.complaint is not None:
            found = Difference(undecided=True)
    return found


def _runs(subject: Subject, given: list[Tensors], results: list[list[np.ndarray]]
          ) -> dict[str, int]:
    """How many there were, of which the last are of pictures."""
    pictures = len(results) - len(given) + len(subject.pictures)
    return {"runs": len(results), **({"pictures_tried": pictures} if pictures > 0 else {})}


def _ordered(subject: Subject, index: int, wanted: list[np.ndarray],
             outputs: list[np.ndarray]) -> np.ndarray:
    """An output with its rows in the order of the reference's."""
    group = subject.of_values[index]
    if group is None:
        return outputs[index]
    same = [i for i, other in subject.of_values.items() if other == group]
    found = in_order_of([wanted[i] for i in same], [outputs[i] for i in same])
    return outputs[index] if found is None else found[same.index(index)]


def verify_int8(subject: Subject, pictures: list[Tensors], tolerance: float,
                asked: float, stated: Sequence[str | None] | None = None) -> dict[str, Any]:
    """verify() of a network of 8 bits, against the float32 network on pictures.

    It is another network, so not the single numbers are judged but how often another class is the
    best one, and by how much numbers are off in the root mean square (judged.py).  stated: what is
    said of the outputs there.
    """
    first = subject.model.run(pictures[0])
    judged = [Judged.of(*one) for one in zip(first, stated or [None] * len(first))]
    pictures = pictures[:max(1, _MOST_BYTES // sum(one.nbytes for one in first))]
    results, where = _execute(subject, pictures)

    def samples(outputs: list[np.ndarray]) -> list[np.ndarray]:
        return [how.sample(one, _MOST_NUMBERS) for how, one in zip(judged, outputs)]

    expected = [samples(first), *(samples(subject.model.run(inputs))
                                  for inputs in pictures[1:len(results)])]
    results = [samples(_as_many(outputs, first)) for outputs in results]
    refused = (f"the artifact was not written ({_describe(where)}, {len(results)} views of "
               "pictures); more and better --calibration pictures may help, ")
    found = []
    for index, (name, how) in enumerate(zip(subject.model.outputs, judged)):
        want, have = (np.stack([view[index] for view in of]) for of in (expected, results))
        found.append(judge(how, want, have))
        error, other, places = found[-1].error, found[-1].other, found[-1].places
        if not error <= tolerance:
            raise ToolError(FAILED_RUN, (
                f"output '{name}' of the network of 8 bits differs from the float32 network by "
                f"{error:.2g} of its root mean square, or by 5 times that in a part of it, and "
                f"{tolerance:g} is allowed: {refused}"
                "--tolerance allows more, --no-verify compares nothing."))
        if other * len(want) > agreement.most_disagreements(asked, len(want)) * places:
            raise ToolError(FAILED_RUN, (
                f"output '{name}' of the network of 8 bits names another "
                f"{'number' if how.are_names else 'best class'} than the float32 network for "
                f"{other} of {places} {how.unit}, and {asked:.1%} are to be the same: {refused}"
                "--agreement asks for less, --no-verify compares nothing."))
    naming = [(1 - one.other / one.places, how.unit) for one, how in zip(found, judged)
              if one.places]
    same, unit = min(naming, default=(None, None))
    return {"done": True, "reference": f"{subject.model.reference}, float32", **where,
            "pictures": len(results), "tolerance": tolerance,
            "relative_error": max(one.error for one in found),
            **({} if same is None else
               {"top1_agreement": same, "asked_agreement": asked, "agreement_of": unit})}


def verify_rounded(subject: Subject, tolerance: float, precision: str) -> dict[str, Any]:
    """verify() of a network in float16 or bfloat16, against the float32 one on random inputs.

    It rounds more than float32 does, so single numbers may be off by more than their neighbours;
    what is judged is the root mean square of what they are off by (largest_slice_error()).
    """
    try:
        given, expected, reference = _reference_runs(subject)
    except NoReference as error:
        return {"done": False, "reason": str(error)}
    results, where = _execute(subject, given)
    worst, same = 0.0, []
    for wanted, outputs in zip(expected, results):
        for name, want, have in zip(subject.model.outputs, wanted, _as_many(outputs, wanted)):
            if want.shape != have.shape:
                raise ToolError(FAILED_RUN, f"output '{name}' has the shape {have.shape} when "
                                            f"compiled and {want.shape} in the reference.")
            refused = (f"the artifact was not written ({_describe(where)}); leave --precision out "
                       "for this network, ")
            odd = np.isfinite(want) & ~np.isfinite(have)
            if odd.any():
                beyond = (", as of activations beyond 65504, where float16 ends"
                          if precision == "float16" else "")
                raise ToolError(FAILED_RUN, (
                    f"output '{name}' has {have[odd][0]:g} in {precision} where float32 has "
                    f"{want[odd][0]:.6g}, in {np.count_nonzero(odd)} of {want.size} places"
                    f"{beyond}: {refused}or use int8."))
            finite = np.isfinite(want)
            off = largest_slice_error(np.where(finite, want, 0), np.where(finite, have, 0))
            if not off <= tolerance:
                raise ToolError(FAILED_RUN, (
                    f"output '{name}' in {precision} differs from float32 by {off:.2g} of the "
                    f"values there (root mean square), and {tolerance:g} is allowed: {refused}"
                    "--tolerance allows more, --no-verify compares nothing."))
            worst = max(worst, off)
            if agreement.are_scores(want) and want.dtype.kind == "f":
                same.append(not agreement.disagreements(want[None], have[None]))
    return {"done": True, "reference": f"{reference}, float32", **where,
            **_runs(subject, given, results),
            "tolerance": tolerance, "relative_error": worst,
            **({"top1_agreement": sum(same) / len(same)} if same else {})}


def _reference_runs(subject: Subject) -> tuple[list[Tensors], list[list[np.ndarray]], str]:
    """Inputs that the reference takes, random ones before the subject's pictures, its outputs for
    them, and which one it is.

    A mask that nothing tells to be one may make NaN of all there is, unless it is 0 or 1: others
    are tried then.  Raises NoReference where none runs the model, or none gives numbers.
    """
    model = subject.model
    reason = model.why_not_run()
    if reason is not None:
        raise NoReference(reason)
    ranges = made_inputs.whole_number_ranges(model, subject.shapes, *subject.other_shapes)
    regions = made_inputs.picture_regions(model)
    found: dict[float, tuple[list[Tensors], list[list[np.ndarray]], str]] = {}
    for tried in made_inputs.narrower(ranges):
        given = [made_inputs.random_inputs(model.inputs, shapes, subject.preprocessing,
                                           tried, seed, regions)
                 for shapes in (subject.shapes, *subject.other_shapes)
                 for seed in made_inputs.SEEDS] + list(subject.pictures)
        try:
            runs = [model.run_by(inputs) for inputs in given]
        except Exception as error:  # References have a dozen classes of their own.
            reason = last_line(error)
            continue
        outputs = [outputs for outputs, _ in runs]
        lost = max((_share_of_nans(each) for each in zip(*outputs)), default=0.0)
        found.setdefault(lost, (given, outputs, runs[0][1]))
        if lost < 0.5:
            break
    if not found:
        raise NoReference(f"{model.reference} does not run it: {reason}")
    if min(found) == 1:
        raise NoReference("an output of the network is NaN throughout for all inputs that were "
                          "tried (--verify-with FOLDER tries pictures)")
    return found[min(found)]


def _share_of_nans(arrays: Iterable[np.ndarray]) -> float:
    every = np.concatenate([np.ravel(array) for array in arrays])
    return float(np.isnan(every).mean()) if every.size else 0.0


def _execute(subject: Subject,
             given: list[Tensors]) -> tuple[list[list[np.ndarray]], dict[str, Any]]:
    """The compiled network's outputs, and where they were computed."""
    if subject.on_device is not None:
        return subject.on_device(given)
    run = subject.run or run_artifact
    reasons = []
    library = subject.folder / artifact.LIBRARY
    if library.exists():
        for machine in machines(artifact.library_machine(library), subject.target):
            try:
                return (run(subject.folder, machine, subject.compilers, given),
                        {"where": machine.where})
            except NotRun as error:
                reasons.append(f"{machine.where}: {error}")
    with tempfile.TemporaryDirectory(prefix="run_model-") as name:
        folder = Path(name)
        how = subject.host_plan(folder)
        results = run(folder, Machine("native"), host_compilers(), given)
    return results, {"where": "host plan", "host_plan": how,
                     "not_executed_because": "; ".join(reasons) or "there is no emulator of it"}


def host_compilers() -> list[list[str]]:
    """Commands that make programs for this machine of C code."""
    named = [shlex.split(os.environ[name]) for name in ("CC", "CXX") if os.environ.get(name)]
    return [*named, ["cc"], ["gcc"], ["g++"], ["clang"]]


def _equally_good(model: SourceModel, inputs: Tensors, index: int, tolerance: float,
                  want: np.ndarray, have: np.ndarray) -> np.ndarray:
    choice = choice_behind(model, inputs, index)
    if choice is None:
        return np.zeros(want.shape, bool)
    return choice.equally_good(want, have, tolerance)


def _as_many(outputs: list[np.ndarray], wanted: list[np.ndarray]) -> list[np.ndarray]:
    if len(outputs) != len(wanted):
        raise ToolError(FAILED_RUN, f"the compiled model has {len(outputs)} outputs and "
                                    f"the network {len(wanted)}.")
    return outputs


def _describe(where: dict[str, Any]) -> str:
    if "device" in where:
        return f"executed on {where['device']}"
    return ("executed as the same plan compiled for this machine" if "host_plan" in where
            else f"executed {where['where']} on {platform.machine()}" if where["where"] == "native"
            else f"executed under {where['where']}")


def _once(make: Callable[[], Iterable[list[np.ndarray]]]) -> Callable[[], list[list[np.ndarray]]]:
    """Makes the list when it is first asked for."""
    return functools.cache(lambda: list(make()))
