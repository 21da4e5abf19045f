"""What is kept of a picture, and the part of run_model's report that it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from run_model_tools.errors import MISMATCH, ToolError


class Unfit(Exception):
    """A report of run_model that cannot be judged; the sentence says why."""


@dataclass(frozen=True)
class Judged:
    """score: how good it is, 0 to 1; correct: whether it counts as right."""

    prediction: Any
    score: float
    correct: bool


def results_of(report: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Those of the tasks of a kind."""
    results = report.get("results") or []
    return [one for one in results if isinstance(one, dict) and one.get("kind") == kind]


def the_result(report: dict[str, Any], kind: str) -> dict[str, Any]:
    """The first. Raises ToolError (6) where the network has none."""
    found = results_of(report, kind)
    if not found:
        raise ToolError(MISMATCH, "the network does not say what the data set judges: its metadata "
                                  f"names no task of the kind {kind}.")
    return found[0]
