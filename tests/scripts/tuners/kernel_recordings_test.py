"""Recordings of this project's own kernels, their spaces, and the search by neighbours."""

import json
import subprocess
import sys

import numpy as np
import pytest

from run_model_tools.environment import REPO_ROOT
from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.convolutions.inverted_residual import InvertedResidual
from run_model_tools.kernels.isa import AVX512
from run_model_tools.kernels.registry import options
from run_model_tools.tuners.guided import Guided
from run_model_tools.tuners.kernel_recording import FOLDER, KernelRecording, read
from run_model_tools.tuners.kernel_space import description_of, space_of
from run_model_tools.tuners.neighbours import Neighbours

CONV = Convolution(np.ones((64, 32, 3, 3), np.float32), np.zeros(64, np.float32),
                   ((1, 2, 28, 28, 16),), plain_lanes(32, 16), padding=(1, 1, 1, 1))
OFFERED = [("tiles", {"tile": [a, b], "outside": "rows"}) for a in (6, 4, 3) for b in (1, 2, 4)]
OFFERED += [("other", {"group": g}) for g in (8, 16)]


def test_only_what_is_offered_is_in_a_layer_s_space():
    offered = options(CONV, AVX512)
    space, indices = space_of(offered)
    assert len(set(indices)) == len(offered) == len(space) < space.range
    assert space.all() == sorted(indices) and all(space.is_valid(i) for i in indices)
    assert not space.is_valid(next(i for i in range(space.range) if i not in indices))
    drawn = space.sample(1000, np.random.default_rng(1), frozenset(indices[:3]))
    assert sorted(drawn) == sorted(indices[3:])


def test_knobs_say_what_an_option_is():
    space, indices = space_of(OFFERED)
    chosen = {knob.name: knob.choices[gene][0]
              for knob, gene in zip(space.knobs, space.genes(indices[4]))}
    assert chosen == {"kernel": "tiles", "place": 5, "tile0": 4, "tile1": 2, "outside": "rows",
                      "group": 0}
    last = {knob.name: knob.choices[gene][0]
            for knob, gene in zip(space.knobs, space.genes(indices[-1]))}
    assert last == {"kernel": "other", "place": 2, "tile0": 0, "tile1": 0, "outside": "",
                    "group": 16}


def test_layers_are_described_by_their_shapes():
    assert description_of(CONV) == [32, 28, 28, 64, 28, 28, 3, 3, 1, 1, 1, 1, 1, 0]
    assert description_of(InvertedResidual(None, CONV, CONV)) == [description_of(CONV)] * 2


def test_neighbours_are_tried_after_the_guesses_until_nothing_is_near():
    search = Neighbours(OFFERED)
    first = search.propose(8)
    assert [search.indices.index(i) for i in first] == [0, 9]
    search.learn([(first[0], 1.0), (first[1], 0.5)])
    # The other kernel is far behind; of this one, first what departs from (6, 1) in one place of
    # a list: with so few, all follow.
    near = [search.indices.index(i) for i in search.propose(8)]
    assert near == [1, 2, 3, 4, 5, 6, 7, 8]
    search.learn((search.indices[place], 0.9) for place in near)
    assert search.propose(8) == [] and search.exhausted


def test_a_recording_is_read_as_it_was_written(tmp_path):
    seconds = np.linspace(1e-5, 2e-5, len(OFFERED))
    seconds[3] = np.nan
    made = KernelRecording("a", "develop", "avx512 layer", "avx512", [1, 2], 10.0, OFFERED, seconds,
                           {"measured_on": "a CPU"})
    made.write(tmp_path / "a.json")
    one = read(tmp_path / "a.json")
    assert one.options == OFFERED and one.origin == {"measured_on": "a CPU"}
    assert np.allclose(one.seconds, seconds, rtol=1e-4, equal_nan=True)
    assert one.speeds[one.indices[0]] == 1.0 and one.speeds[one.indices[3]] == 0.0
    value = json.loads((tmp_path / "a.json").read_text())
    for change, reason in (
            ({"schema_version": 2}, "schema_version 2, where"), ({"options": []}, "for 0 kernels"),
            ({"microseconds": [None] * len(OFFERED)}, "the guess, has no time")):
        (tmp_path / "a.json").write_text(json.dumps({**value, **change}))
        with pytest.raises(ToolError, match=reason) as error:
            read(tmp_path / "a.json")
        assert error.value.code == MALFORMED_FILE and "a.json" in str(error.value)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_what_is_committed_are_recordings(path):
    one = read(path)
    assert one.name == path.stem and one.group in ("develop", "held_out")
    assert len(one.options) >= 24 and max(one.speeds.values()) == 1.0


def test_a_search_that_has_learnt_from_other_layers_begins_with_the_guess():
    one = read(sorted(FOLDER.glob("*.json"))[0])
    search = Guided(one.space, 1, start=one.indices[:1])
    assert search.propose(3)[0] == one.indices[0]


def test_the_bench_compares_searches_on_recordings(tmp_path):
    """The fastest is one step from the guess, which neighbours find within five trials."""
    for number, group in enumerate(("develop", "held_out", "held_out")):
        seconds = np.array([1e-5 * (1 + abs(p - 1)) for p in range(len(OFFERED))])
        KernelRecording(f"r{number}", group, f"layer {number}", "avx512", [8 * number, 2], 10.0,
                        OFFERED, seconds).write(tmp_path / f"r{number}.json")
    result = subprocess.run(
        [sys.executable, REPO_ROOT / "bench" / "tuners" / "compare_kernels", "--recordings",
         tmp_path, "--seeds", "3", "--noise", "0", "--out", tmp_path / "out"],
        capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "out" / "kernels.json").read_text())
    assert report["tuners"]["neighbours"]["trials_to_95"] == {
        "median": 3, "low": 3, "high": 3, "reached": 1.0}
    assert report["tuners"]["guided"]["trials_to_95"]["median"] <= 3
    assert report["after"]["1"]["random"] == 0.5 and "r1" in report["layers"]
    assert "r0" not in report["layers"] and (tmp_path / "out" / "kernels.svg").is_file()
