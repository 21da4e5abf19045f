"""What tuning has gained for a whole network: measured side by side, in one process."""

from __future__ import annotations

import platform
from pathlib import Path
from statistics import median
from typing import Any

from run_model_tools import tvm_process
from run_model_tools.compiling.artifact import METADATA, read_metadata
from run_model_tools.compiling.job import Job, compile_job
from run_model_tools.files import write_atomically
from run_model_tools.inside_tvm import cpu
from run_model_tools.targets import Target, named_targets
from run_model_tools.tuning import records
from run_model_tools.tuning.selection import RecordFile, Selection
from run_model_tools.tuning.session import TuningJob

_X86 = ("x86_64", "x86_64_v2", "x86_64_v3", "x86_64_v4")

# A gain below this is not told from noise, and not worth a file.
LEAST_GAIN = 0.01


def can_run_here(target: Target) -> bool:
    """Whether this machine runs a named target's code."""
    named = named_targets().get(target.name)
    if named is None or named.machine != platform.machine():
        return False
    if named.machine != "x86_64":
        return True
    level = cpu.x86_level(cpu.cpu_flags()).replace("-", "_")
    return _X86.index(target.name) <= _X86.index(level)


def variants(job: TuningJob, folder: Path) -> dict[str, tuple[RecordFile, ...]]:
    """The ways to compile that the files of one folder allow: name -> files."""
    files = {kind: RecordFile(job.records(folder, kind), job.family, job.target.name, kind)
             for kind in records.KINDS if job.records(folder, kind).exists()}
    by_layer = (files["autotvm"],) if "autotvm" in files else ()
    ways: dict[str, tuple[RecordFile, ...]] = {"untuned": ()}
    if by_layer:
        ways["autotvm"] = by_layer
    for kind in ("graph", "auto_scheduler", "metaschedule"):
        if kind in files:
            ways[kind] = (*by_layer, files[kind]) if kind == "graph" else (files[kind],)
    return ways


def evaluate(job: TuningJob, folder: Path, seconds: float) -> dict[str, Any]:
    """Compiles every variant of the folder's files and runs them in turn for so many seconds.

    Each is compared with ONNX Runtime by the compilation, where it can be.  Gives the median and
    least milliseconds of each, and `ratio`, the median of its time over the untuned one's in the
    same round.
    """
    out = job.log_dir / "evaluation" / f"{job.family}.{job.target.name}"
    ways = variants(job, folder)
    directories = []
    for name, files in ways.items():
        made = Job(name=name, model=job.model, target=job.target, out=out, shapes=job.shapes,
                   records=Selection(files), kernels="stock", verified=False)
        compile_job(made)
        directories.append(str(made.directory.resolve()))
    metadata = read_metadata(Path(directories[0]) / METADATA) or {"inputs": []}
    inputs = {item["name"]: (item["shape"], item["dtype"]) for item in metadata["inputs"]}
    times = tvm_process.call("race", None, environment=job.environment(),
                             directories=directories, inputs=inputs, tracker=job.tracker,
                             seconds=seconds)["milliseconds"]
    return {name: {"median_ms": median(samples), "min_ms": min(samples), "runs": len(samples),
                   "ratio": median(own / base for own, base in zip(samples, times[0]))}
            for name, samples in zip(ways, times)}


def settle(job: TuningJob, candidates: Path, folder: Path,
           measured: dict[str, Any]) -> dict[str, Any]:
    """Puts into place what was measured to make the whole network faster, and nothing else.

    Of the kinds that serve a whole network, the fastest stays if it beats the layers' own records;
    files of the others are removed.  Gives {kind: what became of it}.
    """
    outcome = {}
    by_layer = measured.get("autotvm", {"ratio": 1.0})["ratio"]
    whole = {kind: measured[kind]["ratio"] for kind in records.KINDS[1:] if kind in measured}
    best = min(whole, key=whole.__getitem__) if whole else None
    for kind in records.KINDS:
        if kind not in measured:
            continue
        ratio = measured[kind]["ratio"]
        bar = 1.0 if kind == "autotvm" else min(1.0, by_layer)
        place = job.records(folder, kind)
        if ratio < bar * (1 - LEAST_GAIN) and (kind == "autotvm" or kind == best):
            write_atomically(place, job.records(candidates, kind).read_bytes())
            outcome[kind] = "kept"
        else:
            if kind != "autotvm":
                place.unlink(missing_ok=True)
            outcome[kind] = "no gain for the whole network: left in " + str(candidates)
    return outcome
