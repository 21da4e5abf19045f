"""A run's report, for people and as JSON."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from run_model_tools.evaluating.artifact import Artifact
from run_model_tools.evaluating.example import (
    CLASSIFICATION,
    IMAGE,
    MAP,
    OF_THINGS,
    SEGMENTATION,
)
from run_model_tools.evaluating.store import Result

SCHEMA_VERSION = 1
#: So many pictures that failed are named in the text.
_NAMED = 5


def describe(facts: dict[str, Any], artifact: Artifact, path: Path, results: list[Result],
             left_out: int, seconds: float, done_now: int) -> dict[str, Any]:
    """All but the figures."""
    judged = [r for r in results if r.error is None]
    times = [r.seconds for r in judged]
    return {
        "schema_version": SCHEMA_VERSION,
        **{name: facts[name] for name in ("model", "target", "kind", "dataset", "pictures",
                                          "classes", "tasks")},
        **({"rules": facts["rules"]} if "rules" in facts else {}),
        "artifact": {"library": str(artifact.library), "fingerprint": artifact.fingerprint},
        "results": str(path), "judged": len(judged), "missing_files_left_out": left_out,
        "failed": [{"picture": r.key, "error": r.error} for r in results if r.error is not None],
        "timing": {"elapsed_s": round(seconds, 3), "pictures_now": done_now,
                   "median_picture_s": round(statistics.median(times), 6) if times else None},
    }


def text(report: dict[str, Any]) -> list[str]:
    figures = report["figures"]
    target = f" for {report['target']}" if report["target"] else ""
    lines = [f"{report['model']}{target} on {report['dataset']}: {report['judged']} of "
             f"{report['pictures']} pictures"]
    if report["missing_files_left_out"]:
        lines.append(f"left out: {report['missing_files_left_out']} whose files are not there")
    if report["kind"] == CLASSIFICATION:
        lines += [_share("top-1", figures["top1"]), _share("top-5", figures["top5"])]
        lines += [_share(title, figures[name]) for name, title in (
            ("auroc", "area under the ROC curve"), ("average_precision", "average precision"))
            if name in figures]
    elif report["kind"] == SEGMENTATION:
        lines += [_share("mean IoU", figures["miou"]),
                  _share("pixels right", figures["pixel_accuracy"])]
        names = _area_names(report["tasks"][0], len(figures["iou"]))
        lines += [_share(f"  IoU of {name}", value) for name, value in zip(names, figures["iou"])]
    elif report["kind"] in (MAP, IMAGE):
        lines += _of_pixels(report)
    else:
        what = OF_THINGS[report["kind"]][0]
        lines += [_share(f"mAP of {what}, 0.50 to 0.95", figures["ap"]),
                  _share("mAP at 0.50", figures["ap50"]), _share("mAP at 0.75", figures["ap75"])]
        lines += [_share(f"  at 0.50, {one['name']} ({one['things']})", one["ap50"])
                  for one in figures["categories"] if one["things"]]
        if figures["detections_of_other_classes"]:
            lines.append(f"{figures['detections_of_other_classes']} detections of classes that the "
                         "data set does not have were left out")
    for one in report["failed"][:_NAMED]:
        lines.append(f"no result: {one['picture']}: {one['error']}")
    if len(report["failed"]) > _NAMED:
        lines.append(f"no result: {len(report['failed']) - _NAMED} more")
    timing = report["timing"]
    if timing["median_picture_s"] is not None:
        lines.append(f"{timing['pictures_now']} pictures in {timing['elapsed_s']:.1f} s; results "
                     f"are in {report['results']}")
    return lines


def _area_names(task: dict[str, Any], count: int) -> list[str]:
    """What the network calls the classes; a mask's only label is that of class 1."""
    labels = task.get("labels") or []
    if task.get("form") == "mask" and len(labels) == 1:
        labels = ["nothing", *labels]
    return [f"{i}, {labels[i]}" if i < len(labels) else str(i) for i in range(count)]


#: Figures of maps and images: title, and whether it is a share.
_TITLES = {
    "abs_rel": ("AbsRel, mean of |error| / depth", True),
    "sq_rel": ("SqRel, mean of error² / depth", False), "rmse": ("RMSE", False),
    "rmse_log": ("RMSE of logarithms", False), "log10": ("log10 error", False),
    "silog": ("SIlog", False), "delta1": ("δ < 1.25", True), "delta2": ("δ < 1.25²", True),
    "delta3": ("δ < 1.25³", True), "mae": ("MAE", False), "r2": ("R²", False),
    "psnr": ("PSNR, dB", False), "ssim": ("SSIM", False)}


def _of_pixels(report: dict[str, Any]) -> list[str]:
    figures, lines = report["figures"], []
    alignment = report["rules"].get("depth", {}).get("alignment", "none")
    if alignment != "none":
        lines.append(f"each picture aligned first: {alignment}")
    for name, (title, is_share) in _TITLES.items():
        if name in figures:
            value = figures[name]
            shown = "none there" if value is None else f"{value:.4f}"
            lines.append(_share(title, value) if is_share else f"{title:32} {shown}")
    if figures.get("equal"):
        lines.append(f"{figures['equal']} images are equal to the truth, and not in the PSNR")
    return lines


def _share(title: str, value: float | None) -> str:
    shown = "none there" if value is None else f"{100 * value:.2f} %"
    return f"{title:32} {shown}"
