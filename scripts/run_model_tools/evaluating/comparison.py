"""Two runs on the same pictures: which changed, and whether that is more than chance."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.evaluating.store import Result, read_store

#: So many pictures of each kind are named.
_NAMED = 20
#: Scores that differ by less have not changed: other kernels add up in another order.
_ROUNDING = 1e-3


def mcnemar(lost: int, won: int) -> float:
    """The exact, two-sided probability that so unequal a split of the pictures that changed comes
    about where either way is as likely (McNemar's test by the binomial distribution)."""
    changed = lost + won
    if changed == 0:
        return 1.0
    few = min(lost, won)
    # In logarithms, or the powers of thousands of changes would be 0.
    logs = [math.lgamma(changed + 1) - math.lgamma(k + 1) - math.lgamma(changed - k + 1)
            - changed * math.log(2) for k in range(few + 1)]
    return min(1.0, 2 * math.fsum(math.exp(value) for value in logs))


def compare(before: Path, after: Path) -> dict[str, Any]:
    """Of the pictures that both have judged. Raises ToolError (3, 4, 6)."""
    with read_store(before) as first:
        old_facts, old = first.facts(), {r.key: r for r in first.results() if r.error is None}
    with read_store(after) as second:
        new_facts, new = second.facts(), {r.key: r for r in second.results() if r.error is None}
    for name in ("kind", "dataset_fingerprint"):
        if old_facts.get(name) != new_facts.get(name):
            raise ToolError(MISMATCH, (
                f"{before} and {after} are of different data sets: "
                f"'{old_facts.get('dataset')}' and '{new_facts.get('dataset')}'."))
    both = sorted(set(old) & set(new))
    if not both:
        raise ToolError(MISMATCH, f"{before} and {after} have no picture in common.")
    lost = [key for key in both if old[key].correct and not new[key].correct]
    won = [key for key in both if not old[key].correct and new[key].correct]
    changed = [key for key in both if _differs(old[key], new[key])]
    p = mcnemar(len(lost), len(won))
    return {
        "before": {"file": str(before), **old_facts}, "after": {"file": str(after), **new_facts},
        "pictures": len(both), "only_before": len(old) - len(both),
        "only_after": len(new) - len(both),
        "right": {"before": sum(bool(old[key].correct) for key in both),
                  "after": sum(bool(new[key].correct) for key in both)},
        "mean_score": {"before": math.fsum(old[k].score or 0 for k in both) / len(both),
                       "after": math.fsum(new[k].score or 0 for k in both) / len(both)},
        "changed": len(changed), "lost": lost, "won": won,
        "mcnemar_p": p, "significant": p < 0.05,
    }


def _differs(a: Result, b: Result) -> bool:
    """Whether more than rounding has changed: another best class, or another score."""
    if "top" in a.prediction and a.prediction["top"][0][0] != b.prediction["top"][0][0]:
        return True
    return a.correct != b.correct or abs((a.score or 0) - (b.score or 0)) > _ROUNDING


def text(report: dict[str, Any]) -> list[str]:
    """The lines of a report for people."""
    count = report["pictures"]
    right = report["right"]
    lines = [f"{count} pictures in both runs; of {report['changed']} the prediction changed",
             f"right: {right['before']} before, {right['after']} after "
             f"({100 * (right['after'] - right['before']) / count:+.2f} % of all)",
             f"mean score: {report['mean_score']['before']:.4f} before, "
             f"{report['mean_score']['after']:.4f} after"]
    for name, title in (("lost", "right before, wrong after"),
                        ("won", "wrong before, right after")):
        keys = report[name]
        more = f" and {len(keys) - _NAMED} more (--json)" if len(keys) > _NAMED else ""
        shown = f": {', '.join(keys[:_NAMED])}{more}" if keys else ""
        lines.append(f"{title}: {len(keys)}{shown}")
    verdict = ("more than chance explains" if report["significant"]
               else "no more than chance explains")
    lines.append(f"McNemar's test, exact: p = {report['mcnemar_p']:.4g}, {verdict} (5 %)")
    return lines
