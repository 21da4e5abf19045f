"""ONNX -> the files of an artifact: compiles, aligns, describes, compares, and puts in place."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_model_tools import artifact, params_file, tvm_process, verification
from run_model_tools.cpu_features import needed_features
from run_model_tools.errors import MISMATCH, USAGE, ToolError
from run_model_tools.files import copy_atomically, directory_in_the_making, sha256_of, \
    write_atomically
from run_model_tools.graph_file import Graph, read_graph
from run_model_tools.json_text import to_text
from run_model_tools.onnx_model import OnnxModel
from run_model_tools.preprocessing import Preprocessing
from run_model_tools.progress import stage
from run_model_tools.targets import Target

# Raised when the same request would give other files than before.
_RECIPE = 2


@dataclass(frozen=True)
class Job:
    """Everything that decides what an artifact holds, and where it goes."""

    name: str
    model: OnnxModel
    target: Target
    out: Path
    shapes: dict[str, tuple[int, ...]]
    preprocessing: Preprocessing | None = None
    labels: str | None = None
    layouts: dict[str, str] = field(default_factory=dict)
    opt_level: int = 3
    tuning_records: Path | None = None
    cc: str | None = None
    flat: bool = False
    single_file: bool = False
    tolerance: float | None = 1e-3
    """Allowed difference from ONNX Runtime, native targets only; None compares nothing."""
    tvm_python: str | None = None

    @property
    def directory(self) -> Path:
        """Where the artifact's folder is."""
        return self.out / self.name / self.target.name

    def flat_names(self) -> dict[str, str]:
        """The older form's file names, by the names in metadata.json."""
        return {artifact.LIBRARY: f"{self.name}_tvm.so", artifact.GRAPH: f"{self.name}_tvm.json",
                artifact.PARAMS: f"{self.name}_tvm.params",
                artifact.METADATA: f"{self.name}_tvm.metadata.json"}

    def build_key(self) -> str:
        """Equal keys mean equal files; a native one depends on the CPU."""
        cpu = None
        if self.target.is_native:
            with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
                cpu = sorted({line.strip() for line in file
                              if line.startswith(("model name", "flags", "Features", "CPU part"))})
        parts = [_RECIPE, self.name, self.model.sha256, *self.model.data_sha256, self.target.tvm,
                 sorted(self.shapes.items()),
                 self.preprocessing.to_json() if self.preprocessing else None, self.labels,
                 sorted(self.layouts.items()), self.opt_level, self.cc, self.single_file,
                 sha256_of(self.tuning_records) if self.tuning_records else None,
                 tvm_process.identity(self.tvm_python), cpu, platform.machine()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def is_up_to_date(job: Job) -> bool:
    """Whether the files that the job would make are there, untouched."""
    metadata = artifact.read_metadata(job.directory / artifact.METADATA)
    if metadata is None or metadata.get("build_key") != job.build_key():
        return False
    if not artifact.files_match(job.directory, metadata):
        return False
    if not job.flat:
        return True
    names = job.flat_names()
    flat = artifact.read_metadata(job.out / names[artifact.METADATA])
    return (flat is not None and flat.get("build_key") == job.build_key()
            and artifact.files_match(job.out, flat, names))


def compile_job(job: Job) -> dict[str, Any]:
    """Makes the artifact and gives the report.  On failure, what was there before is unchanged."""
    seconds = {}
    title = f"{job.name} for {job.target.name}"
    cc = job.cc or job.target.compiler() or os.environ.get("CXX") or "g++"
    _check_compiler(cc, job.target)
    with directory_in_the_making(job.directory, artifact.ALL_FILES) as folder:
        start = time.monotonic()
        with stage(f"compiling {title}"):
            made = tvm_process.call(
                "compile", job.tvm_python, onnx=str(job.model.path.resolve()),
                target=job.target.tvm, shapes=job.shapes, opt_level=job.opt_level,
                tuning_records=str(job.tuning_records.resolve()) if job.tuning_records else None,
                cc=cc, directory=str(folder.resolve()), single_file=job.single_file)
        seconds["compile"] = round(time.monotonic() - start, 3)
        graph = _align_params(folder, job.model.outputs)
        checked: dict[str, Any] = {"done": False, "reason": "not asked for"}
        if job.tolerance is not None and not job.target.is_native:
            checked["reason"] = "only native artifacts are run here"
        elif job.tolerance is not None:
            start = time.monotonic()
            with stage(f"comparing {title} with ONNX Runtime"):
                checked = verification.verify(job.model, folder, job.shapes, job.preprocessing,
                                              job.tolerance, job.tvm_python)
            seconds["verify"] = round(time.monotonic() - start, 3)
        metadata = _describe(job, folder, graph, made)
        (folder / artifact.METADATA).write_text(to_text(metadata))
    if job.flat:
        _write_flat(job, metadata)
    return {"metadata": metadata, "verification": checked, "seconds": seconds}


def _check_compiler(cc: str, target: Target) -> None:
    if shutil.which(cc) is None:
        package = "g++-" + cc.rsplit("-g++", 1)[0] if cc.endswith("-g++") else cc
        raise ToolError(USAGE, f"the compiler {cc}, which links for {target.name}, was not found: "
                               f"install it (Debian: apt-get install {package}), or name another "
                               "with --cc.")


def _align_params(folder: Path, outputs: list[str]) -> Graph:
    """Rewrites model.params aligned, its tensors in the order in which the graph lists them."""
    path = folder / artifact.PARAMS
    tensors = params_file.read_params(path.read_bytes(), str(path))
    graph = read_graph((folder / artifact.GRAPH).read_text(), tensors.keys(), outputs)
    unused = sorted(set(tensors) - set(graph.parameters))
    if unused:
        raise ToolError(MISMATCH, f"TVM wrote parameters that its graph does not use: "
                                  f"{', '.join(unused)}.")
    path.write_bytes(params_file.write_aligned((name, tensors[name]) for name in graph.parameters))
    return graph


def _describe(job: Job, folder: Path, graph: Graph, made: dict[str, Any]) -> dict[str, Any]:
    files = [artifact.LIBRARY, artifact.GRAPH, artifact.PARAMS]
    if job.single_file:
        files.append(artifact.SINGLE_FILE)
    metadata = {
        "schema_version": artifact.SCHEMA_VERSION,
        "model": job.name,
        "target": {"name": job.target.name, "tvm": made["target"],
                   "machine": artifact.library_machine(folder / artifact.LIBRARY)},
        "tvm_version": made["tvm_version"],
        "inputs": [artifact.describe_input(entry, job.layouts) for entry in graph.inputs],
        "outputs": [artifact.describe_output(entry) for entry in graph.outputs],
        "preprocessing": job.preprocessing.to_json() if job.preprocessing else None,
        "source": {"onnx_sha256": job.model.sha256, "onnx_opset": job.model.opset},
        "files": {name: artifact.describe_file(folder / name) for name in files},
        "build_key": job.build_key(),
    }
    features = needed_features(made["llvm_features"], metadata["target"]["machine"])
    if features is not None:
        metadata["target"]["features"] = features
    if job.labels:
        metadata["labels"] = job.labels
    return metadata


def _write_flat(job: Job, metadata: dict[str, Any]) -> None:
    names = job.flat_names()
    for name in (artifact.LIBRARY, artifact.GRAPH, artifact.PARAMS):
        copy_atomically(job.directory / name, job.out / names[name])
    flat = dict(metadata)
    flat["files"] = {name: described for name, described in metadata["files"].items()
                     if name in names}
    write_atomically(job.out / names[artifact.METADATA], to_text(flat).encode())
