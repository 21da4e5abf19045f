"""The side-by-side bench's figures as JSON, and which of them reach what they are to reach."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from peers.intervals import median_interval
from peers.rounds import Steady, best_peer, ratios
from peers.runners import OURS, STOCK
from peers.starts import FIGURES, Starts

SCHEMA_VERSION = 1

#: Largest allowed ratio of our time of an inference to the best peer's, by instruction set.
TIME_TARGETS = {
    "avx512": {"resnet18": 0.75, "squeezenet1_1": 0.85, "mobilenet_v2": 0.85,
               "shufflenet_v2": 0.85},
    "avx2": {"resnet18": 0.9, "squeezenet1_1": 0.9, "mobilenet_v2": 0.9, "shufflenet_v2": 0.9}}
#: The same to that of TVM's own schedules, tuned.
STOCK_TARGETS = {"avx2": dict.fromkeys(TIME_TARGETS["avx2"], 0.8)}
TIME_TARGET_THREADS = (1, 2)
#: The same of the growth in memory, and of the time from the file to the first result.
START_TARGETS = {"growth_kib": 0.7, "first_ms": 0.5}
#: Of each network of artifacts/modern, of some of them, and of the geometric mean of all.
MODERN_TIME_TARGET = 1.1
MODERN_TIME_TARGETS = {"resnet18": 0.75, "squeezenet1_1": 0.75, "mobilenet_v2": 0.75,
                       "shufflenet_v2": 0.75, "resnet18_qdq": 1.0}
MODERN_MEAN_TARGET = 0.8
MODERN_START_TARGETS = {"growth_kib": 1.0}


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


def _target(targets: dict, isa: str | None, network: str, threads: int) -> float | None:
    return targets.get(isa, {}).get(network) if threads in TIME_TARGET_THREADS else None


def steady_json(network: str, threads: int, isa: str | None, steady: Steady,
                peers: Sequence[str], modern: bool = False) -> dict[str, object]:
    """isa: "avx512" or "avx2", what ours is compiled for; None: another, which has no targets.

    peers: those that count, which one that uses AVX-512 though it is held to AVX2 does not.
    stock: ours against TVM's own schedules, as compare() has it, where these were measured.
    modern: whether the network is one of artifacts/modern, which have a target of their own.
    """
    target = _target(TIME_TARGETS, isa, network, threads)
    if modern and threads in TIME_TARGET_THREADS:
        target = MODERN_TIME_TARGETS.get(network.partition("-")[0], MODERN_TIME_TARGET)
    compared = compare(steady.medians, peers, target)
    stock = compare(steady.medians, [STOCK], _target(STOCK_TARGETS, isa, network, threads))
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
            "runners": runners, **compared,
            "stock": stock if stock["ratio"] is not None else None}


def starts_json(threads: int, starts: Starts, peers: Sequence[str],
                modern: bool = False) -> dict[str, object]:
    targets = MODERN_START_TARGETS if modern else START_TARGETS
    runners = {name: {figure: statistics.median(values[figure]) for figure in FIGURES}
               for name, values in starts.figures.items() if values["first_ms"]}
    rounds = max((len(v["first_ms"]) for v in starts.figures.values()), default=0)
    return {"threads": threads, "rounds": rounds, "runners": runners,
            **{figure: compare(starts.values(figure), peers, targets.get(figure))
               for figure in START_TARGETS},
            "whole_kib": compare(starts.values("whole_kib"), peers)}


def report_json(machine: dict, settings: dict, runners: dict, networks: dict,
                left_out: list[dict], failed: dict[str, str] | None = None) -> dict[str, object]:
    """runners: of each "version", "settings", and with --isa avx2 "held": {"state", "how"}.

    failed: by network, why ours does not run it.
    """
    return {"schema_version": SCHEMA_VERSION, "machine": machine, "settings": settings,
            "runners": runners, "networks": networks, "targets": _targets(networks),
            "modern": _modern(networks), "left_out": left_out, "failed": failed or {}}


def _modern(networks: dict) -> list[dict[str, object]]:
    """For each number of threads, the networks of artifacts/modern together: the geometric mean of
    ours ÷ the best peer's time, those above their target, and those that no peer takes."""
    rows: dict[int, dict[str, float | None]] = {}
    for name, network in networks.items():
        for steady in network["steady"] if network.get("modern") else []:
            rows.setdefault(steady["threads"], {})[name] = steady["ratio"]
    found: list[dict[str, object]] = []
    for threads, by_network in rows.items():
        known = {name: ratio for name, ratio in by_network.items() if ratio is not None}
        mean = statistics.geometric_mean(known.values()) if known else None
        found.append({
            "threads": threads, "networks": len(known), "geometric_mean": mean,
            "target": MODERN_MEAN_TARGET,
            "reached": None if mean is None else round(mean, 2) <= MODERN_MEAN_TARGET,
            "above": [name for name, ratio in known.items()
                      if round(ratio, 2) > MODERN_TIME_TARGET],
            "without_peer": [name for name in by_network if name not in known]})
    return found


def _targets(networks: dict) -> list[dict[str, object]]:
    """Every figure that has a target: {"network", "figure", "threads", ...compare()}."""
    found = []
    for name, network in networks.items():
        for steady in network["steady"]:
            if steady["target"] is not None:
                found.append({"network": name, "figure": "time", **_compared(steady),
                              "threads": steady["threads"]})
            if steady["stock"] and steady["stock"]["target"] is not None:
                found.append({"network": name, "figure": "time_of_stock", **steady["stock"],
                              "threads": steady["threads"]})
        starts = network["starts"]
        for figure in START_TARGETS:
            if starts[figure]["target"] is not None:
                found.append({"network": name, "figure": figure, **starts[figure],
                              "threads": starts["threads"]})
    return found


def _compared(steady: dict) -> dict[str, object]:
    return {key: steady[key] for key in ("best_peer", "ratio", "interval", "target", "reached")}
