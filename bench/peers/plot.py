#!/usr/bin/env python3
"""Draws the side-by-side bench's report: every runtime's ratio to the best peer.

  plot.py REPORT.json PICTURE.png|PICTURE.svg

Runs in the peers' environment, which has matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

TITLES = {"run_model": "run_model", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO",
          "ncnn": "ncnn", "mnn": "MNN", "litert": "LiteRT", "stock": "TVM tuned",
          "tvm": "TVM untuned"}
# Ours stands out; the others differ in lightness too, for those who see colours differently.
COLOURS = {"run_model": "#d1495b", "onnxruntime": "#1d3557", "openvino": "#33658a",
           "ncnn": "#5b9ab8", "mnn": "#8fc1d4", "litert": "#c3dfe8", "stock": "#808080",
           "tvm": "#b0b0b0"}
#: Bars are cut off at this ratio, and say their own.
CUT = 4.0


def panels(report: dict) -> list[tuple[str, list[tuple[str, dict[str, float], dict]]]]:
    """(title, [(network, each runner's ratio to the best peer, what compare() gave)])."""
    networks = report["networks"]
    found = []
    counts = sorted({s["threads"] for n in networks.values() for s in n["steady"]}, reverse=True)
    for threads in counts:
        rows = [(name, {r: v["ratio"] for r, v in s["runners"].items() if v["ratio"]}, s)
                for name, n in networks.items() for s in n["steady"] if s["threads"] == threads]
        found.append((f"Time of an inference, {threads} thread{'s' * (threads > 1)}", rows))
    for figure, title in (("first_ms", "File to first result, fresh process"),
                          ("growth_kib", "Peak memory over the idle process")):
        found.append((title, [(name, _start_ratios(n["starts"], figure), n["starts"][figure])
                              for name, n in networks.items()]))
    return found


def _start_ratios(starts: dict, figure: str) -> dict[str, float]:
    """Of the medians; ours is the one that the tables have, of the ratios within the rounds."""
    best = starts["runners"].get(starts[figure]["best_peer"], {}).get(figure)
    if not best:
        return {}
    found = {name: values[figure] / best for name, values in starts["runners"].items()}
    ratio = starts[figure]["ratio"]
    return found | ({"run_model": ratio} if ratio else {})


def draw_panel(axes: pyplot.Axes, title: str, rows: list[tuple[str, dict[str, float], dict]],
               runners: list[str]) -> None:
    width = min(0.12, 0.84 / max(1, len(runners)))
    for group, (_, figures, compared) in enumerate(rows):
        for place, runner in enumerate(runners):
            if runner not in figures:
                continue
            ratio = figures[runner]
            x = group + (place - (len(runners) - 1) / 2) * width
            axes.bar(x, min(ratio, CUT), width * 0.92, color=COLOURS[runner])
            if runner == "run_model":
                _label(axes, x, ratio, compared["target"])
            elif ratio > CUT:
                axes.text(x, CUT - 0.08, f"{ratio:.1f}", ha="center", va="top", fontsize=7,
                          color="white" if runner in ("onnxruntime", "openvino") else "black",
                          rotation=90)
            if runner == "run_model" and compared["target"]:
                axes.plot([x - width * 0.7, x + width * 0.7], [compared["target"]] * 2,
                          color="black", linewidth=2.5, solid_capstyle="butt")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xticks(range(len(rows)), [name for name, _, _ in rows], fontsize=10)
    axes.set_ylabel("÷ best peer")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(-0.5, len(rows) - 0.5)
    highest = max([1.6, *(min(CUT, ratio) for _, figures, _ in rows for ratio in figures.values())])
    axes.set_ylim(0, highest * 1.12)


def _label(axes: pyplot.Axes, x: float, ratio: float, target: float | None) -> None:
    """Our ratio above the bar, and above the mark of what is to be reached where that is near."""
    top = min(ratio, CUT)
    if target and top < target < top + 0.5:
        top = target
    axes.annotate(f"{ratio:.2f}", (x, top), (0, 3), textcoords="offset points", ha="center",
                  va="bottom", fontsize=9, fontweight="bold", color=COLOURS["run_model"],
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5}, zorder=3)


def draw(report: dict, path: Path) -> None:
    shown = panels(report)
    runners = [name for name in TITLES if any(
        name in figures for _, rows in shown for _, figures, _ in rows)]
    figure, axes = pyplot.subplots(len(shown), 1, figsize=(10, 2.6 * len(shown) + 0.9),
                                   layout="constrained", squeeze=False)
    for (title, rows), row_axes in zip(shown, axes[:, 0], strict=True):
        draw_panel(row_axes, title, rows, runners)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in runners]
    handles.append(pyplot.Line2D([], [], color="black", linewidth=2.5))
    figure.legend(handles, [TITLES[name] for name in runners] + ["to reach"], ncols=4,
                  loc="outside upper center", frameon=False)
    machine = report["machine"]
    figure.supxlabel(f"{machine['cpu']}, {machine['cpus']} CPUs; float32, one picture; lower is "
                     "better", fontsize=9)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    if len(sys.argv) != 3 or Path(sys.argv[2]).suffix not in (".png", ".svg"):
        sys.exit(__doc__)
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
