"""The search among a layer's kernels, with made-up times: what is tried, chosen and refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from run_model_tools.inside_tvm.tuning import kernel_search, kernel_trials
from run_model_tools.kernels import registry
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.convolutions.inverted_residual import InvertedResidual
from run_model_tools.kernels.convolutions.pooled_convolution import PooledConvolution
from run_model_tools.kernels.isa import AVX512
from run_model_tools.kernels.pictures.pooling import Pooling

CONV = Convolution(np.ones((256, 64, 1, 1), np.float32), np.zeros(256, np.float32),
                   ((1, 4, 28, 28, 16),), plain_lanes(64, 16))


# A kernel with 32 parameter sets, another one with 3, and a third that leaves too little to divide.
GRID = [("grid", {"a": a, "b": b, "c": c}) for a in range(4) for b in range(4) for c in range(2)]
OFFERED_HERE = GRID + [("few", {"d": d, "e": d}) for d in range(3)] + [("serial", {})]


@pytest.fixture
def search(monkeypatch):
    """search_layer with these kernels; `seconds` of (kernel, parameters) gives their times."""
    def kernel(tasks):
        return SimpleNamespace(make=lambda conv, isa, **parameters: SimpleNamespace(
            phases=[SimpleNamespace(tasks=1), SimpleNamespace(tasks=tasks)]))
    monkeypatch.setattr(registry, "KERNELS",
                        {"grid": kernel(8), "few": kernel(4), "serial": kernel(2)})
    monkeypatch.setattr(registry, "options", lambda conv, isa: OFFERED_HERE)

    def run(seconds, limit=100):
        tried = []

        def add(kernel, parameters, layer):
            tried.append(SimpleNamespace(kernel=kernel, parameters=parameters, layer=layer,
                                         seconds=seconds(kernel, parameters)))
            return tried[-1]
        trials = SimpleNamespace(conv=CONV, add=add, measure=lambda: None,
                                 best=lambda: min(tried, key=lambda c: c.seconds))
        return kernel_search.search_layer(trials, AVX512, limit), tried
    return run


def test_the_search_follows_what_is_faster(search):
    wanted = {"a": 2, "b": 3, "c": 1}

    def seconds(kernel, parameters):
        if kernel != "grid":
            return 100.0
        return 10.0 + sum(abs(parameters[name] - value) for name, value in wanted.items())
    found, tried = search(seconds)
    assert (found["kernel"], found["parameters"]) == ("grid", wanted)
    assert found["microseconds"] == 10e6 and found["guess_microseconds"] == 16e6
    assert found["tried"] == len(tried) < found["offered"] == len(OFFERED_HERE)
    # A kernel that is far behind is tried once, and one with less parallel work not at all.
    assert [c.kernel for c in tried if c.kernel != "grid"] == ["few"]


def test_all_of_a_kernel_with_few_parameter_sets_are_tried(search):
    found, tried = search(lambda kernel, parameters: {"grid": 10.0}.get(
        kernel, 12.0 - 4 * parameters.get("d", 0)))
    assert (found["kernel"], found["parameters"]) == ("few", {"d": 2, "e": 2})


def test_no_more_is_tried_than_allowed(search):
    for limit in (1, 2, 5):
        found, tried = search(lambda kernel, parameters: 10.0 - parameters.get("a", 0), limit)
        assert len(tried) == found["tried"] == limit


def test_the_guess_stays_if_nothing_is_clearly_faster(search):
    found, _ = search(lambda kernel, parameters: 1.0 if (kernel, parameters) == GRID[0] else 0.99)
    assert (found["kernel"], found["parameters"]) == GRID[0] and found["microseconds"] == 1e6


def test_only_what_makes_the_network_faster_is_chosen():
    def layer(name, guess, best):
        return {"kernel": name, "parameters": {}, "microseconds": best, "guess_microseconds": guess}
    found = {"a": layer("good", 10, 9), "b": layer("bad", 10, 5), "c": layer("best", 10, 2),
             "c relu": layer("best", 10, 2), "d": layer("guess", 10, 10)}
    groups = {"a": {"a": [CONV]}, "b": {"b": [CONV]}, "c": {"c": [CONV] * 3, "c relu": [CONV]},
              "d": {"d": [CONV]}}
    gains = {"good": 0.99, "bad": 1.02, "best": 0.9}
    asked = []

    def run(tables):
        asked.append(list(tables["after"]))
        return {name: [np.prod([gains[kernel] for kernel, _ in table.values()])] * 3
                for name, table in tables.items()}
    session = SimpleNamespace(emit=lambda *args, **details: None)
    table = kernel_search.choose_in_network(SimpleNamespace(run=run), found, groups, session)
    assert table == {"a": ("good", {}), "c": ("best", {}), "c relu": ("best", {})}
    # What promises most goes first; what was refused is not there any more.
    assert asked == [["c", "c relu"], ["c", "c relu", "b"], ["c", "c relu", "a"]]


class FakeCandidate(kernel_trials.Candidate):
    """Computes `wrong` everywhere where the kernel is so called, else 1."""

    def build(self, tvm, target, runs):
        self.runs = runs

    def prepare(self, tvm, inputs):
        output = np.ones(self.layer.output_shape, np.float32)
        output.reshape(-1)[5] = {"right": 1.0, "nearly": 1.0005, "wrong": 1.1,
                                 "nan": np.nan}[self.kernel]
        return output


@pytest.mark.parametrize("kernels, refused", [
    (("right", "nearly"), None), (("right", "wrong"), "wrong"), (("nan",), "nan"),
    (("right", "nan"), "nan")])
def test_a_wrong_result_is_an_error(monkeypatch, kernels, refused):
    monkeypatch.setattr(kernel_trials, "Candidate", FakeCandidate)
    trials = kernel_trials.LayerTrials(None, None, CONV, 0, False)
    layer = registry.make_convolution(CONV, AVX512)
    for kernel in kernels[:-1]:
        trials.add(kernel, {}, layer)
    if refused is None:
        trials.add(kernels[-1], {}, layer)
    else:
        with pytest.raises(kernel_trials.WrongResult, match=refused):
            trials.add(kernels[-1], {}, layer)


def test_only_lanes_that_hold_channels_are_compared():
    conv = Convolution(np.ones((20, 64, 1, 1), np.float32), np.zeros(20, np.float32),
                       ((1, 4, 2, 3, 16),), plain_lanes(64, 16))
    mask = kernel_trials.written(conv, 16)
    assert mask.shape == (2, 2, 3, 16) and mask[0].all()
    assert mask[1, ..., :4].all() and not mask[1, ..., 4:].any()
    depthwise = Convolution(np.ones((20, 1, 3, 3), np.float32), np.zeros(20, np.float32),
                            ((1, 1, 4, 4, 16),) * 2, (Lanes(0, 0, 0, 10), Lanes(1, 0, 0, 10)),
                            groups=20)
    mask = kernel_trials.written(depthwise, 16)
    assert mask[..., :10].all() and not mask[..., 10:].any()
    assert np.array_equal(kernel_trials.written(InvertedResidual(None, depthwise, conv), 16),
                          kernel_trials.written(conv, 16))
    picture = Convolution(np.ones((20, 3, 3, 3), np.float32), np.zeros(20, np.float32),
                          ((1, 3, 9, 13),), ())
    pool = Pooling("max", (2, 2), (picture.output_shape(16),), plain_lanes(20, 16), (2, 2))
    mask = kernel_trials.written(PooledConvolution(picture, pool), 16)
    assert mask.shape == (2, 3, 5, 16)
    assert mask[1, ..., :4].all() and not mask[1, ..., 4:].any()


def test_copies_of_weights_lie_as_in_a_file_of_parameters():
    copies = kernel_trials._copies(np.arange(33, dtype=np.float32).reshape(3, 11), 4)
    assert copies.shape == (4, 64) and copies.strides[0] % 128 == 0
    assert (copies[:, :33] == np.arange(33)).all()
