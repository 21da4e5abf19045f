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


def make_report(time: float = 9.0) -> dict:
    networks = {"resnet18": {
        "title": "resnet18 (seeded_resnet18)", "model": "seeded_resnet18", "tuning": [],
        "agreement": {"run_model": {"agrees": True, "relative": 2e-6},
                      "ncnn": {"agrees": False, "relative": 0.5}},
        "steady": [steady_json("resnet18", threads, "avx2",
                               make_steady(time, onnxruntime=10.0, stock=12.5, tvm=5.0), PEERS)
                   for threads in (1, 2)],
        "starts": starts_json(2, make_starts(6, onnxruntime=10, tvm=5), PEERS)}}
    runners = {name: {"version": version, "settings": "as given"} for name, version in
               (("run_model", ""), ("onnxruntime", "1.31.1"), ("stock", ""), ("tvm", ""))}
    runners["onnxruntime"]["held"] = {"state": "held", "how": "by a switch"}
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


@pytest.mark.parametrize(("ours", "reached"), [(7.4, True), (7.54, True), (7.6, False)])
def test_a_target_is_reached_to_the_digits_that_it_has(ours, reached):
    steady = steady_json("resnet18", 2, "avx512", make_steady(ours, onnxruntime=10, ncnn=12), PEERS)
    assert steady["target"] == 0.75 and steady["reached"] is reached
    assert steady["ratio"] == pytest.approx(ours / 10)
    assert steady["interval"] == pytest.approx((ours / 10, ours / 10))
    assert steady["runners"]["ncnn"]["ratio"] == pytest.approx(1.2)


@pytest.mark.parametrize(("network", "threads", "isa", "target"), [
    ("resnet18", 1, "avx512", 0.75), ("resnet18", 2, "avx512", 0.75),
    ("resnet18", 4, "avx512", None),
    ("mobilenet_v2", 2, "avx512", 0.85), ("mobilenet_v2", 2, "avx2", 0.9),
    ("resnet18", 2, None, None), ("a_network", 2, "avx512", None)])
def test_the_time_has_a_target_by_instruction_set(network, threads, isa, target):
    steady = make_steady(11, onnxruntime=10)
    assert steady_json(network, threads, isa, steady, PEERS)["target"] == target


@pytest.mark.parametrize(("ours", "isa", "target", "reached"), [
    (8.0, "avx2", 0.8, True), (8.1, "avx2", 0.8, False), (8.1, "avx512", None, None)])
def test_ours_against_the_stock_schedules(ours, isa, target, reached):
    steady = steady_json("resnet18", 2, isa, make_steady(ours, onnxruntime=20, stock=10), PEERS)
    stock = steady["stock"]
    assert (stock["target"], stock["reached"]) == (target, reached)
    assert stock["ratio"] == pytest.approx(ours / 10)
    assert steady["best_peer"] == "onnxruntime"


def test_without_stock_schedules_nothing_is_said_of_them():
    assert steady_json("resnet18", 2, "avx2", make_steady(8, ncnn=10), PEERS)["stock"] is None


def test_what_is_no_peer_does_not_count_as_the_best():
    steady = steady_json("resnet18", 2, "avx512", make_steady(11, onnxruntime=10, tvm=5), PEERS)
    assert steady["best_peer"] == "onnxruntime"
    assert steady["runners"]["tvm"]["ratio"] == pytest.approx(0.5)


def test_without_a_peer_there_is_no_ratio():
    steady = steady_json("resnet18", 2, "avx512", make_steady(11, tvm=5), PEERS)
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
        ("resnet18", "time", 1, True), ("resnet18", "time_of_stock", 1, True),
        ("resnet18", "time", 2, True), ("resnet18", "time_of_stock", 2, True),
        ("resnet18", "growth_kib", 2, True), ("resnet18", "first_ms", 2, False)]


def test_a_report_is_json_with_a_version():
    assert json.loads(json.dumps(make_report()))["schema_version"] == 1


def test_tables():
    text = tables(make_report())
    lines = text.splitlines()
    assert ("| resnet18 (seeded_resnet18) | 2 | 12.15 | **13.50** | 16.88 | 6.75 | 0.90 "
            "(0.90–0.90) | 111% | ≤ 0.90 | reached |") in lines
    assert ("| resnet18 (seeded_resnet18) | 1 | 12.15 | 16.88 | 0.72 (0.72–0.72) | ≤ 0.80 | "
            "reached |") in lines
    assert ("| resnet18 (seeded_resnet18) | 2 | 6.00 | **10.00** | – | 5.00 | 0.60 (0.60–0.60) "
            "| ≤ 0.70 | reached |") in lines
    assert "- left out: OpenVINO: it is not installed" in lines
    assert "- left out: ncnn on resnet18: its output differs" in lines
    assert "- 5 of 6 figures that have a target reach it" in lines
    assert ("- ONNX Runtime 1.31.1: as given; held to AVX2, and the kernel saw no use of AVX-512 "
            "(by a switch)") in lines
    assert any(line.endswith("run_model 2e-06") for line in lines)
    tables_ = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables_) == 5
    for table in tables_:  # every row has the heading's cells
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_a_peer_that_is_not_held_is_marked():
    report = make_report()
    report["runners"]["onnxruntime"]["held"] = {"state": "not held", "how": "it has no switch"}
    lines = tables(report).splitlines()
    assert ("| network | threads | run_model | ONNX Runtime (not held) | TVM tuned | TVM untuned | "
            "÷ best peer | of the best's speed | to reach |  |") in lines
    assert ("- ONNX Runtime 1.31.1: as given; NOT held to AVX2: shown, but not counted as a peer "
            "(it has no switch)") in lines


def test_the_modern_networks_together():
    networks = {name: {
        "title": name, "model": name, "modern": True, "tuning": [], "agreement": {},
        "steady": [steady_json(name, 2, "avx2", make_steady(ours, **peers), PEERS, modern=True)],
        "starts": starts_json(2, make_starts(6, onnxruntime=10), PEERS, modern=True)}
        for name, ours, peers in (("fast", 4, {"onnxruntime": 10}), ("slow", 16, {"ncnn": 10}),
                                  ("alone", 1, {}))}
    machine = {"cpu": "A CPU", "machine": "x86_64", "cpus": 2, "kernel": "6", "busy": 0.03}
    report = report_json(machine, {}, {}, networks, [], {"refused": "it has strings"})
    (found,) = report["modern"]
    assert found["geometric_mean"] == pytest.approx(0.8) and found["reached"]
    assert (found["networks"], found["above"], found["without_peer"]) == (2, ["slow"], ["alone"])
    targets = {(t["network"], t["figure"]): t["target"] for t in report["targets"]}
    assert steady_json("resnet18_qdq-old17", 2, None, make_steady(9), PEERS, True)["target"] == 1
    assert targets["slow", "time"] == 1.1 and targets["slow", "growth_kib"] == 1.0
    assert ("slow", "first_ms") not in targets
    text = tables(report)
    assert "the 2 modern networks with 2 threads: geometric mean 0.80" in text
    assert "run_model does not run refused: it has strings" in text
