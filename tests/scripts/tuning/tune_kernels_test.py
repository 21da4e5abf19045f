"""tune_model --kernels ours, as a user runs it on a tiny network, and its report."""

import json

import pytest

from run_model_tools.targets import find_target
from run_model_tools.tuning import choices, evaluation, selection
from small_networks import save_classifier

TARGET = selection.record_target(find_target("native"))


@pytest.fixture
def report_of(tmp_path, command):
    def tune(*flags):
        result = command("tune_model", save_classifier(tmp_path / "tiny.onnx"), "--kernels", "ours",
                         "--choices-dir", tmp_path / "choices", "--log-dir", tmp_path / "logs",
                         "--options", "2", "--evaluate-seconds", "0", "--threads", "1", "--json",
                         *flags)
        assert result.stderr == "", result.stderr
        return json.loads(result.stdout)["kernels"]
    return tune


@pytest.mark.skipif(TARGET is None, reason="this machine has no named target of its own")
def test_layers_are_measured_once_and_kept_for_the_next_call(report_of, tmp_path):
    first = report_of()
    (key, layer), = first["layers"].items()
    assert "3x8x8 -> 4x8x8 kernel 3x3 pad 1,1,1,1 clamp low planar" in key
    assert layer["tried"] == min(2, layer["offered"]) and layer["occurrences"] == 1
    assert 0 < layer["microseconds"] <= layer["guess_microseconds"]
    assert set(first["network"]) >= {"guess", "chosen"} and first["network"]["guess"]["ratio"] == 1
    log = tmp_path / "logs" / f"tiny.{TARGET}.kernels.trials"
    measured = log.read_bytes()
    assert report_of()["layers"] == first["layers"] and log.read_bytes() == measured
    # Code that has changed since is measured again.
    entries = json.loads(measured)
    for entry in entries["layers"].values():
        entry.update(code="another", found={**entry["found"], "microseconds": -1.0})
    log.write_text(json.dumps(entries))
    assert report_of()["layers"][key]["microseconds"] > 0


def measured(ratios):
    layer = {"kernel": "direct", "parameters": {"tile": [6, 2]}, "microseconds": 9.0,
             "guess_microseconds": 10.0, "tried": 5, "offered": 9, "occurrences": 1,
             "kept": True}
    return {"family": "tiny", "target": "x86_64_v3", "instruction_set": "avx2", "threads": 2,
            "measured_on": "a CPU",
            "layers": {"avx2 b": layer, "avx2 a": layer, "avx2 c": {**layer, "kept": False}},
            "network": {name: {"median_ms": ratio, "ratio": ratio}
                        for name, ratio in ratios.items()}}


@pytest.mark.parametrize("ratios, kept", [
    ({"guess": 1.0, "chosen": 0.9}, True), ({"guess": 1.0, "chosen": 1.01}, False),
    ({"guess": 1.0, "chosen": 0.9, "committed": 0.8}, False),
    ({"guess": 1.0, "chosen": 0.9, "committed": 1.1}, True)])
def test_only_what_makes_the_network_faster_is_kept(tmp_path, ratios, kept):
    path = tmp_path / "choices" / "tiny.x86_64_v3.json"
    outcome = choices.settle(measured(ratios), path)
    assert path.exists() == kept and (str(path) in outcome) == kept
    if kept:
        content = json.loads(path.read_text())
        assert content["schema_version"] == 1 and content["measured_on"] == "a CPU"
        assert list(content["layers"]) == ["avx2 a", "avx2 b"]
        assert content["layers"]["avx2 a"] == {
            "kernel": "direct", "parameters": {"tile": [6, 2]}, "microseconds": 9.0,
            "guess_microseconds": 10.0}


def test_a_report_for_people(capsys):
    choices.print_report({**measured({"guess": 1.0, "chosen": 0.9}), "outcome": "in a file"})
    text = capsys.readouterr().out
    assert "9.0 us" in text and "avx2 a: direct" in text and "0.900 of the guesses' time" in text
    choices.print_report({"skipped": "the reason"})
    assert "the reason" in capsys.readouterr().out


def test_what_is_not_possible_is_said_at_once(command, classifier):
    other = next(name for name in ("raspi4_aarch64", "x86_64_v3")
                 if not evaluation.can_run_here(find_target(name)))
    for flags, said in ((("--target", other), other), (("--list",), "--list"),
                        (("--options", "0"), "--options"),
                        (("--tracker", "127.0.0.1:1", "--device-key", "a"), "tracker")):
        result = command("tune_model", classifier, "--kernels", "ours", *flags, code=2)
        assert said in result.stderr, flags
