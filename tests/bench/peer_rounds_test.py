"""Turns, their order, when they end, and how sure their median is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from peers.intervals import median_interval
from peers.processes import Process, RunnerFailed
from peers.rounds import StopRule, in_turn, steady_times


@pytest.mark.parametrize("count", [6, 7, 10, 25, 26, 101, 400])
def test_median_interval_is_the_sign_tests(count):
    values = np.random.default_rng(count).permutation(count).astype(float)
    # The largest rank r with P(fewer than r values on one side) within 2.5 %, by SciPy.
    rank = max(r for r in range(1, count // 2 + 1)
               if stats.binom.cdf(r - 1, count, 0.5) <= 0.025)
    assert median_interval(list(values)) == (rank - 1, count - rank)


def test_median_interval_needs_six_values():
    assert median_interval([1.0] * 5) is None
    assert median_interval([]) is None
    assert median_interval([1, 2, 3, 4, 5, 6]) == (1, 6)


def test_median_interval_holds_the_median_as_often_as_it_says():
    random = np.random.default_rng(1)
    held = [low <= np.log(2) <= high for low, high in
            (median_interval(list(random.exponential(size=30))) for _ in range(2000))]
    assert 0.94 < np.mean(held) < 0.98


def test_every_order_starts_with_another_and_goes_both_ways():
    items = ["a", "b", "c"]
    orders = ["".join(in_turn(items, number)) for number in range(6)]
    assert orders == ["abc", "cba", "bca", "acb", "cab", "bac"]
    assert "".join(in_turn(items, -1)) in {"".join(p) for p in itertools.permutations("abc")}
    assert list(in_turn([], 3)) == []


class FakeProcess:
    """Gives one time after the other, and checks that it is awake only for its own turn."""

    awake = 0

    def __init__(self, name: str, times: list[float], fails_after: int | None = None) -> None:
        self.name = name
        self._times = itertools.cycle(times)
        self._left = fails_after

    def thaw(self) -> None:
        assert FakeProcess.awake == 0
        FakeProcess.awake += 1

    def freeze(self) -> None:
        FakeProcess.awake -= 1

    def ask(self, command: str) -> dict:
        if self._left == 0:
            FakeProcess.awake -= 1
            raise RunnerFailed("out of memory")
        if self._left is not None:
            self._left -= 1
        runs = int(command.split()[2])
        return {"run_ms": [next(self._times)] * runs}


def test_stops_when_the_ratio_is_stable():
    steady = steady_times([FakeProcess("run_model", [10.0]), FakeProcess("slow", [30.0]),
                           FakeProcess("fast", [8.0])], "run_model", ["slow", "fast"], StopRule())
    assert (steady.stopped_by, steady.rounds) == ("stable", 8)
    assert steady.medians == {"run_model": [10.0] * 8, "slow": [30.0] * 8, "fast": [8.0] * 8}
    assert steady.best == {"run_model": 10.0, "slow": 30.0, "fast": 8.0}


def test_goes_on_while_the_ratio_to_the_best_peer_is_unsure():
    now = itertools.count()
    unsteady = list(np.random.default_rng(1).uniform(8, 16, 97))
    steady = steady_times([FakeProcess("run_model", unsteady), FakeProcess("fast", [8.0])],
                          "run_model", ["fast"], StopRule(seconds=50), clock=lambda: next(now))
    assert steady.stopped_by == "time" and steady.rounds >= 45
    # The one that is not the best may vary as it likes.
    steady = steady_times([FakeProcess("run_model", [10.0]), FakeProcess("fast", [8.0]),
                           FakeProcess("slow", [20.0, 30.0, 70.0])],
                          "run_model", ["fast", "slow"], StopRule())
    assert steady.stopped_by == "stable"


def test_a_given_number_of_rounds():
    steady = steady_times([FakeProcess("run_model", [1.0, 9.0])], "run_model", [],
                          StopRule(rounds=3, width=None))
    assert (steady.stopped_by, steady.rounds) == ("rounds", 3)


def test_one_that_fails_is_dropped_with_its_figures():
    steady = steady_times([FakeProcess("run_model", [10.0]), FakeProcess("frail", [8.0], 4),
                           FakeProcess("fast", [9.0])], "run_model", ["frail", "fast"], StopRule())
    assert steady.failures == {"frail": "out of memory"}
    assert set(steady.medians) == set(steady.best) == {"run_model", "fast"}
    assert steady.stopped_by == "stable"


def test_with_real_processes(fake_runner, tmp_path):
    runners = [fake_runner("run_model", 6.0, peer=False), fake_runner("peer", 4.0)]
    processes = [Process(runner, 1, tmp_path / runner.name) for runner in runners]
    try:
        for process in processes:
            process.ask("load")
            process.freeze()
        steady = steady_times(processes, "run_model", ["peer"], StopRule(rounds=6))
    finally:
        for process in processes:
            process.close()
    assert steady.medians == {"run_model": [6.0] * 6, "peer": [4.0] * 6}
