"""The figures of rpc_vs_tvm and what is to be reached."""

from __future__ import annotations

from dataclasses import dataclass

from trials import Sample, paired_ratio
from tvm_report import Row


@dataclass(frozen=True)
class Figure:
    """`{size}` in the title is the size of files and tensors; `target` is the largest ratio
    allowed."""

    title: str
    unit: str
    target: float


FIGURES = {
    "connect": Figure("connect", "ms", 1.0),
    "call": Figure("call of a compiled function, round trip", "µs", 0.5),
    "upload": Figure("upload of a file of {size} MiB", "ms", 0.5),
    "download": Figure("download of a file of {size} MiB", "ms", 1.0),
    "copy_to": Figure("tensor of {size} MiB to the server", "ms", 1.0),
    "copy_from": Figure("tensor of {size} MiB from the server", "ms", 1.0),
    "kernel": Figure("time_evaluator: product of 256×256 matrices", "µs", 1.0),
    "short_kernel": Figure("time_evaluator: one addition", "ns", 1.0),
}


def rows_of(samples: dict[str, dict[str, Sample]], megabytes: int) -> list[Row]:
    """One row a figure: medians over the rounds, and the median of the ratios within a round."""
    rows = []
    for key, figure in FIGURES.items():
        ours, tvm = samples[key]["run_model"], samples[key]["tvm"]
        rows.append(Row(figure.title.format(size=megabytes), tvm.median, ours.median,
                        paired_ratio(ours, tvm), figure.unit, figure.target))
    return rows
