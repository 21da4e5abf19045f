"""Choices by measurement: what a key tells apart, and which choice a layer gets."""

import dataclasses
import json
import math

import numpy as np
import pytest

from run_model_tools.kernels import choices, registry
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.isa import AVX2, AVX512

CONV = Convolution(np.ones((32, 32, 1, 1), np.float32), np.zeros(32, np.float32),
                   ((1, 2, 14, 14, 16),), plain_lanes(32, 16), low=0.0)


def write(folder, name, key, kernel, microseconds=10.0):
    layer = {"kernel": kernel[0], "parameters": kernel[1], "microseconds": microseconds,
             "guess_microseconds": 20.0}
    text = json.dumps({"schema_version": 1, "layers": {key: layer}})
    (folder / f"{name}.json").write_text(text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(choices, "FOLDER", tmp_path)
    choices.forget()
    yield tmp_path
    choices.forget()


def test_a_key_is_the_layer_without_its_numbers():
    assert choices.key_of(CONV, AVX512) == "avx512 32x14x14 -> 32x14x14 kernel 1x1 clamp low"
    other = dataclasses.replace(CONV, weight=np.zeros_like(CONV.weight), bias=CONV.bias + 1,
                                low=-1.0)
    assert choices.key_of(other, AVX512) == choices.key_of(CONV, AVX512)


@pytest.mark.parametrize("change", [
    {"weight": np.ones((16, 32, 1, 1), np.float32)}, {"input_shapes": ((1, 2, 14, 15, 16),)},
    {"strides": (2, 1)}, {"padding": (0, 1, 0, 0)}, {"low": -math.inf}, {"high": 6.0},
    {"residual": True}, {"groups": 2, "weight": np.ones((32, 16, 1, 1), np.float32)},
    {"weight": np.ones((32, 32, 3, 3), np.float32), "padding": (1, 1, 1, 1)},
    {"weight": np.ones((32, 32, 3, 3), np.float32), "padding": (2, 2, 2, 2), "dilation": (2, 2)},
    {"input_lanes": (Lanes(0, 1, 0, 16), Lanes(0, 0, 0, 16))},
    {"input_shapes": ((1, 3, 14, 14, 16),)},
    {"input_shapes": ((1, 1, 14, 14, 16),) * 2,
     "input_lanes": (Lanes(0, 0, 0, 16), Lanes(1, 0, 0, 16))},
    {"input_shapes": ((1, 32, 14, 14),), "input_lanes": ()}])
def test_whatever_changes_the_time_changes_the_key(change):
    changed = dataclasses.replace(CONV, **change)
    assert choices.key_of(changed, AVX512) != choices.key_of(CONV, AVX512)
    assert choices.key_of(changed, AVX2) != choices.key_of(changed, AVX512)


def test_a_layer_gets_the_fastest_choice_that_was_measured_for_it(folder):
    guess, *others = registry.options(CONV, AVX512)
    assert registry.chosen(CONV, AVX512) == guess
    key = choices.key_of(CONV, AVX512)
    write(folder, "slower.x86_64_v4", key, others[0], 12.0)
    write(folder, "faster.x86_64_v4", key, others[1], 11.0)
    assert registry.chosen(CONV, AVX512) == others[1]
    layer = registry.make_convolution(CONV, AVX512)
    assert layer.note["kernel"] == others[1][0]
    assert {name: layer.note[name] for name in others[1][1]} == others[1][1]
    residual = dataclasses.replace(CONV, residual=True)
    assert registry.chosen(residual, AVX512) == registry.options(residual, AVX512)[0]


def test_a_stale_choice_falls_back_to_the_guess(folder):
    guess = registry.options(CONV, AVX512)[0]
    key = choices.key_of(CONV, AVX512)
    for stale in (("no_such_kernel", {}), (guess[0], {**guess[1], "no_such_parameter": 1})):
        write(folder, "stale.x86_64_v4", key, stale)
        choices.forget()
        assert registry.chosen(CONV, AVX512) == guess


def test_a_table_can_stand_in_for_what_is_committed(folder):
    guess, other, third = registry.options(CONV, AVX512)[:3]
    key = choices.key_of(CONV, AVX512)
    write(folder, "committed.x86_64_v4", key, other)
    with choices.replaced_by({key: third}):
        assert registry.chosen(CONV, AVX512) == third
        with choices.replaced_by({}):
            assert registry.chosen(CONV, AVX512) == guess
    assert registry.chosen(CONV, AVX512) == other


@pytest.mark.parametrize("text", [
    "", "[]", "{", '{"schema_version": 2, "layers": {}}', '{"schema_version": 1}',
    '{"schema_version": 1, "layers": {"a": {"kernel": "b", "parameters": {}}}}',
    '{"schema_version": 1, "layers": {"a": {"kernel": "b", "parameters": [], "microseconds": 1}}}'])
def test_a_malformed_file_is_named(folder, text):
    (folder / "broken.x86_64_v4.json").write_text(text)
    with pytest.raises(choices.MalformedFile, match="broken.x86_64_v4.json"):
        registry.chosen(CONV, AVX512)


def test_the_committed_files_are_read():
    for path in choices.files():
        for key, (microseconds, (kernel, _)) in choices.read(path).items():
            assert key.split()[0] in ("avx512", "avx2") and microseconds > 0
            assert kernel in registry.KERNELS, f"{path.name}: {key}"
