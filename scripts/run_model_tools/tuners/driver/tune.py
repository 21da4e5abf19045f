"""driver.py -m=tune: measures trials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from run_model_tools.files import json_text, write_atomically
from run_model_tools.tuners.driver.jobs import save_path, sessions
from run_model_tools.tuners.driver.trials import read_trials
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning import session

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
        measured = 0
        if left > 0:
            measured = session.tune(replace(job, trials=left), "autotvm")["trials"]
        _, best, _ = tuning_records.read(job.log("autotvm")) if job.log("autotvm").exists() \
            else ({}, [], 0)
        place = job.records(job.log_dir, "autotvm")
        tuning_records.write(place, session.header(job, "autotvm", None),
                             list(tuning_records.best(best).values()))
        report["sessions"].append({"model": job.family, "tuner": one.tuner, "seed": one.seed,
                                   "trials": there + measured, "new": measured,
                                   "records": str(place)})
        lines.append(f"{job.family}, {one.tuner}, seed {one.seed}: {there + measured} trials, "
                     f"{measured} of them new; best records in {place}")
    write_atomically(save_path(config) / "tune.json", json_text(report).encode())
    return report, "\n".join(lines)
