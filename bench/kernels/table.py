"""One row for each layer: ours, TVM's tuned schedule and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernels.layers import NetworkLayer
from kernels.matching import match_others, match_ours
from kernels.profiles import Node

SCHEMA_VERSION = 1
OURS, STOCK, ONNXRUNTIME = "ours", "stock", "onnxruntime"
TITLES = {OURS: "ours", STOCK: "TVM tuned", ONNXRUNTIME: "ONNX Runtime"}


@dataclass(frozen=True)
class Row:
    """layers: names of what ONNX has; empty where the node was not found in the network.

    microseconds: by runtime; that is missing whose nodes do not have all of the row's layers.
    gflop_per_s: of the definition's operations in our time. peak_share: of the FMA peak.
    """

    layers: tuple[str, ...]
    shape: str
    kernel: dict
    multiply_adds: int
    microseconds: dict[str, float]
    gflop_per_s: float
    peak_share: float | None

    @property
    def is_winograd(self) -> bool:
        return "winograd" in str(self.kernel.get("kernel", ""))

    def as_json(self) -> dict[str, object]:
        return {"layers": list(self.layers), "shape": self.shape, "kernel": self.kernel,
                "multiply_adds": self.multiply_adds, "microseconds": self.microseconds,
                "gflop_per_s": self.gflop_per_s, "peak_share": self.peak_share}


@dataclass(frozen=True)
class Table:
    """rest: by runtime, the microseconds of all its nodes that are in no row."""

    rows: list[Row]
    rest: dict[str, float]

    def totals(self) -> dict[str, float]:
        """By runtime, the microseconds of all nodes."""
        return {name: rest + sum(row.microseconds.get(name, 0.0) for row in self.rows)
                for name, rest in self.rest.items()}

    def as_json(self) -> dict[str, object]:
        return {"rows": [row.as_json() for row in self.rows], "rest": self.rest,
                "totals": self.totals()}


def make_table(layers: Sequence[NetworkLayer], ours: Sequence[Node],
               others: dict[str, Sequence[Node]], peak: float | None) -> Table:
    """others: by STOCK and ONNXRUNTIME, their nodes. peak: GFLOP/s of multiply-adds, if known."""
    matched = match_ours(ours, layers)
    theirs = {name: match_others(nodes, layers) for name, nodes in others.items()}
    taken: dict[str, set[int]] = {name: set() for name in others}
    rows = []
    for place, node in enumerate(ours):
        if node.multiply_adds is None:
            continue
        chain = matched.get(place, ())
        # What a kernel adds to fill its blocks is no work of the layer's.
        work = sum(layers[i].multiply_adds for i in chain) or node.multiply_adds
        microseconds = {OURS: node.microseconds}
        for name, found in theirs.items():
            if chain and all(i in found for i in chain):
                microseconds[name] = sum(others[name][found[i]].microseconds for i in chain)
                taken[name].update(found[i] for i in chain)
        speed = 2e-3 * work / node.microseconds
        rows.append(Row(tuple(layers[i].name for i in chain),
                        "; ".join(str(layers[i]) for i in chain) or node.name, node.kernel or {},
                        work, microseconds, speed, speed / peak if peak else None))
    rest = {OURS: sum(n.microseconds for n in ours if n.multiply_adds is None)}
    for name, nodes in others.items():
        rest[name] = sum(n.microseconds for i, n in enumerate(nodes) if i not in taken[name])
    return Table(rows, rest)


def as_markdown(title: str, threads: int, table: Table) -> str:
    return "\n".join(_lines(title, threads, table)) + "\n"


def _lines(title: str, threads: int, table: Table) -> Iterator[str]:
    names = [name for name in TITLES if name in table.rest]
    yield (f"{title}, {threads} thread{'s' * (threads > 1)}: microseconds of each layer; GFLOP/s "
           "of its definition and their share of the FMA peak are ours:")
    yield ""
    yield "| layer | kernel | million multiply-adds | " + " | ".join(
        TITLES[name] for name in names) + " | ÷ TVM tuned | GFLOP/s | of the peak |"
    yield "|---" * (6 + len(names)) + "|"
    for row in table.rows:
        share = "" if row.peak_share is None else f"{row.peak_share:.0%}"
        cells = [row.shape, _kernel(row.kernel), f"{row.multiply_adds / 1e6:.2f}",
                 *(_number(row.microseconds.get(name)) for name in names), _ratio(row.microseconds),
                 f"{row.gflop_per_s:.0f}", share + " †" * row.is_winograd]
        yield "| " + " | ".join(cells) + " |"
    for what, values in (("everything else", table.rest), ("all", table.totals())):
        cells = [what, "", "", *(_number(values[name]) for name in names),
                 _ratio(values), "", ""]
        yield "| " + " | ".join(cells) + " |"
    if any(row.is_winograd for row in table.rows):
        yield ""
        yield ("† Winograd's algorithm does fewer multiplications than the definition that is "
               "counted, so that more than the peak is possible.")


def _kernel(note: dict) -> str:
    """"pointwise tile=[14, 2] parts=4" of {"kernel": "pointwise", "parts": 4, "tile": [14, 2]}."""
    return " ".join([str(note.get("kernel", ""))] + [
        f"{name}={str(value).replace(' ', '')}" for name, value in note.items()
        if name != "kernel"])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _ratio(microseconds: dict[str, float]) -> str:
    stock = microseconds.get(STOCK)
    return f"{microseconds[OURS] / stock:.2f}" if stock else ""
