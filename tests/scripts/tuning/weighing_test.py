"""What of a layer's trials is best for a network, and what of all layers' makes it faster."""

import json

import pytest

from run_model_tools.inside_tvm.tuning.graph import BYTES_PER_SECOND
from run_model_tools.targets import find_target
from run_model_tools.tuning import evaluation, session
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning.session import TuningJob
from run_model_tools.tuning.weighing import LEAST_GAIN, Weighing, blocks_of_entity

LAYER = [["TENSOR", [1, 64, 28, 28], "float32"], ["TENSOR", [32, 64, 1, 1], "float32"], [1, 1],
         [0, 0, 0, 0], [1, 1], "NCHW", "NCHW", "float32"]
KEY = tuning_records.workload_key("conv2d_NCHWc.x86", LAYER)
UNTUNED = 7
IN, OUT = 64 * 28 * 28, 32 * 28 * 28


def trial(seconds, index=1, blocks=(16, 16), template="conv2d_NCHWc.x86"):
    return tuning_records.parse(json.dumps({
        "input": ["llvm -keys=cpu", template, LAYER, {}],
        "config": {"index": index, "code_hash": None, "entity": [
            ["tile_ic", "sp", [-1, blocks[0]]], ["tile_oc", "sp", [-1, blocks[1]]]]},
        "result": [[seconds], 0, 0.5, 1.0], "version": 0.2, "tvm_version": "0.18.0"}))


def weighing(blocks=(16, 16)):
    return Weighing([{"keys": [KEY], "untuned": {"index": UNTUNED, "blocks": list(blocks)}}])


@pytest.mark.parametrize(("blocks", "converted"), [
    ((16, 16), 0), ((8, 16), IN), ((16, 32), OUT), ((64, 32), IN + OUT)])
def test_other_blocks_than_the_untuned_layers_cost_conversions(blocks, converted):
    assert weighing().seconds(trial(1e-3, blocks=blocks)) == pytest.approx(
        1e-3 + 8 * converted / BYTES_PER_SECOND)
    # Where TVM's own templates have no blocks, and of layers that nothing is known of, time counts.
    assert weighing().seconds(trial(1e-3, blocks=blocks, template="conv2d_nchw.x86")) == 1e-3
    assert Weighing().seconds(trial(1e-3, blocks=blocks)) == 1e-3


def test_the_untuned_configuration_stays_unless_another_is_measurably_faster():
    untuned = trial(1e-3, UNTUNED)
    nearly, faster = trial(1e-3 * (1 - LEAST_GAIN / 2)), trial(1e-3 * (1 - 2 * LEAST_GAIN))
    elsewhere = trial(0.6e-3, blocks=(8, 8))

    def best(*trials):
        return tuning_records.best(trials, weighing().seconds)[KEY]
    assert best(nearly, untuned) is untuned and best(untuned, faster) is faster
    # Conversions take 0.2 ms.
    assert best(faster, elsewhere) is elsewhere
    assert best(trial(1e-4, UNTUNED), trial(0.5e-4, blocks=(8, 8))).seconds == 1e-4


def test_a_file_keeps_what_costs_less(tmp_path):
    path = tmp_path / "records"
    tuning_records.merge(path, {}, [trial(1e-4, 3, (8, 8))])
    assert tuning_records.merge(path, {}, [trial(1.5e-4, 4)], weighing().seconds) == (0, 1, 0)
    assert json.loads(tuning_records.read(path)[1][0].text)["config"]["index"] == 4
    assert tuning_records.merge(path, {}, [trial(1e-4, 3, (8, 8))], weighing().seconds) == (0, 0, 1)


@pytest.mark.parametrize(("template", "entity", "blocks"), [
    ("conv2d_NCHWc.x86", [["tile_ic", "sp", [-1, 8]], ["tile_oc", "sp", [2, 32]]], (8, 32)),
    ("depthwise_conv2d_NCHWc.x86", [["tile_ic", "sp", [-1, 8]], ["tile_oc", "sp", [-1, 8]]],
     (8, 8)),
    ("conv2d_NCHWc.x86", [["tile_oh", "ot", 2]], None), ("dense_pack.x86", [], None)])
def test_blocks_are_read_from_the_knobs(template, entity, blocks):
    assert blocks_of_entity(template, entity) == blocks


def job(folder):
    return TuningJob(model=None, family="net", target=find_target("x86_64_v3"), shapes={},
                     minutes=0, threads=2, log_dir=folder)


def times(**ratios):
    return {name: {"median_ms": 10 * ratio, "min_ms": 9 * ratio, "ratio": ratio,
                   "ratio_most": ratio + 0.05}
            for name, ratio in {"untuned": 1.0, **ratios}.items()}


@pytest.mark.parametrize(("measured", "stays"), [
    ({"autotvm": 0.9}, "new"), ({"autotvm": 0.995}, None), ({"autotvm": 1.2}, None),
    # Faster, but the runs were too few or too unlike each other to be sure of it.
    ({"autotvm": 0.96}, None),
    ({"autotvm": 0.9, "before": 0.8}, "old"), ({"autotvm": 0.7, "before": 0.8}, "new"),
    ({"autotvm": 1.1, "before": 0.8}, "old"), ({"autotvm": 1.3, "before": 1.2}, None)])
def test_only_what_makes_the_whole_network_faster_stays(tmp_path, measured, stays):
    """Not even what was there before stays, where the untuned network is faster."""
    one, (candidates, place) = job(tmp_path), (tmp_path / "candidates", tmp_path / "records")
    new, old = trial(1e-3, 1), trial(2e-3, 2)
    tuning_records.write(one.records(candidates, "autotvm"), session.header(one, "autotvm", None),
                         [new])
    if "before" in measured:
        tuning_records.write(one.records(place, "autotvm"), session.header(one, "autotvm", None),
                             [old])
        assert set(evaluation.variants(one, candidates, place)) == {"untuned", "autotvm", "before"}
    outcome = evaluation.settle(one, candidates, place, times(**measured))
    path = one.records(place, "autotvm")
    assert path.exists() == (stays is not None)
    if stays:
        header, records, _ = tuning_records.read(path)
        assert records[0].text == {"new": new, "old": old}[stays].text
        assert (outcome["autotvm"] == "kept") == (stays == "new")
        if stays == "new":
            assert header["whole_network"] == {
                "ms": 10 * measured["autotvm"], "untuned_ms": 10, "ratio": measured["autotvm"],
                "ratio_most": round(measured["autotvm"] + 0.05, 4)}


def test_what_another_machine_measured_is_not_removed(tmp_path):
    one, (candidates, place) = job(tmp_path), (tmp_path / "candidates", tmp_path / "records")
    for folder, seconds in ((candidates, 1e-3), (place, 2e-3)):
        tuning_records.write(one.records(folder, "autotvm"), {"measured_on": "a board"},
                             [trial(seconds)])
    evaluation.settle(one, candidates, place, times(autotvm=1.5, before=1.5))
    assert one.records(place, "autotvm").exists()


def test_a_whole_network_s_choice_has_to_beat_what_stays_by_layer(tmp_path):
    one, (candidates, place) = job(tmp_path), (tmp_path / "candidates", tmp_path / "records")
    for kind in ("autotvm", "graph"):
        tuning_records.write(one.records(candidates, kind), {}, [trial(1e-3)])
    for ratios, stays in (({"autotvm": 0.9, "graph": 0.895}, False),
                          ({"autotvm": 0.9, "graph": 0.8}, True),
                          ({"autotvm": 1.2, "graph": 1.1}, False)):
        evaluation.settle(one, candidates, place, times(**ratios))
        assert one.records(place, "graph").exists() == stays, ratios
