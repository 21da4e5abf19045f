"""driver.py -m=tune: measures trials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from run_model_tools.files import json_text, write_atomically
from run_model_tools.tuners.driver.jobs import save_path, sessions
from run_model_tools.tuners.driver.trials import read_trials
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning import session
from run_model_tools.tuning.weighing import Weighing

SCHEMA_VERSION = 1


def run(config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The report, and the same for a person.

    What earlier calls have measured counts: a session has no more trials than are asked for.
    """
    report: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "sessions": []}
    lines = []
    for one in sessions(config):
        job = one.job
        there = sum(map(len, read_trials(job.log("autotvm")).values()))
        left = (job.trials or 0) - there
        if left > 0:
            found = session.tune(replace(job, trials=left), "autotvm")
        else:
            found = session.list_tasks(job, "autotvm")
        measured = found.get("trials", 0)
        best = tuning_records.best(session.read_trials(job, "autotvm"),
                                   Weighing(found["tasks"]).seconds)
        place = job.records(job.log_dir, "autotvm")
        tuning_records.write(place, session.header(job, "autotvm", None), list(best.values()))
        report["sessions"].append({"model": job.family, "tuner": one.tuner, "seed": one.seed,
                                   "trials": there + measured, "new": measured,
                                   "records": str(place)})
        lines.append(f"{job.family}, {one.tuner}, seed {one.seed}: {there + measured} trials, "
                     f"{measured} of them new; best records in {place}")
    write_atomically(save_path(config) / "tune.json", json_text(report).encode())
    return report, "\n".join(lines)
