"""What a difference means: comparison, inputs and noise of run_model_tools.verifying."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from run_model_tools.onnx_model import read_model, run_onnx
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.onnxruntime_process import OnnxRuntimeFailed
from run_model_tools.onnx_repair.reference import REPAIRED, reference_outputs
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.source_model import ModelInput
from run_model_tools.verifying.choices import Choice, choice_behind
from run_model_tools.verifying.comparison import compare, in_order_of
from run_model_tools.verifying.inputs import (
    narrower,
    picture_regions,
    random_inputs,
    whole_number_ranges,
)
from run_model_tools.verifying.noise import SAMPLES, noisy_outputs, noisy_runs
from small_networks import save_network, weights

RANDOM = np.random.default_rng(5)
EPSILON = 2.0 ** -24


def complaint(want, have, tolerance=1e-3, noisy=()):
    return compare("y", np.asarray(want), np.asarray(have), tolerance, lambda: noisy).complaint


def detections() -> np.ndarray:
    """100 boxes in hundreds of pixels with 81 scores each."""
    boxes = RANDOM.uniform(0, 640, (1, 100, 4))
    return np.concatenate([boxes, RANDOM.uniform(0, 1, (1, 100, 81))], 2).astype(np.float32)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1)])
def test_a_wrong_score_beside_large_boxes_shows(order):
    want = detections().transpose(order)
    have = want.copy()
    have[np.unravel_index(np.ravel_multi_index((0, 7, 50), (1, 100, 85)) if order == (0, 1, 2)
                          else np.ravel_multi_index((0, 50, 7), (1, 85, 100)), want.shape)] += 0.05
    assert "in 1 of 8500 places" in complaint(want, have)
    assert complaint(want, want * np.float32(1 + 8 * EPSILON)) is None


def test_small_numbers_among_large_ones_are_rounded_like_these():
    """A product of 1000 rows: some results are near zero by chance, their errors are not."""
    a, b = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((1, 4096), (4096, 1000)))
    want = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    have = np.zeros((1, 1000), np.float32)
    for i in range(4096):  # the worst order: one number after the other
        have += a[:, i:i + 1] * b[i]
    assert (np.abs(have - want) / np.abs(want)).max() > 1e-3
    assert complaint(want, have) is None


def test_what_noise_turns_into_something_else_is_not_called_compared():
    want = RANDOM.standard_normal((1, 100))
    noisy = [want + RANDOM.standard_normal(want.shape) for _ in range(SAMPLES)]
    have = want + 0.5 * RANDOM.standard_normal(want.shape)
    found = compare("y", want, have, 1e-3, lambda: noisy)
    assert found.complaint is None and found.undecided
    assert not compare("y", want, want + 1e-2, 1e-3, lambda: noisy).undecided
    assert not compare("y", want, want, 1e-3, lambda: noisy).undecided


def test_rounding_in_slices_of_zeros_is_no_mistake():
    """Channels that a ReLU leaves empty but for a trace, beside others."""
    want = np.maximum(RANDOM.standard_normal((1, 8, 20, 20)), 0).astype(np.float32)
    want[:, 3] = 0
    want[:, 4] = 0
    want[0, 4, 2, 2] = 1e-7
    have = want.copy()
    have[0, 3, 1, 1] = 2e-7
    have[0, 4, 2, 2] = 0
    assert complaint(want, have) is None
    have[0, 3, 1, 1] = 1e-3
    assert complaint(want, have) is not None


def test_nan_and_infinity_are_right_where_the_reference_has_them():
    want = np.array([1, np.nan, np.inf, -np.inf, 2], np.float32)
    assert complaint(want, want) is None
    for place, value in ((0, np.nan), (1, 1), (2, -np.inf), (3, np.nan), (4, np.inf)):
        have = want.copy()
        have[place] = value
        assert "in 1 of 5 places" in complaint(want, have)


def test_nan_passes_only_where_rounding_decides_it_in_the_reference_too():
    want = np.array([1, np.nan, 0.5, 2], np.float32)
    have = np.array([1, 0.9, np.inf, 2], np.float32)
    assert complaint(want, have, noisy=[want, np.array([1, 0.8, 0.5, 2])]) is not None
    assert complaint(want, have, noisy=[np.array([1, 0.8, np.nan, 2])]) is None
    assert complaint(want, have * 2, noisy=[np.array([1, 0.8, np.nan, 2])]) is not None


def test_whole_numbers_have_to_be_equal_but_where_the_reference_wavers():
    want = np.array([3, 1, 4, 1], np.int64)
    have = np.array([3, 1, 5, 1], np.int64)
    assert "4" in complaint(want, have)
    assert complaint(want, have, noisy=[want, have]) is None
    assert complaint(want, have, noisy=[np.array([2, 1, 4, 1])]) is not None
    assert complaint(want.astype(bool), ~want.astype(bool)) is not None


def test_what_the_reference_itself_leaves_open_passes_and_no_more():
    want = np.ones((1, 64), np.float32)
    want[0, 5] = 1e-6
    have = want.copy()
    have[0, 5] += 2e-2
    wavering = want.copy()
    wavering[0, 5] += 1e-2
    assert complaint(want, have) is not None
    assert complaint(want, have, noisy=[want, wavering]) is None
    assert complaint(want, have + 1, noisy=[want, wavering]) is not None


def test_another_shape_is_named():
    assert "(2, 2)" in complaint(np.ones((2, 2), np.float32), np.ones(4, np.float32))


def save_embedding(path: Path) -> Path:
    """Indices of a table of 7 rows, through a cast and a reshape, and a mask."""
    return save_network(path, """(int32[2,3] ids, int64[6,1] mask) => (float[6,3] y) {
        wide = Cast<to=7>(ids)
        flat = Reshape(wide, shape)
        rows = Gather(table, flat)
        kept = Cast<to=1>(mask)
        y = Mul(rows, kept)
    }""", {**weights(5, table=(7, 3)), "shape": [6]}, ir_version=7)


def test_indices_stay_inside_of_their_table(tmp_path):
    model = read_model(save_embedding(tmp_path / "e.onnx"))
    ranges = whole_number_ranges(model)
    assert ranges == {"ids": range(7), "mask": range(2)}
    shapes = {item.name: tuple(d or 1 for d in item.shape) for item in model.inputs}
    first, second = (random_inputs(model.inputs, shapes, None, ranges, seed) for seed in (1, 2))
    assert first["ids"].max() > 1 and not np.array_equal(first["ids"], second["ids"])
    assert np.any(run_onnx(model.path, first)[0])
    assert list(narrower(ranges)) == [
        ranges, {"ids": range(2), "mask": range(2)}, {"ids": range(1), "mask": range(1)}]


def test_pictures_are_noise_of_their_range_with_and_without_a_batch():
    spec = Preprocessing("pil-bilinear", "squash", "RGB", 255.0, (0.0,) * 3, (1.0,) * 3)
    for shape, picture in (((1, 3, 8, 9), True), ((3, 8, 9), True), ((1, 16, 32), False)):
        item = ModelInput("x", shape, np.dtype(np.float32))
        made = random_inputs([item], {"x": shape}, spec, {}, 3)["x"]
        assert (made.min() >= 0 and made.max() <= 1) == picture


@pytest.mark.parametrize("node, most", [
    ("GatherElements<axis=1>(x, i)", 6), ("ScatterElements<axis=0>(x, i, i)", 4),
    ("GatherND(x, i)", 4), ("ScatterND(x, i, u)", 4), ("Gather<axis=-1>(x, i)", 6)])
def test_indices_stay_inside_of_what_the_graph_says_of_its_tensors(node, most, tmp_path):
    path = save_network(tmp_path / "g.onnx",
                        f"(float[4,6] x, int64[4,2] i, float[4] u) => (float[] y) {{ y = {node} }}",
                        {}, ir_version=8)
    assert whole_number_ranges(read_model(path)) == {"i": range(most)}


def test_indices_stay_inside_of_the_smallest_size_that_is_tried(tmp_path):
    """Of a graph's nodes, say, of which there may be any number."""
    path = save_network(tmp_path / "n.onnx", """(float[n,6] x, int64[e,1] i) => (float[] y) {
        y = GatherND(x, i) }""", {}, ir_version=8)
    shapes = [{"x": (size, 6), "i": (3, 1)} for size in (7, 5, 30)]
    assert whole_number_ranges(read_model(path), *shapes) == {"i": range(5)}
    assert whole_number_ranges(read_model(path)) == {"i": range(10)}


@pytest.mark.parametrize("counts, range_of", [
    ("mask", {"mask": range(1, 2)}), ("counts", {"counts": range(5, 6), "mask": range(2)})])
def test_all_keys_of_a_cache_count(counts, range_of, tmp_path):
    path = save_network(tmp_path / "k.onnx", f"""
        (float[1,1,64] q, float[1,1,32] k, float[1,1,32] v, float[1,2,5,16] pk,
           float[1,2,5,16] pv, int64[1,6] mask, int32[1] counts) => (float[1,1,64] y) {{
            sums = ReduceSum<keepdims=0>(mask, axis)
            last = Sub(sums, one)
            narrow = Cast<to=6>(last)
            y = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2>(
                q, k, v, pk, pv, {"narrow" if counts == "mask" else "counts"}, total)
        }}""", {"axis": [1], "one": [1], "total": np.array([6], np.int32)},
        com_microsoft=1)
    ranges = whole_number_ranges(read_model(path))
    assert {**ranges, **range_of} == ranges


@pytest.mark.parametrize("source, count", [("x", 2), ("h", 1)])
def test_boxes_are_of_pictures_that_are_there(source, count, tmp_path):
    path = save_network(tmp_path / "r.onnx", f"""(
        float[2,3,8,8] x, float[4,4] boxes, int64[4] of) => (float[4,3,2,2] y) {{
        h = Relu(x)
        y = RoiAlign<output_height=2,output_width=2,sampling_ratio=2>({source}, boxes, of)
    }}""", {}, ir_version=8)
    assert whole_number_ranges(read_model(path)) == {"of": range(count)}


@pytest.mark.parametrize("columns", [4, 5])
def test_random_boxes_are_parts_of_their_pictures(columns, tmp_path):
    """Also where each stands behind the number of its picture, as torchvision has them."""
    path = save_network(tmp_path / "r.onnx", f"""(
        float[2,3,6,8] x, float[99,{columns}] boxes) => (float[99,3,1,1] y) {{
        box = Slice(boxes, from, to, axis)
        number = Slice(boxes, zero, from, axis)
        whole = Cast<to = 7>(number)
        of = ReduceSum(whole, axis)
        line = Reshape(of, all)
        y = RoiAlign<spatial_scale=0.5>(x, box, line)
    }}""", {"from": np.array([columns - 4]), "to": np.array([columns]), "axis": np.array([1]),
            "zero": np.array([0]), "all": np.array([-1])}, ir_version=8)
    model = read_model(path)
    regions = picture_regions(model)
    assert regions == {"boxes": (2, 12.0)}
    shapes = {"x": (2, 3, 6, 8), "boxes": (99, columns)}
    made = random_inputs(model.inputs, shapes, None, {}, 3, regions)["boxes"]
    low, high = made[:, -4:-2], made[:, -2:]
    assert (low >= 0).all() and (low <= high).all() and (high <= 12).all() and high.max() > 11
    assert columns == 4 or set(made[:, 0]) == {0, 1}


def test_what_something_is_divided_by_is_not_zero(tmp_path):
    path = save_network(tmp_path / "d.onnx", """(
        int64[3] x, int64[3] by, uint8[3] bytes, uint8[3] of) => (int64[3] y, uint8[3] z) {
        flat = Identity(by)
        part = Div(x, by)
        y = Mod(part, flat)
        z = Div(bytes, of)
    }""", {}, ir_version=8)
    ranges = whole_number_ranges(read_model(path))
    assert ranges == {"x": range(10), "by": range(1, 10), "of": range(1, 256)}
    assert [tried["by"] for tried in narrower(ranges)] == [range(1, 10), range(1, 3), range(1, 2)]


def test_noise_changes_what_depends_on_weights_a_little(tmp_path):
    model = read_model(save_embedding(tmp_path / "e.onnx"))
    inputs = {"ids": np.arange(6, dtype=np.int32).reshape(2, 3), "mask": np.ones((6, 1), np.int64)}
    want = run_onnx(model.path, inputs)[0]
    samples = [outputs[0] for outputs in noisy_outputs(model.path, inputs, run_onnx)]
    assert len(samples) == SAMPLES
    frozen = read_model(model.path, {"mask": inputs.pop("mask")})
    for sample, (other, *_) in zip(samples, noisy_runs(frozen, inputs), strict=True):
        np.testing.assert_array_equal(sample, other)
    change = np.abs(np.array(samples) - want) / np.abs(want)
    assert 1e-7 < change.mean() < 1e-5 and change.max() < 1e-5


def test_noise_is_put_into_the_repaired_model_where_that_is_the_reference(tmp_path):
    """As of detectors whose backbones end poolings outside of the picture."""
    model = read_model(save_network(
        tmp_path / "p.onnx", """(float[1,1,5,5] x, int64[1] place) => (float[] y) {
            pooled = AveragePool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1,
                                 count_include_pad = 1> (x)
            scores = Sigmoid(pooled)
            y = Gather<axis = 3>(scores, place)
        }""", {}, 19), {"place": np.array([2])})
    x = np.random.default_rng(1).uniform(-2, 2, (1, 1, 5, 5)).astype(np.float32)
    (want,), who = model.run_by({"x": x})
    assert who == REPAIRED
    samples = np.array([outputs[0] for outputs in noisy_runs(model, {"x": x})])
    assert len(samples) == SAMPLES and np.ptp(samples, axis=0).min() > 0
    np.testing.assert_allclose(samples, np.broadcast_to(want, samples.shape), rtol=1e-5)


def test_scores_next_to_zero_are_no_better_in_the_reference_than_its_sigmoid(tmp_path):
    """As the maps of a trained detector where nothing is."""
    path = save_network(tmp_path / "s.onnx", """(float[1,4096] x) => (float[1,4096] y) {
        y = Sigmoid(x)
    }""", {})
    x = np.random.default_rng(1).uniform(-17, -15, (1, 4096)).astype(np.float32)
    want = run_onnx(path, {"x": x})[0]
    exact = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)

    def noisy():
        return (outputs[0] for outputs in noisy_outputs(path, {"x": x}, run_onnx))
    assert np.max(np.abs(want / exact - 1)) > 0.05
    assert compare("y", want, exact, 1e-3, tuple).complaint
    assert not compare("y", want, exact, 1e-3, noisy).complaint
    assert compare("y", want, exact + np.float32(1e-6), 1e-3, noisy).complaint


def test_a_root_beside_its_bound_is_no_better_in_the_reference_than_its_sqrt(tmp_path):
    """As PyTorch Geometric's deviations, which are 0 up to the root of what they are clipped to."""
    path = save_network(tmp_path / "r.onnx", """(float[1,64] x) => (float[1,64] y) {
        low = Constant<value_float=9.999999747378752e-06>()
        most = Constant<value_float=0.003162277629598975>()
        nothing = Constant<value_float=0.0>()
        none = Mul(x, nothing)
        bounded = Max(none, low)
        root = Sqrt(bounded)
        is_least = LessOrEqual(root, most)
        y = Where(is_least, nothing, root)
    }""", {})
    x = np.ones((1, 64), np.float32)
    samples = [outputs[0] for outputs in noisy_outputs(path, {"x": x}, run_onnx)]
    assert any((sample == 0).any() for sample in samples)
    assert any((sample != 0).any() for sample in samples)


def segmenter(path: Path) -> Path:
    """Four classes of 64x64 places, the best of which is the output: conv -> ArgMax -> Cast."""
    return save_network(path, """(float[1,3,64,64] x) => (int32[1,64,64] classes) {
        scores = Conv<pads=[1,1,1,1]>(x, w)
        best = ArgMax<axis=1,keepdims=0>(scores)
        classes = Cast<to=6>(best)
    }""", weights(3, w=(4, 3, 3, 3)), 17)


def test_an_index_is_right_where_the_noise_of_a_deep_network_decides_it():
    values = np.ones((1, 2, 20))
    values[:, 1] -= 1e-4
    values[:, 1, 19] -= 0.1
    want, have = np.zeros((1, 20), int), np.zeros((1, 20), int)
    have[0, [3, 19]] = 1
    noisy = Choice(values, 1, lambda: [values + 1e-4, values - 1e-4])
    assert Choice(values, 1).equally_good(want, have, 1e-5)[0, 3] == 0
    assert noisy.equally_good(want, have, 1e-5)[0].tolist() == [True] * 19 + [False]
    # Without a tolerance nothing is let pass.
    assert not noisy.equally_good(want, have, -1.0)[0, 3]


def test_an_index_is_right_where_rounding_decides_it_and_nowhere_else(tmp_path):
    model = read_model(segmenter(tmp_path / "net.onnx"))
    inputs = {"x": RANDOM.standard_normal((1, 3, 64, 64)).astype(np.float32)}
    want, = model.run(inputs)
    choice = choice_behind(model, inputs, 0)
    assert choice is not None and choice.values.shape == (1, 4, 64, 64)
    order = np.argsort(choice.values, axis=1)
    assert np.array_equal(order[:, -1], want)
    margin = np.take_along_axis(choice.values, order, 1)
    closest = np.unravel_index(np.argmin(margin[:, -1] - margin[:, -2]), want.shape)
    clear = np.unravel_index(np.argmax(margin[:, -1] - margin[:, -2]), want.shape)
    limit = 1.01 * float((margin[:, -1] - margin[:, -2]).min() / np.abs(margin[:, -1][closest]))

    def found(place, value):
        have = want.copy()
        have[place] = value
        return compare("classes", want, have, limit, list,
                       equally_good=lambda a, b: choice.equally_good(a, b, limit)).complaint

    assert found(closest, order[:, -2][closest]) is None
    assert "in 1 of 4096 places" in found(clear, order[:, -2][clear])
    assert "in 1 of 4096 places" in found(closest, order[:, 0][closest])
    assert "in 1 of 4096 places" in found(closest, 4)
    assert choice_behind(read_model(segmenter(tmp_path / "cut.onnx"), outputs=["scores"]), inputs,
                         0) is None


def test_the_reference_runs_what_onnx_runtime_makes_invalid_itself(tmp_path, monkeypatch):
    """As 1.20 does of some Resize that it moves a Transpose across."""
    path = tmp_path / "net.onnx"
    save_network(path, "(float[3] x) => (float[3] y) { y = Neg(x) }", {})
    as_it_is = onnxruntime_process.run

    def refuses(model, inputs, optimized=True):
        if optimized:
            raise OnnxRuntimeFailed("its own changes are not valid")
        return as_it_is(model, inputs, optimized)

    monkeypatch.setattr(onnxruntime_process, "run", refuses)
    x = np.float32([1, -2, 3])
    (got,), who = reference_outputs(path, {"x": x})
    assert who == "onnxruntime"
    np.testing.assert_array_equal(got, -x)


def test_the_reference_computes_positions_that_onnx_runtime_cannot(tmp_path):
    """In float64, of a shape that is known when another one is: ONNX Runtime has no such cosine."""
    path = tmp_path / "net.onnx"
    save_network(path, """(float[2, 3, 4] x) => (float[2, 12] y) {
        first = Constant<value_ints=[0]>()
        rest = Constant<value_ints=[-1]>()
        shape = Shape(x)
        rows = Gather<axis=0>(shape, first)
        wide = Concat<axis=0>(rows, rest)
        flat = Reshape(x, wide)
        flat_shape = Shape(flat)
        begin = Constant<value_int=0>()
        one = Constant<value_int=1>()
        count = Gather<axis=0>(flat_shape, one)
        places = Range(begin, count, one)
        exact = Cast<to=11>(places)
        waves = Cos(exact)
        positions = Cast<to=1>(waves)
        y = Add(flat, positions)
    }""", {})
    x = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
    with pytest.raises(OnnxRuntimeFailed, match="Cos"):
        onnxruntime_process.run(str(path), {"x": x})
    (got,), who = reference_outputs(path, {"x": x})
    assert who == "onnxruntime"
    want = x.reshape(2, 12) + np.cos(np.arange(12.0)).astype(np.float32)
    np.testing.assert_array_equal(got, want)


def test_constant_sequences_are_left_to_the_evaluator(tmp_path):
    path = tmp_path / "net.onnx"
    save_network(path, """(float[2] x) => (double[2] y) {
        one = Constant<value_floats=[0.5]>()
        many = SequenceConstruct(one, one)
        half = ConcatFromSequence<axis=0>(many)
        sum = Add(x, half)
        exact = Cast<to=11>(sum)
        y = Cos(exact)
    }""", {})
    x = np.float32([1, -2])
    (got,), who = reference_outputs(path, {"x": x})
    assert who == "onnx.reference"
    np.testing.assert_allclose(got, np.cos(x + 0.5), rtol=1e-6)


def test_rows_in_another_order():
    boxes, labels = detections()[0], np.arange(100) % 7
    order = RANDOM.permutation(100)
    other = [boxes[order] * (1 + 1e-6), labels[order]]
    found = in_order_of([boxes, labels], other)
    assert complaint(boxes, found[0]) is None and complaint(labels, found[1]) is None
    other[1] = (other[1] + 1) % 7
    assert complaint(labels, in_order_of([boxes, labels], other)[1])
    other[0] = np.concatenate([other[0][:1], other[0][:-1]])
    assert complaint(boxes, in_order_of([boxes, labels], other)[0])
    assert in_order_of([boxes, labels], [boxes[1:], labels[1:]]) is None
