"""How well what some machines have taught ranks the configurations of one that is not at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from run_model_tools.tuners.experience import Experience
from run_model_tools.tuners.guided import Guided
from run_model_tools.tuners.recording import Recording
from run_model_tools.tuners.tophub import Best, index_of, pasts, space_like

# Fewer layers than this say nothing of a machine.
_LEAST = 4
_MOST_TRIALS = 64


def rank_operator(records: Sequence[Best], layers: int, among: int) -> dict[str, Any]:
    """{"machines": [...], "pairs": [...]} for one operator's records; empty lists where just one
    machine has any."""
    machines = sorted({best.machine for best in records})
    rows: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for machine in machines:
        own = [best for best in records if best.machine == machine]
        drawn = np.random.default_rng(0).permutation(len(own))
        tested = [(best, space) for best in (own[i] for i in drawn[:layers])
                  if (space := space_like(records, best)) is not None]
        if len(tested) < _LEAST:
            continue
        head = {"template": own[0].template, "dtype": own[0].dtype, "machine": machine}
        elsewhere = [best for best in records if best.machine != machine]
        ways: dict[str, tuple[list[Best], bool]] = {"own": (own, False)}
        if elsewhere:
            near = [best for best in elsewhere if best.architecture == own[0].architecture]
            ways |= {"others": (elsewhere, False), "near": (near, False),
                     "near + layer": (near, True)}
        for name, (known, with_layer) in ways.items():
            made = _ranked(tested, known, with_layer, among)
            if made:
                rows.append({**head, "learnt_from": name, **made})
        for other in machines:
            made = _ranked(tested, [best for best in elsewhere if best.machine == other], False,
                           among)
            if made:
                pairs.append({**head, "learnt_from": other, **made})
    return {"machines": rows, "pairs": pairs}


def _ranked(tested: Sequence[tuple[Best, Any]], known: Sequence[Best], with_layer: bool,
            among: int) -> dict[str, Any] | None:
    """Where the best of each tested layer comes in the order that `known` expects."""
    places, sizes = [], []
    for best, space in tested:
        taught = [other for other in known
                  if with_layer or other.workload != best.workload]
        here = index_of(space, best)
        drawn = space.sample(among, np.random.default_rng(1), frozenset({here}))
        expected = Experience(pasts(taught)).expected(best.arguments, space,
                                                      np.array([here, *drawn]))
        if expected is None:
            continue
        before = (expected[1:] > expected[0]).sum() + 0.5 * (expected[1:] == expected[0]).sum()
        places.append(float(before))
        sizes.append(len(drawn))
    if len(places) < _LEAST:
        return None
    share = np.array(places) / np.maximum(1, sizes)
    return {"layers": len(places), "median_place": round(float(np.median(share)), 4),
            "mean_place": round(float(share.mean()), 4),
            **{f"in_first_{name}": round(float((share <= limit).mean()), 3)
               for name, limit in (("1_percent", 0.01), ("5_percent", 0.05),
                                   ("10_percent", 0.10))}}


def rank_recordings(by_operator: Mapping[tuple[str, str], Sequence[Best]],
                    recordings: Sequence[Recording], seeds: int) -> list[dict[str, Any]]:
    """Complete recordings as TopHub's records of the same template rank them, and the trials that
    `guided` needs with and without these."""
    rows = []
    for measured in recordings:
        records = by_operator.get((measured.template, "float32"), [])
        experience = Experience(pasts(r for r in records if r.arguments != measured.arguments),
                                foreign=True)
        everything = np.array(measured.space.all())
        expected = experience.expected(measured.arguments, measured.space, everything)
        if expected is None:
            continue
        order = np.argsort(-expected, kind="stable")
        speeds = measured.speeds[everything]
        rows.append({
            "task": measured.name, "group": measured.group, "records": len(records),
            "configurations": len(everything),
            "rank_correlation": round(spearman(expected, speeds), 3),
            "best_of_first_8": round(float(speeds[order[:8]].max()), 4),
            "best_of_8_by_chance": round(_best_by_chance(speeds, 8), 4),
            "recall_of_fastest_tenth": round(_recall(speeds, order), 3),
            "trials_to_95": {
                "alone": _trials(measured, seeds, None),
                "tophub": _trials(measured, seeds, experience)}})
    return rows


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of ranks; what is equal shares a rank."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts - 1))[inverse]


def _best_by_chance(speeds: np.ndarray, count: int) -> float:
    """What the fastest of `count` different configurations reaches on average."""
    ordered, chance, total = np.sort(speeds)[::-1], 1.0, 0.0
    for place, speed in enumerate(ordered):
        left = len(ordered) - place
        total += chance * min(1.0, count / left) * float(speed)
        chance *= max(0.0, 1 - count / left)
    return total


def _recall(speeds: np.ndarray, order: np.ndarray) -> float:
    """The share of the fastest tenth that is in the first tenth of the order."""
    count = max(1, len(speeds) // 10)
    return float(np.isin(order[:count], np.argsort(-speeds, kind="stable")[:count]).mean())


def _trials(measured: Recording, seeds: int, experience: Experience | None) -> float:
    """The median trials to 95 % of the best known, two proposed at once; _MOST_TRIALS + 1 where it
    was not reached."""
    needed: list[int] = []
    expectations: dict[int, float] = {}
    for seed in range(seeds):
        search = Guided(measured.space, seed, experience, measured.arguments, expectations)
        noise = np.random.default_rng((seed, 1))
        tried, best = 0, 0.0
        while tried < _MOST_TRIALS and best < 0.95:
            chosen = search.propose(2)
            if not chosen:
                break
            for index in chosen:
                tried += 1
                if best < 0.95:
                    best = max(best, float(measured.speeds[index]))
                    reached = tried
            search.learn((i, float(measured.speeds[i] * np.exp(0.03 * noise.standard_normal())))
                         for i in chosen)
        needed.append(reached if best >= 0.95 else _MOST_TRIALS + 1)
    return float(np.median(needed))


def markdown(report: Mapping[str, Any]) -> str:
    """The tables of a report, for people."""
    ways = ("own", "others", "near", "near + layer")
    lines = ["| operator | machine | layers | " + " | ".join(ways) + " |",
             "|---" * (3 + len(ways)) + "|"]
    for head, rows in _grouped(report["machines"], ("template", "dtype", "machine")):
        by_way = {row["learnt_from"]: row for row in rows}
        lines.append(f"| {head[0]} {head[1]} | {head[2]} | {rows[0]['layers']} | "
                     + " | ".join(_cell(by_way.get(way)) for way in ways) + " |")
    lines += ["", "| operator | machine | " + "learnt from: one other machine |", "|---|---|---|"]
    for head, rows in _grouped(report["pairs"], ("template", "dtype", "machine")):
        lines.append(f"| {head[0]} {head[1]} | {head[2]} | " + ", ".join(
            f"{row['learnt_from']}: {_cell(row)}" for row in rows) + " |")
    lines += ["", "| recording | rank correlation | fastest tenth in the first tenth | best of the "
              "first 8 | of 8 by chance | trials to 95 %, alone | with TopHub |",
              "|---|---|---|---|---|---|---|"]
    for row in report["recordings"]:
        trials = row["trials_to_95"]
        lines.append(f"| {row['task']} | {row['rank_correlation']:.2f} | "
                     f"{row['recall_of_fastest_tenth']:.0%} | {row['best_of_first_8']:.1%} | "
                     f"{row['best_of_8_by_chance']:.1%} | {trials['alone']:g} | "
                     f"{trials['tophub']:g} |")
    return "\n".join(lines) + "\n"


def _cell(row: Mapping[str, Any] | None) -> str:
    """The median place, and how many are in the first twentieth."""
    return f"{row['median_place']:.1%} ({row['in_first_5_percent']:.0%})" if row else "–"


def _grouped(rows: Iterable[Mapping[str, Any]],
             keys: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Mapping[str, Any]]]]:
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(found.items())
