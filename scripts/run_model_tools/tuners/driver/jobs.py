"""The sessions of tuning that a configuration asks for: one for each network, tuner and seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from run_model_tools.environment import BUILD_DIR
from run_model_tools.errors import MISSING_FILE, USAGE, ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.source_model import resolve_shapes
from run_model_tools.targets import find_target
from run_model_tools.tuning import evaluation, selection, session
from run_model_tools.tuning.session import TUNERS, TuningJob

_ZOO = BUILD_DIR / "zoo"


@dataclass(frozen=True)
class Session:
    tuner: str
    seed: int
    job: TuningJob


def save_path(config: dict[str, Any]) -> Path:
    return Path(config.get("save_path", BUILD_DIR / "tuners" / "runs"))


def sessions(config: dict[str, Any]) -> Iterator[Session]:
    """Raises ToolError for what is not there or cannot be done."""
    settings = config.get("autotuner_settings", {})
    tuners = settings.get("tuner", "guided")
    tuners = [tuners] if isinstance(tuners, str) else tuners
    for tuner in tuners:
        if tuner not in TUNERS:
            raise ToolError(USAGE, f"'autotuner_settings.tuner' is '{tuner}': choose of "
                                   f"{', '.join(TUNERS)}.")
    for model in config["models"]:
        job = _job(config, settings, _file(model))
        for tuner in tuners:
            for seed in settings.get("seeds", [1]):
                yield Session(tuner, seed, replace(
                    job, tuner=tuner, seed=seed,
                    log_dir=save_path(config) / f"{tuner}-{seed}"))


def _job(config: dict[str, Any], settings: dict[str, Any], path: Path) -> TuningJob:
    asked = config.get("target", "native")
    if find_target(asked).device:
        raise ToolError(USAGE, f"'target' is '{asked}', a GPU, for which tuners are not compared: "
                               "scripts/tune_model tunes for it.")
    name = selection.record_target(find_target(asked))
    if name is None:
        raise ToolError(USAGE, f"'target' is '{asked}', for which no records are kept: take a name "
                               "of artifacts/targets.json.")
    target = find_target(name)
    tracker, key = config.get("tracker"), config.get("device_key")
    if (tracker is None) != (key is None):
        raise ToolError(USAGE, "'tracker' and 'device_key' belong together.")
    if tracker is not None and not tracker.rpartition(":")[2].isdigit():
        raise ToolError(USAGE, f"'tracker' is '{tracker}', which is not of the form HOST:PORT.")
    if tracker is None and not evaluation.can_run_here(target):
        raise ToolError(USAGE, f"'target' is '{asked}', whose code this machine does not run: "
                               "measure on a board that does, with 'tracker' and 'device_key'.")
    model = read_model(path)
    return TuningJob(
        model=model, family=session.family_of(path.stem), target=target,
        shapes=resolve_shapes(model, {}), minutes=settings.get("minutes", 60),
        trials=settings.get("trials", 1000), tasks=tuple(settings.get("tasks", ())),
        any_layout=settings.get("any_layout", True), patience=settings.get("early_stopping"),
        threads=settings.get("threads") or session.physical_cores(),
        tracker=(tracker, key) if tracker and key else None, cc=target.compiler(),
        measure={"repeat": settings.get("repeat", 3),
                 "min_repeat_ms": settings.get("min_repeat_ms", 20)})


def _file(model: str | dict[str, str]) -> Path:
    entry = {"name": model} if isinstance(model, str) else model
    if entry.get("type", "file") == "file":
        path = Path(entry["name"])
        if not path.is_file():
            raise ToolError(MISSING_FILE, f"{path}, one of 'models', is not there.")
        return path
    for stem in (entry["name"], f"seeded_{entry['name']}"):
        if (_ZOO / f"{stem}.onnx").is_file():
            return _ZOO / f"{stem}.onnx"
    raise ToolError(MISSING_FILE, f"{_ZOO} has no {entry['name']}.onnx, one of 'models': make it "
                                  "with scripts/make_zoo.")
