"""The side-by-side bench's figures as JSON, and which of them reach what they are to reach."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from peers.intervals import median_interval
from peers.rounds import Steady, best_peer, ratios
from peers.runners import OURS
from peers.starts import FIGURES, Starts

SCHEMA_VERSION = 1

#: Largest allowed ratio of our time of an inference to the best peer's, on x86-64 with 2 threads.
TIME_TARGETS = {"resnet18": 1.15, "squeezenet1_1": 1.15, "mobilenet_v2": 1.3, "shufflenet_v2": 1.3}
TIME_TARGET_THREADS = 2
#: The same of the growth in memory, and of the time from the file to the first result.
START_TARGETS = {"growth_kib": 0.7, "first_ms": 0.5}


def compare(values: dict[str, list[float]], peers: Sequence[str],
            target: float | None = None) -> dict[str, object]:
    """Ours against the best peer. `values`: by runner, a figure's value in each round.

    ratio: ours ÷ the best peer's, the median of the ratios within a round, with the interval that
    holds the median with 95 % confidence (None: too few rounds). reached: None without a target.
    """
    peer = best_peer(values, peers)
    if peer is None or not values.get(OURS):
        return {"best_peer": peer, "ratio": None, "interval": None, "target": target,
                "reached": None}
    within = ratios(values[OURS], values[peer])
    ratio = statistics.median(within)
    # As precise as the target is stated, which is about as precise as these figures repeat.
    reached = None if target is None else round(ratio, 2) <= target
    return {"best_peer": peer, "ratio": ratio, "interval": median_interval(within),
            "target": target, "reached": reached}


def steady_json(network: str, threads: int, machine: str, steady: Steady,
                peers: Sequence[str]) -> dict[str, object]:
    applies = threads == TIME_TARGET_THREADS and machine in ("x86_64", "AMD64")
    compared = compare(steady.medians, peers, TIME_TARGETS.get(network) if applies else None)
    best = compared["best_peer"]
    runners = {}
    for name, values in steady.medians.items():
        if not values:
            continue
        within = ratios(values, steady.medians[best]) if best else None
        runners[name] = {"median_ms": statistics.median(values), "best_ms": steady.best[name],
                         "ratio": statistics.median(within) if within else None,
                         "interval": median_interval(within) if within else None}
    return {"threads": threads, "rounds": steady.rounds, "stopped_by": steady.stopped_by,
            "runners": runners, **compared}


def starts_json(threads: int, starts: Starts, peers: Sequence[str]) -> dict[str, object]:
    runners = {name: {figure: statistics.median(values[figure]) for figure in FIGURES}
               for name, values in starts.figures.items() if values["first_ms"]}
    rounds = max((len(v["first_ms"]) for v in starts.figures.values()), default=0)
    return {"threads": threads, "rounds": rounds, "runners": runners,
            **{figure: compare(starts.values(figure), peers, target)
               for figure, target in START_TARGETS.items()},
            "whole_kib": compare(starts.values("whole_kib"), peers)}


def report_json(machine: dict, settings: dict, runners: dict, networks: dict,
                left_out: list[dict]) -> dict[str, object]:
    return {"schema_version": SCHEMA_VERSION, "machine": machine, "settings": settings,
            "runners": runners, "networks": networks, "targets": _targets(networks),
            "left_out": left_out}


def _targets(networks: dict) -> list[dict[str, object]]:
    """Every figure that has a target: {"network", "figure", "threads", ...compare()}."""
    found = []
    for name, network in networks.items():
        for steady in network["steady"]:
            if steady["target"] is not None:
                found.append({"network": name, "figure": "time", **_compared(steady),
                              "threads": steady["threads"]})
        starts = network["starts"]
        for figure in START_TARGETS:
            found.append({"network": name, "figure": figure, **starts[figure],
                          "threads": starts["threads"]})
    return found


def _compared(steady: dict) -> dict[str, object]:
    return {key: steady[key] for key in ("best_peer", "ratio", "interval", "target", "reached")}
