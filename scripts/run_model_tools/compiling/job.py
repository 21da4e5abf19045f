"""What is to be compiled, how, and for what; and whether that was done before."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools import environment, relax_compiler, tvm_process
from run_model_tools.compiling import (
    artifact,
    c_target,
    calibration_pictures,
    device_options,
    forms,
)
from run_model_tools.errors import USAGE, ToolError
from run_model_tools.files import sources_hash
from run_model_tools.kernels.convolutions import winograd_bytes
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.source_model import SourceModel
from run_model_tools.targets import Target
from run_model_tools.tasks.fit import Output, check_fit
from run_model_tools.tuning.selection import Selection
from run_model_tools.verifying import verification
from run_model_tools.verifying.agreement import ERROR, LEAST

# Raised when the same request would give other files than before.
_RECIPE = 5

# Precisions that round what float32 has: another network, judged by its root mean square error.
ROUNDED = ("float16", "bfloat16")


@dataclass(frozen=True)
class Job:
    """Everything that decides what an artifact holds, and where it goes."""

    name: str
    model: SourceModel
    target: Target
    out: Path
    shapes: dict[str, tuple[int, ...]]
    preprocessing: Preprocessing | None = None
    labels: str | None = None
    tasks: list[dict[str, Any]] | None = None
    """What the outputs mean (tasks/description.py)."""
    layouts: dict[str, str] = field(default_factory=dict)
    opt_level: int = 3
    records: Selection = Selection()
    """The tuning records that are looked through (tuning/selection.choose)."""
    kernels: str = "auto"
    """"ours", "stock" (TVM's schedules) or "auto": ours where they are of use."""
    optimize_for: str = winograd_bytes.SPEED
    """Of winograd_bytes.GOALS: whether our kernels may take memory to save time."""
    precision: str = "float32"
    """"int8": layers of 8 bits, calibrated with the pictures of the folder `calibration`;
    "float16": layers in half precision; "bfloat16": products of such numbers."""
    calibration: Path | None = None
    agreement: float | None = None
    """With it: the share of views for which the best class has to be float32's; None stands for
    agreement.AGREEMENT, or down to agreement.LEAST where that would cost too much time."""
    cc: str | None = None
    flat: bool = False
    single_file: bool = False
    forms: tuple[str, ...] = ()
    """Further forms to make, of forms.ALL; those that the target has none of are left out."""
    build_c: bool = True
    """Target c: whether a library is built of the source here, with `cc` and `c_flags`."""
    c_flags: str | None = None
    verified: bool = True
    """Whether what was compiled is executed and compared before it is put in place."""
    verify_with: Path | None = None
    """A folder of pictures to compare it on, besides random inputs."""
    tolerance: float | None = None
    """Allowed difference; None stands for verification.TOLERANCE, HALF_TOLERANCE or
    agreement.ERROR."""
    tvm_python: str | None = None
    compiler: str = "relay"
    """"relay", a graph and its parameters (relay_job.py); "relax", one library (relax_job.py)."""
    dynamic: bool = False
    """With Relax: extents that the model leaves open stay open, -1 in `shapes`."""
    examples: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Shapes at which such a network is tried, where the user said any."""
    exact: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = ()
    """Sizes for which it has functions of its own (exact_sizes.parse_exact)."""
    notes: tuple[str, ...] = ()
    """For people: where preprocessing and tasks were found."""

    @property
    def directory(self) -> Path:
        """Where the artifact's folder is."""
        return self.out / self.name / self.target.name

    @property
    def is_c(self) -> bool:
        """Whether the artifact is C source."""
        return c_target.is_c(self.target.tvm)

    @property
    def allowed(self) -> float:
        """The difference from the reference that is allowed."""
        if self.tolerance is not None:
            return self.tolerance
        if self.precision in ROUNDED:
            return verification.HALF_TOLERANCE
        return verification.TOLERANCE if self.calibration is None else ERROR

    @property
    def least_agreement(self) -> float:
        """The share of views for which the best class of a network of 8 bits has to be right."""
        return LEAST if self.agreement is None else self.agreement

    def layout(self, name: str) -> str:
        """Of an input: as it was said, as its shape tells, or as it is with such models."""
        return (self.layouts.get(name) or artifact.guess_layout(self.shapes[name])
                or self.model.default_layout)

    def possible_forms(self) -> tuple[str, ...]:
        """Those of the forms asked for that the target has."""
        if self.target.device:
            return device_options.possible_forms(self.forms)
        return forms.possible(self.forms, self.is_c, self.build_c)

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
        parts = [_RECIPE, self.name, *self.model.key(), self.target.tvm,
                 sorted(self.shapes.items()),
                 self.preprocessing.to_json() if self.preprocessing else None, self.labels,
                 sorted(self.layouts.items()), self.opt_level, self.cc, self.single_file,
                 self.records.key(), self.kernels,
                 None if self.kernels == "stock" or self.is_c else _kernel_sources(),
                 tvm_process.identity(self.tvm_python), cpu, platform.machine()]
        if self.tasks is not None:
            parts += ["tasks", self.tasks]
        if self.calibration is not None:
            parts += [self.precision, calibration_pictures.digest(self.calibration),
                      self.agreement, self.allowed]
        if self.verify_with is not None:
            parts += ["verified with", calibration_pictures.digest(self.verify_with)]
        if self.precision in ROUNDED:
            parts += [self.precision]
        if self.optimize_for != winograd_bytes.SPEED:
            parts += ["optimized for", self.optimize_for]
        if self.compiler == "relax":
            parts += ["relax", self.dynamic, sources_hash(environment.PACKAGE / "inside_tvm/relax"),
                      relax_compiler.REQUIREMENTS.read_text()]
        if self.exact:
            parts += ["exact", self.exact]
        if self.target.device:
            parts += ["device", self.target.host, self.target.needs,
                      sources_hash(environment.PACKAGE / "inside_tvm/devices")]
        if self.is_c:
            parts += ["library unlisted", self.build_c, self.c_flags]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _kernel_sources() -> str:
    """A hash of everything that decides what our kernels are."""
    return sources_hash(environment.DATA_ROOT / "kernels", environment.PACKAGE / "kernels")


NOT_ASKED_FOR = {"done": False, "reason": "not asked for"}


def is_up_to_date(job: Job) -> bool:
    """Whether the files that the job would make are there, untouched."""
    metadata = artifact.read_metadata(job.directory / artifact.METADATA)
    if metadata is None or metadata.get("build_key") != job.build_key():
        return False
    if job.verified and metadata.get("verification") == NOT_ASKED_FOR:
        return False
    if not set(job.possible_forms()) <= set(forms.present(metadata)):
        return False
    if not artifact.files_match(job.directory, metadata):
        return False
    if job.is_c and job.build_c and not (job.directory / artifact.LIBRARY).is_file():
        return False
    if not job.flat:
        return True
    names = job.flat_names()
    flat = artifact.read_metadata(job.out / names[artifact.METADATA])
    return (flat is not None and flat.get("build_key") == job.build_key()
            and artifact.files_match(job.out, flat))


def pictures_to_try(job: Job) -> list[dict[str, np.ndarray]]:
    """What --verify-with has it compared on; of a network for any shape, at that of --shape."""
    if job.verify_with is None:
        return []
    shapes = job.examples or job.shapes
    name = calibration_pictures.only_input(job.shapes, "--verify-with")
    item, = job.model.inputs
    return calibration_pictures.tried_pictures(job.verify_with, job.preprocessing, item,
                                               shapes[name], job.layout(name))


def linker_of(job: Job) -> str:
    """What links the library."""
    return job.cc or job.target.compiler() or os.environ.get("CXX") or "g++"


def check_compiler(cc: str, target: Target) -> None:
    if shutil.which(cc) is None:
        package = "g++-" + cc.rsplit("-g++", 1)[0] if cc.endswith("-g++") else cc
        raise ToolError(USAGE, f"the compiler {cc}, which links for {target.name}, was not found: "
                               f"install it (Debian: apt-get install {package}), or name another "
                               "with --cc.")


def describe_tasks(job: Job, metadata: dict[str, Any]) -> None:
    """Adds "tasks", which have to fit the outputs that the artifact turned out to have."""
    if job.tasks is None:
        return
    check_fit(job.tasks, [
        Output(item["name"], tuple(None if d < 0 else d for d in item["shape"]), item["dtype"])
        for item in metadata["outputs"]], str(job.model.path))
    metadata["tasks"] = job.tasks
