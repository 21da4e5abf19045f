"""The searches alone, on landscapes whose best configuration is known."""

import json
import tracemalloc

import numpy as np
import pytest

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.tuners.comparison import Run, curves, markdown, summarize
from run_model_tools.tuners.experience import Experience, Past
from run_model_tools.tuners.genetic_dqn import GeneticDqn, GeneticSettings
from run_model_tools.tuners.guided import Guided, GuidedSettings
from run_model_tools.tuners.plots import curves_plot
from run_model_tools.tuners.recording import FOLDER, Recording
from run_model_tools.tuners.recording import read as read_recording
from run_model_tools.tuners.search import RandomSearch, Search
from run_model_tools.tuners.space import Knob, Space
from run_model_tools.tuners.tophub import cuts


def powers(count: int) -> list[list[int]]:
    return [[-1, 2 ** i] for i in range(count)]


def make_space(valid=None) -> Space:
    return Space((Knob("tile_ic", powers(7)), Knob("tile_oc", powers(8)),
                  Knob("tile_ow", powers(6)), Knob("unroll", [[True], [False]])), valid)


PEAK = np.array([3, 4, 2, 1])


def hill(space: Space, index: int) -> float:
    """One peak, from which speed falls by half with each step of any knob; too large tiles fail."""
    genes = space.genes(index)
    if genes[1] + genes[2] > 10:
        return 0.0
    return float(2.0 ** -np.abs(genes - PEAK).sum())


def run(search: Search, trials: int, speed=hill, batch: int = 1) -> list[int]:
    tried: list[int] = []
    while len(tried) < trials and not search.exhausted:
        chosen = search.propose(min(batch, trials - len(tried)))
        search.learn((index, speed(search.space, index)) for index in chosen)
        tried += chosen
    return tried


def trials_to_peak(search: Search, limit: int = 672) -> int:
    tried = run(search, limit)
    best = search.space.index(PEAK)
    return tried.index(best) + 1 if best in tried else limit


def test_indices_count_as_autotvm_counts_them():
    space = make_space()
    assert space.range == 7 * 8 * 6 * 2
    assert space.genes(1).tolist() == [1, 0, 0, 0]
    assert space.genes(7 * 8 * 6 + 7 + 2).tolist() == [2, 1, 0, 1]
    everything = np.arange(space.range)
    assert (space.indices(space.genes(everything)) == everything).all()


def test_samples_are_valid_and_new_in_small_and_large_spaces():
    random = np.random.default_rng(1)
    for space in (make_space(lambda i: i % 3 == 0),
                  Space(tuple(Knob(str(k), powers(20)) for k in range(8)), lambda i: i % 3 == 0)):
        known = set(space.sample(50, random))
        more = space.sample(60, random, known)
        assert len(known) == 50 and len(set(more)) == 60
        assert not known & set(more) and all(i % 3 == 0 for i in more)
    assert len(make_space(lambda i: i < 5).sample(99, random)) == 5


@pytest.mark.parametrize("kind", [RandomSearch, GeneticDqn, Guided])
def test_every_configuration_is_proposed_once_until_there_are_no_more(kind):
    space = Space((Knob("a", powers(5)), Knob("b", powers(6))), lambda i: i != 7)
    search = kind(space, seed=3)
    tried = run(search, 1000, lambda s, i: 1.0 + i, batch=4)
    assert sorted(tried) == [i for i in range(30) if i != 7]
    assert search.exhausted and search.propose(3) == []


@pytest.mark.parametrize("kind, trials", [(RandomSearch, 120), (GeneticDqn, 120), (Guided, 40)])
def test_the_same_seed_gives_the_same_proposals(kind, trials):
    once, again, other = (run(kind(make_space(), seed=seed), trials) for seed in (5, 5, 6))
    assert once == again and once != other


@pytest.mark.full
def test_ga_dqn_needs_fewer_trials_than_chance():
    chance = np.median([trials_to_peak(RandomSearch(make_space(), s)) for s in range(9)])
    learned = np.median([trials_to_peak(GeneticDqn(make_space(), s), 300) for s in range(5)])
    assert learned < 0.8 * chance


def test_ga_dqn_goes_on_from_a_file_as_if_it_had_not_stopped(tmp_path):
    settings = GeneticSettings(population=20)
    whole = GeneticDqn(make_space(), 4, settings)
    run(whole, 60)
    # Between two generations: what a generation still has to try is not kept.
    whole.save(tmp_path / "learnt.npz")
    resumed = GeneticDqn(make_space(), 9, settings)
    resumed.load(tmp_path / "learnt.npz")
    resumed.learn(whole.speeds.items())
    resumed.generation, resumed._measured = whole.generation, []
    assert run(resumed, 60) == run(whole, 60)


def test_what_another_space_has_taught_is_refused(tmp_path):
    search = GeneticDqn(make_space(), 1)
    run(search, 30)
    search.save(tmp_path / "learnt.npz")
    other = GeneticDqn(Space((Knob("a", powers(3)), Knob("b", powers(3)))), 1)
    with pytest.raises(ToolError, match="space of .7, 8, 6, 2. choices") as error:
        other.load(tmp_path / "learnt.npz")
    assert error.value.code == MALFORMED_FILE
    (tmp_path / "learnt.npz").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(ToolError, match="remove it to start anew"):
        search.load(tmp_path / "learnt.npz")


@pytest.mark.full
def test_guided_needs_half_the_trials_of_chance():
    chance = np.median([trials_to_peak(RandomSearch(make_space(), s)) for s in range(9)])
    guided = np.median([trials_to_peak(Guided(make_space(), s), 120) for s in range(3)])
    assert guided < 0.5 * chance


def neighbours_taught(shift: int) -> Experience:
    """A task of another shape, whose peak lies `shift` choices of the first knob away."""
    space = make_space()

    def moved(index: int) -> float:
        genes = space.genes(index) - np.array([shift, 0, 0, 0])
        return float(2.0 ** -np.abs(genes - PEAK).sum())

    return Experience([Past([1, 64, 28], space, {i: moved(i) for i in range(space.range)})])


def test_experience_with_a_neighbour_makes_the_first_trials_good():
    search = Guided(make_space(), 1, neighbours_taught(0), [1, 64, 56])
    assert trials_to_peak(search, 60) <= 3
    # It is a hint, not an order: where the peak has moved, it is found all the same.
    search = Guided(make_space(), 1, neighbours_taught(3), [1, 64, 56])
    assert trials_to_peak(search, 120) <= 60


def test_experience_with_tasks_of_another_form_is_none():
    space = make_space()
    other = Past([1, 64, 28, 3, 3], space, {0: 1.0, 1: 2.0})
    assert Experience([other]).expected([1, 64], space, np.arange(4)) is None
    failed = Past([1, 64], space, {0: 0.0})
    assert Experience([failed]).expected([1, 64], space, np.arange(4)) is None


def test_guided_is_done_when_nothing_is_to_be_gained():
    search = Guided(make_space(), 1, neighbours_taught(0), [1, 64, 56])
    run(search, 24)
    assert not Guided(make_space(), 1).done
    while not search.done and len(search.speeds) < 200:
        run(search, 4)
    assert len(search.speeds) < 200 and max(search.speeds.values()) == 1.0


def test_guided_does_not_end_by_itself_what_it_has_no_experience_with():
    soon = GuidedSettings(patience=8, least_gain=10.0)
    other_form = Experience([Past([1, 64, 28, 3, 3], make_space(), {0: 1.0, 1: 2.0})])
    foreign = Experience(neighbours_taught(0)._pasts, foreign=True)
    for experience, done in ((neighbours_taught(0), True), (None, False), (other_form, False),
                             (foreign, False)):
        search = Guided(make_space(), 1, experience, [1, 64, 56], settings=soon)
        run(search, 12, batch=2)
        assert search.gain < 10 and search.done is done


def test_experience_of_other_machines_is_followed_in_half_of_the_trials():
    """There, the smallest tiles were fastest."""
    space = make_space()
    past = Past([1, 64, 28], space, {i: float(2.0 ** -space.genes(i).sum())
                                     for i in range(space.range)})
    proposed = {foreign: Guided(space, 1, Experience([past], foreign=foreign), [1, 64, 56]
                                ).propose(8) for foreign in (False, True)}
    sizes = {foreign: space.genes(np.array(tried)).sum(1) for foreign, tried in proposed.items()}
    assert max(sizes[False]) <= 3
    assert max(sizes[True][0::2]) <= 3 < np.median(sizes[True][1::2])
    # Where it does not mislead, what is best is found soon all the same.
    taught = Experience(neighbours_taught(0)._pasts, foreign=True)
    assert trials_to_peak(Guided(space, 1, taught, [1, 64, 56]), 60) <= 6


def test_guided_keeps_away_from_what_fails():
    """By chance, three of eight would fail on the way to the peak."""
    def failing(space, index):
        return 0.0 if space.genes(index)[1] <= 2 else hill(space, index)

    tried = run(Guided(make_space(), 3), 60, failing)
    until = tried[:tried.index(make_space().index(PEAK)) + 1]
    assert len(until) < 40
    assert sum(make_space().genes(i)[1] <= 2 for i in until) < 0.2 * len(until)


def test_guided_works_in_spaces_too_large_to_look_through():
    knobs = tuple(Knob(name, powers(12)) for name in "abcdefg")
    space = Space(knobs)
    middle = np.array([6, 5, 7, 4, 6, 5, 3])

    def slope(_, index):
        return float(np.exp(-0.3 * np.abs(space.genes(index) - middle).sum()))

    guided, chance = (max(slope(space, i) for i in run(search, 60, slope, batch=4))
                      for search in (Guided(space, 1), RandomSearch(space, 1)))
    assert guided > 3 * chance


def arm_space(channels: int, size: int, words: int = 16) -> Space:
    """Like that of conv2d_nchw_spatial_pack.arm_cpu, cut in three as Mali's is."""
    return Space((*(Knob(name, cuts(extent, 3)) for name, extent in
                    (("tile_co", channels), ("tile_oh", size), ("tile_ow", size))),
                  Knob("ann", [[word] for word in range(words)])))


@pytest.mark.full
def test_a_space_of_a_million_takes_bounded_memory_and_work():
    """No more is looked at for a batch than for a space of three thousand, however long it goes on
    and with experience of a space as large."""
    space, other = arm_space(960, 224), arm_space(480, 112)
    assert space.range > 10 ** 6 and other.range > 10 ** 5
    random = np.random.default_rng(1)

    def speed(of, index):
        inner = [np.log2(knob.choices[gene][-1])
                 for knob, gene in zip(of.knobs[:3], of.genes(index)[:3])]
        return float(2.0 ** -np.abs(np.array(inner) - [4, 2, 3]).sum())

    taught = Past([1, 480, 112], other,
                  {i: speed(other, i) for i in other.sample(800, random)})
    asked = []
    experience = Experience([taught])
    answer = experience.expected
    experience.expected = lambda arguments, of, indices: asked.append(len(indices)) or answer(
        arguments, of, indices)
    search = Guided(space, 1, experience, [1, 960, 224])
    tracemalloc.start()
    tried = run(search, 40, speed, batch=4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(set(tried)) == 40 and max(asked) <= 3000 and peak < 200e6
    assert len(search.expectations) <= 53_000
    chance = run(RandomSearch(space, 1), 40, speed)
    assert max(speed(space, i) for i in tried) >= max(speed(space, i) for i in chance)


def test_a_recording_is_read_as_it_was_written(tmp_path):
    space = make_space()
    seconds = np.array([1e-3 / max(hill(space, i), 1e-9) for i in range(space.range)])
    seconds[5] = np.nan
    made = Recording("a", "develop", "conv2d", [["TENSOR", [1, 2], "float32"]], "llvm", 1e6,
                     space.knobs, seconds, {"measured_on": "a CPU"})
    made.write(tmp_path / "a.json")
    read = read_recording(tmp_path / "a.json")
    assert read.knobs == made.knobs and read.origin == {"measured_on": "a CPU"}
    assert np.allclose(read.seconds, seconds, rtol=1e-4, equal_nan=True)
    assert read.speeds[5] == 0 and read.speeds[space.index(PEAK)] == 1.0


@pytest.mark.parametrize(("change", "reason"), [
    ({"schema_version": 2}, "schema_version 2, where"), ({"microseconds": [1.0]}, "1 times for"),
    ({"knobs": None}, "no recording"), ({"microseconds": [None] * 672}, "no configuration has")])
def test_what_is_no_recording_is_refused(tmp_path, change, reason):
    space = make_space()
    Recording("a", "develop", "conv2d", [], "llvm", 1e6, space.knobs,
              np.ones(space.range)).write(tmp_path / "a.json")
    value = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps({**value, **change}))
    with pytest.raises(ToolError, match=reason) as error:
        read_recording(tmp_path / "a.json")
    assert error.value.code == MALFORMED_FILE and "a.json" in str(error.value)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_what_is_committed_are_recordings(path):
    recording = read_recording(path)
    assert recording.name == path.stem and recording.group in ("develop", "held_out")
    assert recording.space.range == len(recording.seconds) > 100


def test_the_summary_of_runs():
    runs = [Run("t", "xgb", s, ((1, 0.5), (20 + s, 0.96), (40, 1.0)), 0.001) for s in range(10)]
    runs += [Run("t", "fast", s, ((1, 0.92), (10, 0.97)), 0.002) for s in range(10)]
    report = summarize(runs, 50, "xgb")
    assert report["tasks"]["t"]["xgb"]["trials_to_95"]["median"] == 24.5
    assert report["tasks"]["t"]["fast"]["trials_to_99"] == {
        "median": None, "low": None, "high": None, "reached": 0.0}
    assert report["tuners"]["fast"]["ratio"]["mean"] == pytest.approx(10 / 24.5, abs=1e-3)
    assert "| `fast` | 1 (1–1) | 10 (10–10) | > 50" in markdown(report, 50)
    curve = curves(runs, 50)["xgb"]
    assert curve[0][0] == 0.5 and curve[0][49] == 1.0 and curve[1][22] <= curve[2][22]
    assert curves_plot("x < y", "trials", {"t": curves(runs, 50)}).count("<polyline") == 2
