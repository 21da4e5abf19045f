"""Tunes one network by one method, and puts the best records where compile_model finds them."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_model_tools import cuda_compiler, environment, tvm_process
from run_model_tools.environment import BUILD_DIR
from run_model_tools.errors import MALFORMED_FILE, MISMATCH, ToolError
from run_model_tools.files import locked
from run_model_tools.inside_tvm.cpu import cpu_model
from run_model_tools.onnx_model import OnnxModel
from run_model_tools.setup.pip_site import pip_site
from run_model_tools.targets import Target
from run_model_tools.tuners import recording
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning.progress import Progress
from run_model_tools.tuning.selection import COMMITTED
from run_model_tools.tuning.weighing import Weighing

TUNING_DIR = BUILD_DIR / "tuning"
METHODS = ("autotvm", "auto_scheduler", "metaschedule")
TUNERS = ("guided", "xgb", "ga-dqn", "ga", "random", "gridsearch")


@dataclass(frozen=True)
class TuningJob:
    """What is tuned, how long, and where the results go.

    threads: how many a measured kernel runs on.  tracker: HOST:PORT and the device's key.
    layout: to which convolutions are converted before the auto-scheduler or MetaSchedule sees them.
    """

    model: OnnxModel
    family: str
    target: Target
    """As records name it; its TVM string is what is compiled for."""
    shapes: dict[str, tuple[int, ...]]
    minutes: float
    trials: int | None = None
    tasks: tuple[int, ...] = ()
    tuner: str = "guided"
    seed: int | None = None
    history: tuple[Path, ...] = ()
    """Logs of other machines, for --tuner guided to learn from."""
    patience: int | None = None
    """AutoTVM: a task is left after so many trials without a better one."""
    threads: int = 1
    layout: str | None = None
    any_layout: bool = False
    """AutoTVM: also try blocks of channels that the layers around would have to convert to."""
    tracker: tuple[str, str] | None = None
    device_name: str | None = None
    """Of the GPU that is measured, as its driver calls it, and of a board's the device's key."""
    cc: str | None = None
    log_dir: Path = TUNING_DIR
    measure: dict[str, int] = field(default_factory=dict)

    def log(self, method: str) -> Path:
        """Where the method keeps its trials: a file, and a folder for MetaSchedule."""
        return self.log_dir / f"{self.family}.{self.target.name}.{method}.trials"

    def records(self, folder: Path, kind: str) -> Path:
        """The file of best records."""
        return folder / f"{self.family}.{self.target.name}.{kind}"

    def request(self, method: str) -> dict[str, Any]:
        """What the worker is told."""
        return {"method": method, "onnx": str(self.model.path.resolve()), "shapes": self.shapes,
                "target": self.target.tvm, "host": self.target.host,
                "log": str(self.log(method)), "minutes": self.minutes,
                "trials": self.trials, "tasks": list(self.tasks), "tuner": self.tuner_of(method),
                "experience": self.experience() if method == "autotvm" else None,
                "seed": self.seed, "patience": self.patience,
                "threads": self.threads, "any_layout": self.any_layout, "measure": self.measure,
                "cc": self.cc,
                "libraries": cuda_compiler.libraries() if self.target.device == "cuda" else None,
                "layout": None if method in ("autotvm", "graph") else self.layout,
                "tracker": {"address": self.tracker[0], "key": self.tracker[1]}
                if self.tracker else None}

    def experience(self) -> dict[str, list[str]]:
        """The files that --tuner guided learns from before its first trial: this target's, and
        what the user names."""
        def listed(folder: Path, pattern: str) -> list[str]:
            return [str(path.resolve()) for path in sorted(folder.glob(pattern))]

        return {"recordings": listed(recording.FOLDER, "*.json"),
                "logs": listed(self.log_dir, f"*.{self.target.name}.autotvm.trials"),
                "records": listed(COMMITTED, f"*.{self.target.name}.autotvm"),
                "history": [str(path.resolve()) for path in self.history]}

    def tuner_of(self, method: str) -> str:
        """Those that are no methods of AutoTVM's learn with gradient-boosted trees, or not."""
        if method in ("auto_scheduler", "metaschedule"):
            return "xgb" if self.tuner in ("guided", "xgb") else "random"
        return self.tuner

    def environment(self, method: str | None = None) -> dict[str, str]:
        """Variables for the worker, which is to tune by a method.

        TVM takes half of the CPUs it sees unless it is told, whether there are hyper-threads or
        not.
        """
        variables = {"TVM_NUM_THREADS": str(self.threads)}
        if method not in (None, "graph") and self.tuner_of(method) == "xgb":
            variables["PYTHONPATH"] = str(learning_packages())
        return variables


def family_of(name: str) -> str:
    """The family of a model: its name without what says only where its weights are from."""
    return re.sub(r"[^A-Za-z0-9_+-]", "_", re.sub(r"^seeded_", "", name))


def physical_cores() -> int:
    """The cores that this process may use, hyper-threads of one core counted once."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(path.read_text().strip())
        except OSError:
            cores.add(str(cpu))
    return max(1, len(cores))


def list_tasks(job: TuningJob, method: str) -> dict[str, Any]:
    """The worker's list of tasks, nothing measured."""
    return tvm_process.call("tuning_tasks", None, environment=job.environment(),
                            **job.request(method))


def tune(job: TuningJob, method: str) -> dict[str, Any]:
    """Measures until the time is over; the trials are in job.log(method).  Gives a report.

    Raises ToolError where the trials cannot be kept (1), or with what the worker refuses.
    """
    try:
        job.log_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(1, f"the folder {job.log_dir}, where trials are kept, cannot be made: "
                           f"{error.strerror}.") from None
    progress = Progress(f"{job.family} for {job.target.name}, {method}", job.minutes, job.trials)
    environment = job.environment(method)
    # Two sessions at a time would spoil each other's times, and the log.
    with locked(job.log_dir / f".{job.family}.{job.target.name}.lock"):
        try:
            result = tvm_process.call("tune", None, environment=environment, on_event=progress,
                                      **job.request(method))
        except KeyboardInterrupt:
            progress.finish()
            sys.stderr.write(f"interrupted: the trials are kept in {job.log(method)}; call this "
                             "again to go on, or with --minutes 0 to use what there is.\n")
            raise
        progress.finish()
    return {"method": method, "trials": progress.trials(),
            "failed": sum(task.failed for task in progress.tasks.values()),
            "network": result["network"], "target": result["target"],
            "tasks": [{**task, "trials": state.trials, "best_seconds": state.best_seconds,
                       "gflops": state.gflops()}
                      for task in result["tasks"] for state in [progress.tasks[task["index"]]]]}


def tune_graph(job: TuningJob, trials_log: Path) -> dict[str, Any]:
    """Chooses the layouts of the whole graph from AutoTVM's trials; the records are in the log."""
    job.log_dir.mkdir(parents=True, exist_ok=True)
    progress = Progress(f"{job.family} for {job.target.name}, graph", job.minutes)
    try:
        result = tvm_process.call("tune", None, environment=job.environment(),
                                  on_event=progress, **job.request("graph"),
                                  trials_log=str(trials_log))
    finally:
        progress.finish()
    if "missing" in result:
        raise ToolError(MISMATCH, (
            f"{result['missing']} convolutions have no trial in {trials_log}: tune them with "
            "--method autotvm before --graph-tuner."))
    return result


def read_trials(job: TuningJob, method: str) -> list[tuning_records.Record]:
    """All trials of a method so far that succeeded."""
    log = job.log(method)
    if method != "metaschedule":
        return tuning_records.read(log)[1] if log.exists() else []
    tables = log / "database_workload.json", log / "database_tuning_record.json"
    if not all(table.exists() for table in tables):
        return []
    lines = tuning_records.join_metaschedule(*(t.read_text().splitlines() for t in tables))
    return [record for record in map(tuning_records.parse, lines) if record is not None]


def header(job: TuningJob, kind: str, network: str | None) -> dict[str, Any]:
    """The first line of a file of records: where its times come from and what they are for."""
    made = {"family": job.family, "target": job.target.name, "kind": kind,
            "threads": job.threads, "measured_on": machine_name(job)}
    if not job.tracker and not job.target.device and cpu_model():
        made["cpu"] = cpu_model()
    if kind != "autotvm":
        made["network"] = network
    if kind in ("auto_scheduler", "metaschedule") and job.layout:
        made["layout"] = job.layout
    return made


def merge(path: Path, made: dict[str, Any], records: list[tuning_records.Record],
          weighing: Weighing, replace: bool = False) -> dict[str, Any]:
    """Merges the best of `records` for a network into a file; gives what changed.

    made: the header.  Times of different machines, numbers of threads or layouts are not compared:
    raises ToolError (6) where the file was made with others, or writes it anew if `replace`.
    """
    if path.exists():
        there = tuning_records.read_header(path)
        differing = [key for key in ("threads", "measured_on", "cpu", "network", "layout")
                     if there.get(key) != made.get(key) and (key != "cpu" or key in there)]
        if differing and not replace:
            raise ToolError(MISMATCH, (
                f"{path} was made with {differing[0]} {there.get(differing[0])!r}, and these "
                f"records with {made.get(differing[0])!r}, so that their times cannot be compared: "
                "replace the file with --replace, or write to another folder with --records-dir."))
        if differing:
            path.unlink()
    new, faster, kept = tuning_records.merge(path, made, records, weighing.seconds)
    return {"path": str(path), "new": new, "faster": faster, "kept": kept}


def read_foreign(path: Path, keys: set[str], target: str) -> list[tuning_records.Record]:
    """The records of another log that are for these tasks (`keys`) and this TVM target.

    Raises ToolError (4) where no line of it is a record.
    """
    _, records, _ = tuning_records.read(path)
    if not records:
        raise ToolError(MALFORMED_FILE, f"{path} has no record of AutoTVM or the auto-scheduler.")
    return [r for r in records if r.key in keys and r.target == target]


def machine_name(job: TuningJob) -> str:
    """The CPU, the GPU, or the device behind a tracker: what times of different sessions have in
    common."""
    if job.device_name:
        return job.device_name
    if job.tracker:
        return f"device {job.tracker[1]}"
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


REQUIREMENTS = environment.DATA_ROOT / "scripts" / "requirements-tuning.txt"
FOLDER = environment.BUILD_DIR / "tuning" / "site"


def learning_packages() -> Path:
    """A folder to add to PYTHONPATH, with the package that tuning learns with; made when asked for
    first.

    Raises ToolError (3) if the package cannot be had.
    """
    return pip_site(REQUIREMENTS, FOLDER, "the package that tuning learns with",
                    ", or search without it: --tuner ga, random or gridsearch")
