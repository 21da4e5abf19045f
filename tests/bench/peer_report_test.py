"""The report against other runtimes: ratios, targets, tables."""

from __future__ import annotations

import json

import pytest

from peers.results import compare, report_json, starts_json, steady_json
from peers.rounds import Steady
from peers.starts import FIGURES, Starts
from peers.tables import tables

PEERS = ["onnxruntime", "ncnn"]


def make_steady(ours: float, **others: float) -> Steady:
    """Eight rounds in which the machine gets slower, everything by the same factor."""
    medians = {"run_model": ours, **others}
    return Steady({name: [value * (1 + round_ / 10) for round_ in range(8)]
                   for name, value in medians.items()}, dict(medians), {}, "stable")


def make_starts(ours: float, **others: float) -> Starts:
    return Starts({name: {figure: [value * 1024] * 8 for figure in FIGURES}
                   for name, value in {"run_model": ours, **others}.items()})


def make_report(time: float = 11.0) -> dict:
    networks = {"resnet18": {
        "title": "resnet18 (seeded_resnet18)", "model": "seeded_resnet18", "tuning": [],
        "agreement": {"run_model": {"agrees": True, "relative": 2e-6},
                      "ncnn": {"agrees": False, "relative": 0.5}},
        "steady": [steady_json("resnet18", threads, "x86_64",
                               make_steady(time, onnxruntime=10.0, tvm=5.0), PEERS)
                   for threads in (1, 2)],
        "starts": starts_json(2, make_starts(6, onnxruntime=10, tvm=5), PEERS)}}
    runners = {name: {"version": version, "settings": "as given"} for name, version in
               (("run_model", ""), ("onnxruntime", "1.31.1"), ("tvm", ""))}
    machine = {"cpu": "A CPU", "machine": "x86_64", "cpus": 2, "kernel": "6", "busy": 0.03}
    left_out = [{"runner": "ncnn", "network": "resnet18", "reason": "its output differs"},
                {"runner": "openvino", "network": None, "reason": "it is not installed"}]
    return report_json(machine, {"threads": [1, 2]}, runners, networks, left_out)


def test_a_ratio_is_taken_within_the_rounds():
    values = {"run_model": [1.0, 20.0, 3.0], "onnxruntime": [2.0, 10.0, 3.0], "ncnn": [9.0] * 3}
    compared = compare(values, PEERS)
    assert compared["best_peer"] == "onnxruntime"
    assert compared["ratio"] == 1.0  # of 0.5, 2 and 1
    assert compared["interval"] is None and compared["reached"] is None


@pytest.mark.parametrize(("ours", "reached"), [(11.4, True), (11.54, True), (11.6, False)])
def test_a_target_is_reached_to_the_digits_that_it_has(ours, reached):
    steady = steady_json("resnet18", 2, "x86_64", make_steady(ours, onnxruntime=10, ncnn=12), PEERS)
    assert steady["target"] == 1.15 and steady["reached"] is reached
    assert steady["ratio"] == pytest.approx(ours / 10)
    assert steady["interval"] == pytest.approx((ours / 10, ours / 10))
    assert steady["runners"]["ncnn"]["ratio"] == pytest.approx(1.2)


def test_the_time_has_a_target_with_two_threads_on_x86_64_only():
    steady = make_steady(11, onnxruntime=10)
    assert steady_json("resnet18", 1, "x86_64", steady, PEERS)["target"] is None
    assert steady_json("resnet18", 2, "aarch64", steady, PEERS)["target"] is None
    assert steady_json("a_network", 2, "x86_64", steady, PEERS)["target"] is None
    assert steady_json("mobilenet_v2", 2, "x86_64", steady, PEERS)["target"] == 1.3


def test_what_is_no_peer_does_not_count_as_the_best():
    steady = steady_json("resnet18", 2, "x86_64", make_steady(11, onnxruntime=10, tvm=5), PEERS)
    assert steady["best_peer"] == "onnxruntime"
    assert steady["runners"]["tvm"]["ratio"] == pytest.approx(0.5)


def test_without_a_peer_there_is_no_ratio():
    steady = steady_json("resnet18", 2, "x86_64", make_steady(11, tvm=5), PEERS)
    assert (steady["ratio"], steady["reached"]) == (None, None)
    assert steady["runners"]["run_model"]["ratio"] is None


def test_memory_and_start_have_targets():
    starts = starts_json(2, make_starts(6, onnxruntime=10, ncnn=20), PEERS)
    assert starts["growth_kib"]["target"] == 0.7 and starts["growth_kib"]["reached"] is True
    assert starts["first_ms"]["target"] == 0.5 and starts["first_ms"]["reached"] is False
    assert starts["whole_kib"]["ratio"] == pytest.approx(0.6)
    assert starts["whole_kib"]["target"] is None


def test_a_report_lists_every_target():
    targets = make_report()["targets"]
    assert [(t["network"], t["figure"], t["threads"], t["reached"]) for t in targets] == [
        ("resnet18", "time", 2, True), ("resnet18", "growth_kib", 2, True),
        ("resnet18", "first_ms", 2, False)]


def test_a_report_is_json_with_a_version():
    assert json.loads(json.dumps(make_report()))["schema_version"] == 1


def test_tables():
    text = tables(make_report())
    lines = text.splitlines()
    assert ("| resnet18 (seeded_resnet18) | 2 | 14.85 | **13.50** | 6.75 | 1.10 (1.10–1.10) | 91% "
            "| ≤ 1.15 | reached |") in lines
    assert ("| resnet18 (seeded_resnet18) | 1 | 14.85 | **13.50** | 6.75 | 1.10 (1.10–1.10) | 91% "
            "|  |  |") in lines
    assert ("| resnet18 (seeded_resnet18) | 2 | 6.00 | **10.00** | 5.00 | 0.60 (0.60–0.60) | ≤ 0.70 "
            "| reached |") in lines
    assert "- left out: OpenVINO: it is not installed" in lines
    assert "- left out: ncnn on resnet18: its output differs" in lines
    assert "- 2 of 3 figures that have a target reach it" in lines
    assert "- ONNX Runtime 1.31.1: as given" in lines
    assert any(line.endswith("run_model 2e-06") for line in lines)
    tables_ = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables_) == 4
    for table in tables_:  # every row has the heading's cells
        assert len({line.count("|") for line in table.splitlines()}) == 1
