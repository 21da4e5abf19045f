"""Times of steps: what is kept of many, and how a table shows them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: What a summary has, besides `count`.
FIGURES = ("mean", "median", "p95", "p99")


def summary(microseconds: Sequence[float] | np.ndarray) -> dict[str, float]:
    """`count` and FIGURES of at least one time; percentiles are numpy.percentile's."""
    values = np.asarray(microseconds, dtype=np.float64)
    median, p95, p99 = np.percentile(values, (50, 95, 99))
    figures = zip(FIGURES, (values.mean(), median, p95, p99))
    return {"count": len(values), **{name: round(float(value), 3) for name, value in figures}}


def rows(report: dict) -> list[tuple[str, dict[str, float]]]:
    """The lines of the table: what was timed, and its summary."""
    found = []
    if report["local"]:
        found.append(("local: a step on the board", report["local"]["step_us"]))
    rpc = report["rpc"]
    found.append(("RPC: a step", rpc["step_us"]))
    found += [(f"  of which `{name}`", figures) for name, figures in rpc["parts_us"].items()]
    found += [("RPC: a step, tensors kept", rpc["kept_step_us"]),
              ("RPC: a call that does nothing", rpc["bare_call_us"])]
    return found


def table(report: dict) -> str:
    """The same in Markdown that is as readable as it stands, microseconds."""
    lines = [("step latency, µs", *FIGURES)]
    lines += [(name, *(_number(figures[figure]) for figure in FIGURES))
              for name, figures in rows(report)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(FIGURES) + 1)]
    texts = ["| " + " | ".join([line[0].ljust(widths[0]),
                                *(word.rjust(width) for word, width in zip(line[1:], widths[1:]))])
             + " |" for line in lines]
    rule = "|" + "-" * (widths[0] + 2) + "".join(f"|{'-' * (width + 1)}:"
                                                 for width in widths[1:]) + "|"
    return "\n".join([texts[0], rule, *texts[1:]]) + "\n"


def cost_of_rpc(report: dict) -> str | None:
    """What the round trips of a step cost, as a sentence; None without a local run."""
    if not report["local"]:
        return None
    rpc, local = report["rpc"]["step_us"]["median"], report["local"]["step_us"]["median"]
    trips = rpc / report["rpc"]["bare_call_us"]["median"]
    return (f"RPC makes a step {rpc / local:.3g} times as long: {_number(rpc)} µs instead of "
            f"{_number(local)} µs (medians), or {trips:.1f} calls that do nothing.")


def _number(microseconds: float) -> str:
    return f"{microseconds:.2f}" if microseconds < 10 else f"{microseconds:.1f}" \
        if microseconds < 100 else f"{microseconds:.0f}"
