"""What tuning has gained for a whole network: measured side by side, in one process."""

from __future__ import annotations

import math
import platform
from pathlib import Path
from statistics import median
from typing import Any

from run_model_tools import tvm_process
from run_model_tools.compiling.artifact import METADATA, read_metadata
from run_model_tools.compiling.job import Job, is_up_to_date
from run_model_tools.compiling.relay_job import compile_job
from run_model_tools.inside_tvm import cpu
from run_model_tools.progress import stage
from run_model_tools.targets import Target, named_targets
from run_model_tools.tuning import records, session
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


def variants(job: TuningJob, folder: Path, there: Path) -> dict[str, tuple[RecordFile, ...]]:
    """The ways to compile that the files of one folder allow: name -> files.

    there: the folder in which compile_model looks.  What it takes now for layers is a way too,
    "before", unless it is the same.
    """
    def record_file(place: Path, kind: str) -> RecordFile:
        return RecordFile(job.records(place, kind), job.family, job.target.name, kind)

    files = {kind: record_file(folder, kind) for kind in records.KINDS
             if job.records(folder, kind).exists()}
    by_layer = (files["autotvm"],) if "autotvm" in files else ()
    ways: dict[str, tuple[RecordFile, ...]] = {"untuned": ()}
    if by_layer:
        ways["autotvm"] = by_layer
        before = record_file(there, "autotvm")
        if before.path.exists() and not same_records(before.path, by_layer[0].path):
            ways["before"] = (before,)
    for kind in ("graph", "auto_scheduler", "metaschedule"):
        if kind in files:
            ways[kind] = (*by_layer, files[kind]) if kind == "graph" else (files[kind],)
    return ways


def same_records(one: Path, other: Path) -> bool:
    """Whether two files differ in their first lines at most."""
    return ([record.text for record in records.read(one)[1]]
            == [record.text for record in records.read(other)[1]])


def evaluate(job: TuningJob, folder: Path, seconds: float, there: Path) -> dict[str, Any]:
    """race() of the untuned network and every variant of the folder's files."""
    return race(job, variants(job, folder, there), job.log_dir / "evaluation", seconds)


def race(job: TuningJob, ways: dict[str, tuple[RecordFile, ...]], folder: Path,
         seconds: float) -> dict[str, Any]:
    """Compiles the network in several ways and runs them in turn for so many seconds, here or on
    the board behind the job's tracker; what is compiled stays in a folder for the next time.

    Gives for each way the median and least milliseconds, and `ratio`, the median of its time over
    the first one's in the same round; it is not above `ratio_most` with a confidence of 97.5 %.
    """
    out = folder / f"{job.family}.{job.target.name}"
    directories = []
    for name, files in ways.items():
        made = Job(name=name, model=job.model, target=job.target, out=out, shapes=job.shapes,
                   records=Selection(files, bool(files and job.target.device)), kernels="stock",
                   verified=False, cc=job.cc)
        if not is_up_to_date(made):
            compile_job(made)
        directories.append(str(made.directory.resolve()))
    metadata = read_metadata(Path(directories[0]) / METADATA) or {"inputs": []}
    inputs = {item["name"]: (item["shape"], item["dtype"]) for item in metadata["inputs"]}
    with stage(f"running {job.family} in {len(ways)} ways in turn"):
        times = tvm_process.call("race", None, environment=job.environment(),
                                 directories=directories, inputs=inputs, tracker=job.tracker,
                                 device=job.target.device, seconds=seconds)["milliseconds"]
    found = {}
    for name, samples in zip(ways, times):
        ratios = sorted(own / base for own, base in zip(samples, times[0]))
        # How many of so many samples lie below their median is binomial.
        place = math.ceil(len(ratios) / 2 + 0.98 * math.sqrt(len(ratios)))
        found[name] = {"median_ms": median(samples), "min_ms": min(samples), "runs": len(samples),
                       "ratio": median(ratios),
                       "ratio_most": ratios[min(place, len(ratios) - 1)]}
    return found


def settle(job: TuningJob, candidates: Path, folder: Path,
           measured: dict[str, Any]) -> dict[str, Any]:
    """Puts into place what was measured to make the whole network faster, and nothing else.

    Of the kinds that serve a whole network, the fastest stays if it beats the layers' own records;
    files of the others are removed, and so are the layers' records of before where the untuned
    network is faster.  A file says in its first line what was measured.  Gives {kind: what became
    of it}.
    """
    def surely(kind: str) -> bool:
        return measured[kind]["ratio_most"] < 1 if kind in measured else False

    outcome = {}
    before = measured.get("before", {"ratio": 1.0})["ratio"]
    by_layer = measured.get("autotvm", {"ratio": 1.0})["ratio"]
    kept_by_layer = by_layer < min(1.0, before) * (1 - LEAST_GAIN) and surely("autotvm")
    reached = by_layer if kept_by_layer else min(1.0, before)
    whole = {kind: measured[kind]["ratio"] for kind in records.KINDS[1:] if kind in measured}
    best = min(whole, key=whole.__getitem__) if whole else None
    for kind in records.KINDS:
        if kind not in measured:
            continue
        place, candidate = job.records(folder, kind), job.records(candidates, kind)
        keeps = kept_by_layer if kind == "autotvm" else (
            kind == best and whole[kind] < reached * (1 - LEAST_GAIN) and surely(kind))
        if keeps:
            header, best_records, _ = records.read(candidate)
            header["whole_network"] = of_whole_network(measured, kind)
            records.write(place, header, best_records)
            outcome[kind] = "kept"
            continue
        slower = (before if "before" in measured else by_layer) > 1 + LEAST_GAIN
        if kind != "autotvm" or (slower and is_of_this_machine(job, place)):
            place.unlink(missing_ok=True)
        outcome[kind] = "no gain for the whole network: left in " + str(candidates)
    return outcome


def is_of_this_machine(job: TuningJob, path: Path) -> bool:
    """Whether a file's times were measured where the job measures; of no file, False."""
    return path.exists() and all(
        value == records.read_header(path).get(key)
        for key, value in session.header(job, "autotvm", None).items()
        if key in ("measured_on", "threads"))


def of_whole_network(measured: dict[str, Any], kind: str) -> dict[str, float]:
    """What a file of records says of its network: its time in milliseconds with the file and
    without any, and the ratio of both."""
    return {"ms": round(measured[kind]["median_ms"], 4),
            "untuned_ms": round(measured["untuned"]["median_ms"], 4),
            "ratio": round(measured[kind]["ratio"], 4),
            "ratio_most": round(measured[kind]["ratio_most"], 4)}
