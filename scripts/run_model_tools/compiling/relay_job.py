"""A trained network -> the files of an artifact by TVM 0.18: compiles, aligns, describes, compares,
and puts in place."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools import cuda_compiler, params_file, tvm_process
from run_model_tools.compiling import artifact, c_target, calibration_pictures, forms
from run_model_tools.compiling.calibration_pictures import CalibrationViews
from run_model_tools.compiling.cpu_features import needed_features
from run_model_tools.compiling.graph_file import Graph, read_graph
from run_model_tools.compiling.job import (
    NOT_ASKED_FOR,
    ROUNDED,
    Job,
    check_compiler,
    describe_tasks,
    linker_of,
    pictures_to_try,
)
from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.files import (
    copy_atomically,
    directory_in_the_making,
    json_text,
    write_atomically,
)
from run_model_tools.progress import stage
from run_model_tools.verifying import judged, verification
from run_model_tools.verifying.agreement import AGREEMENT
from run_model_tools.verifying.device_execution import run_on_device
from run_model_tools.verifying.execution import NotRun
from run_model_tools.verifying.inputs import split_pictures


def compile_job(job: Job) -> dict[str, Any]:
    """Makes the artifact and gives the report.  On failure, what was there before is unchanged.

    Forms that the artifact has already are made again with it, since they are to stay equal.
    """
    seconds = {}
    title = f"{job.name} for {job.target.name}"
    there = forms.present(artifact.read_metadata(job.directory / artifact.METADATA))
    job = replace(job, forms=tuple(f for f in forms.ALL if f in job.forms or f in there))
    cc = linker_of(job)
    if not job.is_c:
        check_compiler(cc, job.target)
    views, pictures = _calibration_views(job), pictures_to_try(job)
    with directory_in_the_making(job.directory, artifact.ALL_FILES) as folder, \
            tempfile.TemporaryDirectory(prefix="run_model-") as scratch:
        start = time.monotonic()
        with stage(f"compiling {title}") as tell:
            source = _source(job, Path(scratch), views)
            made = _call_tvm(
                job, folder, source, on_event=lambda event: tell(event["at"]),
                target=job.target.tvm, host=job.target.host, kernels=job.kernels,
                tuning=job.records.request(), cc=cc, single_file=job.single_file,
                forms=job.possible_forms(),
                form_paths={form: forms.paths(form, job.name) for form in job.possible_forms()})
            files = c_target.add_build_files(folder) if job.is_c else []
            if job.is_c and job.build_c:
                c_target.build(folder, job.cc, job.c_flags)
        seconds["compile"] = round(time.monotonic() - start, 3)
        forms.arrange(folder, job.possible_forms(), job.name)
        graph = _align_params(folder, job.model.outputs)
        # A library of C source is not listed: any compiler may put its own in its place.
        if not job.is_c:
            files.append(artifact.LIBRARY)
        files += [artifact.GRAPH, artifact.PARAMS]
        if job.single_file and not job.is_c:
            files.append(artifact.SINGLE_FILE)
        metadata = _describe(job, folder, graph, made, files)
        start = time.monotonic()
        with stage(f"running {title} and comparing it"):
            metadata["verification"] = _verify(
                job, folder, made, cc, views, pictures, source)
        seconds["verify"] = round(time.monotonic() - start, 3)
        (folder / artifact.METADATA).write_text(json_text(metadata))
    if job.flat:
        _write_flat(job, metadata)
    return {"metadata": metadata, "verification": metadata["verification"], "seconds": seconds}


def _source(job: Job, scratch: Path, views: CalibrationViews | None) -> dict[str, Any]:
    """What the worker is told of the network, which it may be asked to compile more than once."""
    source: dict[str, Any] = {**job.model.request(), "shapes": job.shapes, "calibration": None}
    if views is not None:
        paths = {part: str(scratch / f"{part}.npz") for part in ("views", "pictures")}
        np.savez(paths["views"], **views.inputs)
        np.savez(paths["pictures"], pictures=views.pictures)
        source["calibration"] = {
            **paths, "agreement": AGREEMENT if job.agreement is None else job.agreement,
            "least": job.least_agreement, "error": job.allowed,
            "stated": judged.stated(job.tasks, job.model.outputs)}
    return tvm_process.with_repaired_model(source, scratch)


def _call_tvm(job: Job, folder: Path, source: dict[str, Any], **request: Any) -> dict[str, Any]:
    """Has the worker compile the job's network into a folder, as the request says."""
    if job.target.device == "cuda":
        request["libraries"] = cuda_compiler.libraries()
    return tvm_process.call(
        "compile", job.tvm_python, opt_level=job.opt_level, precision=job.precision,
        optimize_for=job.optimize_for, directory=str(folder.resolve()), **source, **request)


def _calibration_views(job: Job) -> CalibrationViews | None:
    """What a network of 8 bits is calibrated with and judged on; None for another one."""
    if job.calibration is None:
        return None
    name = calibration_pictures.only_input(job.shapes, "--precision int8")
    return calibration_pictures.input_tensors(job.calibration, job.preprocessing, name,
                                              job.shapes[name], job.layout(name))


def _verify(job: Job, folder: Path, made: dict[str, Any], cc: str,
            views: CalibrationViews | None, pictures: list[dict[str, np.ndarray]],
            source: dict[str, Any]) -> dict[str, Any]:
    """metadata's "verification"; raises ToolError where the artifact is wrong."""
    if not job.verified:
        return NOT_ASKED_FOR
    compilers = [[cc]]
    if job.is_c:
        compilers = [[*shlex.split(job.cc or os.environ.get("CC") or "cc"),
                      *shlex.split(job.c_flags or "")]]

    def on_device(given: list[dict[str, np.ndarray]]
                  ) -> tuple[list[list[np.ndarray]], dict[str, Any]]:
        return _run_on_device(job, folder, source, given)

    def host_plan(into: Path) -> str:
        return _compile_for_this_machine(job, folder, into, made, source)

    subject = verification.Subject(job.model, folder, job.shapes, job.preprocessing,
                                   job.target.tvm, compilers, host_plan,
                                   pictures=pictures,
                                   on_device=on_device if job.target.device else None,
                                   of_values={index: head for index, head in enumerate(
                                       source.get("counted_outputs", ())[::2]) if head >= 0})
    try:
        if views is not None:
            return verification.verify_int8(subject, split_pictures(views.shuffled()), job.allowed,
                                            job.least_agreement,
                                            judged.stated(job.tasks, job.model.outputs))
        if job.precision in ROUNDED:
            return verification.verify_rounded(subject, job.allowed, job.precision)
        return verification.verify(subject, job.allowed)
    except NotRun as error:
        return {"done": False, "reason": str(error)}


def _compile_for_this_machine(job: Job, folder: Path, into: Path, made: dict[str, Any],
                              source: dict[str, Any]) -> str:
    """Makes the artifact's plan run here, if its own code does not: verification.HostPlan."""
    if job.is_c:
        shutil.copytree(folder, into, dirs_exist_ok=True)
        c_target.build(into, None, None)
        return "the same source, compiled by this machine's compiler"
    cc = os.environ.get("CXX") or "g++"
    if shutil.which(cc) is None:
        raise NotRun(f"the compiler {cc}, which links for this machine, was not found")
    ours = made["kernels"]["method"] == "ours"
    lanes = made["kernels"]["lanes"] if ours else None
    if "kept_float32" in made["kernels"]:
        kept = [one["layer"] for one in made["kernels"]["kept_float32"]]
        source = {**source, "calibration": {**source["calibration"], "kept": kept}}
    compiled = _call_tvm(job, into, source, target="native", host_lanes=lanes,
                         kernels="ours" if ours else "stock", cc=cc,
                         tuning={"files": [], "explicit": False})
    return compiled["target"]


def _run_on_device(job: Job, folder: Path, source: dict[str, Any],
                   given: list[dict[str, np.ndarray]],
                   ) -> tuple[list[list[np.ndarray]], dict[str, Any]]:
    """verification.DeviceRunner: where the host code is for another CPU, the same kernels started
    by code for this one."""
    device = job.target.device or ""
    if artifact.library_machine(folder / artifact.LIBRARY) == platform.machine():
        results, name = run_on_device(folder, device, given, job.tvm_python)
        return results, {"where": device, "device": name}
    with tempfile.TemporaryDirectory(prefix="run_model-") as scratch:
        made = _call_tvm(job, Path(scratch), source, target=job.target.tvm, host="llvm",
                         kernels="stock", tuning=job.records.request(),
                         cc=os.environ.get("CXX") or "g++")
        results, name = run_on_device(Path(scratch), device, given, job.tvm_python)
        return results, {"where": device, "device": name, "host_plan": made["target"]}


def _align_params(folder: Path, outputs: list[str]) -> Graph:
    """Rewrites model.params aligned, its tensors in the order in which the graph lists them."""
    path = folder / artifact.PARAMS
    tensors = params_file.read_params_file(path)
    graph = read_graph((folder / artifact.GRAPH).read_text(), tensors.keys(), outputs)
    unused = sorted(set(tensors) - set(graph.parameters))
    if unused:
        raise ToolError(MISMATCH, f"TVM wrote parameters that its graph does not use: "
                                  f"{', '.join(unused)}.")
    path.unlink()
    with open(path, "wb") as file:
        file.writelines(params_file.aligned(graph.parameters, tensors.__getitem__))
    return graph


def _describe(job: Job, folder: Path, graph: Graph, made: dict[str, Any],
              files: list[str]) -> dict[str, Any]:
    scales = {item.name: item.scale for item in job.model.inputs}
    metadata = {
        "schema_version": artifact.SCHEMA_VERSION,
        "model": job.name,
        "target": {"name": job.target.name, "tvm": made["target"]},
        "tvm_version": made["tvm_version"],
        "inputs": [artifact.describe_input(entry, job.layouts, scales.get(entry.name))
                   for entry in graph.inputs],
        "outputs": [artifact.describe_output(*one)
                    for one in zip(graph.outputs, job.model.output_scales)],
        "preprocessing": job.preprocessing.to_json() if job.preprocessing else None,
        "source": job.model.source(),
        "files": {**{name: artifact.describe_file(folder / name) for name in files},
                  **forms.describe(folder, job.possible_forms(), job.name)},
        "build_key": job.build_key(),
    }
    metadata["kernels"] = made["kernels"]
    if made.get("plain_schedules"):
        metadata["plain_schedules"] = made["plain_schedules"]
    tuned = job.records.describe(made["tuning"])
    if tuned is not None:
        metadata["tuning"] = tuned
    if (folder / artifact.LIBRARY).exists():
        machine = artifact.library_machine(folder / artifact.LIBRARY)
        metadata["target"]["machine"] = machine
        features = needed_features(made["llvm_features"], machine)
        if features is not None:
            metadata["target"]["features"] = features
    if job.target.device:
        metadata["device"] = job.target.device
        metadata["device_needs"] = {**(job.target.needs or {}), **made["device"]}
    if job.labels:
        metadata["labels"] = job.labels
    describe_tasks(job, metadata)
    return metadata


def _write_flat(job: Job, metadata: dict[str, Any]) -> None:
    names = job.flat_names()
    for name in (artifact.LIBRARY, artifact.GRAPH, artifact.PARAMS):
        copy_atomically(job.directory / name, job.out / names[name])
    flat = dict(metadata)
    flat["files"] = {names[name]: described for name, described in metadata["files"].items()
                     if name in names}
    # Of C source, any library may take the artifact's place, but these names have no source.
    flat["files"][names[artifact.LIBRARY]] = artifact.describe_file(
        job.directory / artifact.LIBRARY)
    write_atomically(job.out / names[artifact.METADATA], json_text(flat).encode())
