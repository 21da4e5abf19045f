"""A trained network -> model.so and metadata.json by today's TVM: one library with code, constants
and the Relax executable."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from run_model_tools import tvm_process
from run_model_tools.compiling import artifact
from run_model_tools.compiling.cpu_features import needed_features
from run_model_tools.compiling.exact_sizes import ExactSizes, exact_sizes
from run_model_tools.compiling.graph_file import Entry
from run_model_tools.compiling.job import (
    NOT_ASKED_FOR,
    Job,
    check_compiler,
    describe_tasks,
    linker_of,
    pictures_to_try,
)
from run_model_tools.compiling.open_shapes import is_of_rows, open_batch, shapes_to_try
from run_model_tools.compiling.open_sizes import OpenSizes, open_sizes
from run_model_tools.errors import FAILED_RUN, MISMATCH, USAGE, ToolError
from run_model_tools.files import directory_in_the_making, json_text
from run_model_tools.onnx_model import OnnxModel
from run_model_tools.onnx_repair.refusal import DATA_DEPENDENT, NodeRefused
from run_model_tools.onnx_repair.samples import NotApart
from run_model_tools.progress import stage
from run_model_tools.verifying import verification
from run_model_tools.verifying.execution import Machine, NotRun
from run_model_tools.verifying.relax_execution import run_executable


@dataclass(frozen=True)
class _Shapes:
    """As what shapes the network is read."""

    told: dict[str, Any]
    """What the worker is told of them."""
    sizes: OpenSizes | None = None
    """What its open extents may be, where it is read at several sizes."""
    instead: _Shapes | None = None
    """As what it is read where it cannot be read at these sizes."""

    @classmethod
    def at_several(cls, sizes: OpenSizes, instead: _Shapes | None = None) -> _Shapes:
        return cls({"shapes": {}, "opened": sizes.request()}, sizes, instead)

    def unrepaired(self, reason: str) -> _Shapes:
        """The same of the network as it is, and why nothing here looks through it."""
        return replace(self, told={**self.told, "unrepaired": reason})


def refuse_what_is_not_for_it(job: Job) -> None:
    """Raises ToolError (2) for options that have no meaning with Relax."""
    for asked, what in (
            (not isinstance(job.model, OnnxModel), f"{job.model.path}, which is no ONNX file"),
            (job.is_c, "the target c"), (job.flat, "--flat"), (job.single_file, "--single-file"),
            (bool(job.forms), "--forms"),
            (job.precision != "float32", f"--precision {job.precision}"),
            (job.records.explicit, "--tuning-records")):
        if asked:
            raise ToolError(USAGE, f"--compiler relax is not for {what}: leave one of them out.")


def compile_job(job: Job) -> dict[str, Any]:
    """Makes the artifact and gives the report.  On failure, what was there before is unchanged."""
    refuse_what_is_not_for_it(job)
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        if job.dynamic and isinstance(job.model, OnnxModel):
            job = replace(job, model=job.model.spelled_out(Path(folder)))
        return _compile_job(job)


def _compile_job(job: Job) -> dict[str, Any]:
    check_compiler(linker_of(job), job.target)
    shapes = _shapes_of(job)
    exact = None
    if job.exact:
        assert isinstance(job.model, OnnxModel)
        exact = exact_sizes(job.model, job.exact, shapes.sizes.inputs if shapes.sizes else None)
    while True:
        try:
            return _make(job, shapes, exact)
        except ToolError as error:
            # What is read at larger sizes may not hold for the least.
            fewer = shapes.sizes.without_least() if (
                shapes.sizes and error.code == FAILED_RUN) else None
            if fewer is None:
                raise
            shapes = _Shapes.at_several(fewer, shapes.instead)


def _make(job: Job, shapes: _Shapes, exact: ExactSizes | None) -> dict[str, Any]:
    title = f"{job.name} for {job.target.name}"
    seconds: dict[str, float] = {}
    with directory_in_the_making(job.directory, artifact.ALL_FILES) as folder:
        start = time.monotonic()
        with stage(f"compiling {title}") as tell:
            made, refused, shapes = _compile(
                job, shapes, exact, folder, on_event=lambda e: tell(e["at"]),
                target=job.target.tvm, kernels=job.kernels, cc=linker_of(job))
        seconds["compile"] = round(time.monotonic() - start, 3)
        if refused:
            _open_outputs(job, made)
        metadata = _describe(job, folder, made)
        if shapes.sizes is not None:
            metadata["open_extents"] = shapes.sizes.limits()
        if exact is not None:
            metadata["exact_sizes"] = exact.sizes
        start = time.monotonic()
        with stage(f"running {title} and comparing it"):
            metadata["verification"] = _verify(job, shapes, exact, folder, made)
        if refused and not metadata["verification"]["done"]:
            raise ToolError(refused.code, f"{refused} It would be compiled as it is if that were "
                                          "compared with its reference: "
                                          f"{metadata['verification']['reason']}.")
        seconds["verify"] = round(time.monotonic() - start, 3)
        (folder / artifact.METADATA).write_text(json_text(metadata))
    return {"metadata": metadata, "verification": metadata["verification"], "seconds": seconds}


def _shapes_of(job: Job) -> _Shapes:
    """A network that keeps the samples of an open batch apart is compiled for one, which leaves it
    our kernels, unless samples are rows; another one is read at several sizes; what is not one
    network at all of them TVM gets as it is."""
    if not job.dynamic:
        return _Shapes({"shapes": job.shapes})
    assert isinstance(job.model, OnnxModel)
    try:
        one, axes = open_batch(job.model)
    except NotApart as error:
        reason = str(error)
    else:
        apart = _Shapes(
            {"shapes": one, "batch_axes": {"inputs": axes.inputs, "outputs": axes.outputs}})
        if not is_of_rows(job.model):
            return apart
        try:
            sizes = replace(open_sizes(job.model, job.examples), endless=True)
        except ToolError:
            return apart
        return _Shapes.at_several(sizes, apart)
    try:
        return _Shapes.at_several(open_sizes(job.model, job.examples, reason))
    except ToolError as error:
        # The importer may take it nevertheless; it is compared.
        why = error.reason if isinstance(error, NodeRefused) else str(error)
        return _as_it_is(job, f"{reason}, and {why}")


def _as_it_is(job: Job, reason: str) -> _Shapes:
    return _Shapes({"shapes": job.shapes, "dynamic": True}).unrepaired(reason)


def _compile(job: Job, shapes: _Shapes, exact: ExactSizes | None, folder: Path,
             **request: Any) -> tuple[dict[str, Any], NodeRefused | None, _Shapes]:
    """What TVM made, with the refusal of a node whose result has a shape that depends on values,
    and as what shapes it was read.

    TVM's importer knows some such operators (NonZero, Unique, NonMaxSuppression), so that the
    network goes there as it is; nothing here looks through it, and it has to be compared.
    """
    while shapes.sizes is not None:
        try:
            return _call_tvm(job, shapes, exact, folder, **request), None, shapes
        except ToolError as error:
            shapes = _after(error, job, shapes, shapes.sizes)
    try:
        return _call_tvm(job, shapes, exact, folder, **request), None, shapes
    except NodeRefused as error:
        told = job.model.request()
        if error.kind != DATA_DEPENDENT or told.get("frozen") or told.get("outputs"):
            raise
        shapes = shapes.unrepaired(error.reason)
        try:
            return _call_tvm(job, shapes, exact, folder, **request), error, shapes
        except ToolError as second:
            raise ToolError(error.code, f"{error} As it is, {second}") from None
    except ToolError as error:
        if "unrepaired" not in shapes.told:
            raise
        raise ToolError(error.code, (
            f"{job.model.path} cannot be compiled with open extents: "
            f"{shapes.told['unrepaired'].rstrip('.')}. As it is, {str(error).rstrip('.')}. Leave "
            "--dynamic out and name sizes with --shape, or end the network before what is in the "
            "way (--outputs).")) from None


def _after(error: ToolError, job: Job, shapes: _Shapes, sizes: OpenSizes) -> _Shapes:
    """As what shapes a network is read next that could not be compiled for these sizes; raises the
    error where that is to be said."""
    differs = isinstance(error, tvm_process.SizesDiffer)
    if differs and (fewer := sizes.without_largest()) is not None:
        return _Shapes.at_several(fewer, shapes.instead)
    if shapes.instead is not None:
        return shapes.instead
    if not differs:
        raise error
    return _as_it_is(job, f"{sizes.reason}, and {error}")


def _open_outputs(job: Job, made: dict[str, Any]) -> None:
    """Extents that depend on values are those that the file leaves open: TVM says the largest."""
    for output, declared in zip(made["outputs"], job.model.output_shapes):
        output[1] = [extent if declared and at < len(declared) and declared[at] == extent else -1
                     for at, extent in enumerate(output[1])]


def _call_tvm(job: Job, shapes: _Shapes, exact: ExactSizes | None, folder: Path,
              **request: Any) -> dict[str, Any]:
    if exact is not None:
        request["exact"] = exact.request()
    return tvm_process.call(
        "compile_relax", job.tvm_python, compiler="relax", **shapes.told, opt_level=job.opt_level,
        optimize_for=job.optimize_for, directory=str(folder.resolve()),
        **job.model.request(), **request)


def _describe(job: Job, folder: Path, made: dict[str, Any]) -> dict[str, Any]:
    if len(made["outputs"]) != len(job.model.outputs):
        raise ToolError(MISMATCH, f"TVM made {len(made['outputs'])} outputs of "
                                  f"{job.model.path}, which has {len(job.model.outputs)}.")
    inputs = [Entry(name, tuple(shape), dtype) for name, shape, dtype in made["inputs"]]
    outputs = [Entry(name, tuple(shape), dtype)
               for name, (_, shape, dtype) in zip(job.model.outputs, made["outputs"])]
    library = folder / artifact.LIBRARY
    machine = artifact.library_machine(library)
    features = needed_features(made["llvm_features"], machine)
    metadata = {
        "schema_version": artifact.SCHEMA_VERSION,
        "model": job.name,
        "target": {"name": job.target.name, "tvm": made["target"], "machine": machine,
                   **({} if features is None else {"features": features})},
        "compiler": "relax",
        "tvm_version": made["tvm_version"],
        "inputs": [artifact.describe_input(entry, job.layouts) for entry in inputs],
        "outputs": [artifact.describe_output(entry) for entry in outputs],
        "preprocessing": job.preprocessing.to_json() if job.preprocessing else None,
        "source": job.model.source(),
        "files": {artifact.LIBRARY: artifact.describe_file(library)},
        "build_key": job.build_key(),
        "kernels": made["kernels"],
    }
    if made["unaligned_constants"]:
        metadata["source"].setdefault("notes", []).append(
            "constants are copied when it is loaded, which takes time and memory: they could not "
            f"be aligned in the library ({made['unaligned_constants']})")
    if job.labels:
        metadata["labels"] = job.labels
    describe_tasks(job, metadata)
    return metadata


def _verify(job: Job, shapes: _Shapes, exact: ExactSizes | None, folder: Path,
            made: dict[str, Any]) -> dict[str, Any]:
    """metadata's "verification"; raises ToolError where the artifact is wrong."""
    if not job.verified:
        return NOT_ASKED_FOR

    def host_plan(into: Path) -> str:
        lanes = made["kernels"].get("lanes")
        compiled = _call_tvm(job, shapes, exact, into, target="native", host_lanes=lanes,
                             kernels="ours" if lanes else "stock",
                             cc=os.environ.get("CXX") or "g++")
        return compiled["target"]

    def run(where: Path, machine: Machine, _: list[list[str]],
            inputs: list[verification.Tensors]) -> list[list[Any]]:
        return run_executable(where, machine, inputs, [name for name, *_ in made["inputs"]],
                              job.tvm_python)

    tried = [job.shapes]
    if job.dynamic:
        assert isinstance(job.model, OnnxModel)
        alone = exact or ExactSizes([], [])
        tried = (shapes_to_try(job.model, job.examples, alone.shapes) if shapes.sizes is None
                 else shapes.sizes.shapes_to_try(alone.sizes)) + alone.shapes
    as_it_is = "unrepaired" in shapes.told
    subject = verification.Subject(job.model, folder, tried[0], job.preprocessing, job.target.tvm,
                                   [[linker_of(job)]], host_plan, run, tuple(tried[1:]),
                                   pictures=pictures_to_try(job),
                                   of_values=dict.fromkeys(
                                       range(len(made["outputs"]) if as_it_is else 0)))
    try:
        found = verification.verify(subject, verification.TOLERANCE if job.tolerance is None
                                    else job.tolerance)
    except NotRun as error:
        return {"done": False, "reason": str(error)}
    if job.dynamic and found["done"]:
        found["shapes"] = tried
    return found
