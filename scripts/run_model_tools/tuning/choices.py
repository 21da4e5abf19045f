"""Measures which of this project's kernels are best for a network's layers, and keeps the
choice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from run_model_tools import tvm_process
from run_model_tools.files import json_text, locked, write_atomically
from run_model_tools.kernels.choices import SCHEMA_VERSION
from run_model_tools.tuning import session
from run_model_tools.tuning.progress import Progress
from run_model_tools.tuning.session import TuningJob


def choose(job: TuningJob, folder: Path, options: int, seconds: float,
           real_time: bool = False) -> dict[str, Any]:
    """Measures every layer with at most `options` kernels, and then the whole network.

    Writes FAMILY.TARGET.json into `folder` if the network is not slower with it than with the
    kernels' guesses, and than with what is committed.  Gives a report.
    """
    machine = session.machine_name(job)
    progress = Progress(f"{job.family} for {job.target.name}, our kernels", 0)
    request = {**replace(job, minutes=0).request("kernels"), "options": options, "seconds": seconds,
               "real_time": real_time, "measured_on": machine}
    with locked(job.log_dir / f".{job.family}.{job.target.name}.lock"):
        try:
            found = tvm_process.call("tune_kernels", None, environment=job.environment(),
                                     on_event=progress, **request)
        finally:
            progress.finish()
    base = found["seconds"]["guess"]
    network = {name: {"median_ms": round(1e3 * median(times), 4),
                      "ratio": round(median(own / guess for own, guess in zip(times, base)), 4)}
               for name, times in found["seconds"].items()}
    report = {"family": job.family, "target": job.target.name,
              "instruction_set": found["instruction_set"], "threads": job.threads,
              "measured_on": machine, "network": network, "layers": found["layers"]}
    return {**report, "outcome": settle(report, folder / f"{job.family}.{job.target.name}.json")}


def settle(report: dict[str, Any], path: Path) -> str:
    """Writes the file if it is a gain for the whole network; says what became of it."""
    network = report["network"]
    if not any(layer["kept"] for layer in report["layers"].values()):
        return "the guesses are the best: nothing to keep"
    bar = min([1.0] + [way["ratio"] for name, way in network.items() if name == "committed"])
    if network["chosen"]["ratio"] > bar:
        return "no gain for the whole network: not kept"
    layers = {key: {name: layer[name] for name in ("kernel", "parameters", "microseconds",
                                                   "guess_microseconds")}
              for key, layer in sorted(report["layers"].items()) if layer["kept"]}
    write_atomically(path, json_text({"schema_version": SCHEMA_VERSION, **report,
                                      "layers": layers}).encode())
    return f"in {path}"


def print_report(report: dict[str, Any]) -> None:
    """For a person: a line for each layer, the times of the network and what became of the
    choice."""
    if "skipped" in report:
        print(f"our kernels: not measured, {report['skipped']}")
        return
    print(f"our kernels for {report['instruction_set']} (*: makes the whole network faster):")
    for key, layer in report["layers"].items():
        gain = layer["guess_microseconds"] / layer["microseconds"]
        print(f"{'*' if layer['kept'] else ' '} {layer['microseconds']:8.1f} us, guess {gain:5.2f} "
              f"of that, {layer['tried']} of {layer['offered']} tried  {key}: {layer['kernel']}")
    for name, way in report["network"].items():
        print(f"  network, {name}: {way['median_ms']:.3f} ms, {way['ratio']:.3f} of the guesses' "
              "time")
    print(f"  choices: {report['outcome']}")
