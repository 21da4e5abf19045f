"""run_model.py with librun_model.so, against the program run_model.

RUN_MODEL_PYTHON is the folder with both, RUN_MODEL_PROGRAM the program.
"""

from __future__ import annotations

import copy
import gc
import importlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from small_networks import save_network

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS, PICTURE = ROOT / "artifacts", ROOT / "images/chelsea.png"
LABELS = ROOT / "labels/imagenet.txt"


@pytest.fixture(scope="module")
def run_model() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(os.environ["RUN_MODEL_PYTHON"])
        return importlib.import_module("run_model")


@pytest.fixture
def model(run_model):
    with run_model.Model(ARTIFACTS, "squeezenet1_1", labels=LABELS, threads=1) as opened:
        yield opened


def test_a_picture_has_the_programs_classes(model):
    (found,) = model.see(PICTURE)
    assert found["top"] == program_json("squeezenet1_1", ARTIFACTS, PICTURE, LABELS)["top"]
    assert len(model.results(classes=3)[0]["top"]) == 3


def test_pixels_are_a_picture(model):
    from PIL import Image

    pixels = np.asarray(Image.open(PICTURE).convert("RGB"))
    assert model.see(pixels) == model.see(str(PICTURE))
    assert model.see(pixels[:, ::-1]) != model.see(pixels)  # a view that has to be copied
    for other in (pixels.astype(np.float32), pixels[:, :, 0], pixels[..., :2]):
        with pytest.raises(Exception, match="a picture is a file or uint8"):
            model.see(other)


def test_tensors(run_model, model):
    (item,) = model.inputs
    assert item.shape == (1, 3, 224, 224) and item.dtype == np.float32
    x = np.random.default_rng(1).standard_normal(item.shape)
    (by_order,), (by_name,) = model(x), model(**{item.name: x.astype(np.float32)})
    assert by_order.dtype == np.float32 and by_order.shape == model.outputs[0].shape
    np.testing.assert_array_equal(by_order, by_name)
    model(np.zeros_like(x))
    assert (by_order == by_name).all()  # copies, which later runs leave alone
    strided = np.asfortranarray(x.astype(np.float32))
    np.testing.assert_array_equal(model(strided)[0], by_order)
    swapped = x.astype(np.float32).astype(">f4")
    np.testing.assert_array_equal(model(swapped)[0], by_order)


def test_arrays_that_a_model_shares(run_model, model):
    (item,) = model.inputs
    want = model(np.full(item.shape, 0.25))[0]
    x = run_model.empty(item.shape)
    x[:] = 0.25
    references = sys.getrefcount(x)
    model.set_input(0, x, copy=False)
    assert sys.getrefcount(x) > references
    model.run()
    shared = model.get_output(0, copy=False)
    np.testing.assert_array_equal(shared, want)
    with pytest.raises(ValueError, match="read-only"):
        shared[:] = 0
    again = model.get_output(0, copy=False)
    assert np.shares_memory(shared, again)
    assert not np.shares_memory(shared, model.get_output(0))
    x[:] = np.random.default_rng(1).standard_normal(item.shape)  # which the model sees
    model.run()
    assert (shared != want).any() and (shared == model(x)[0]).all()
    assert sys.getrefcount(x) == references  # the copy took its place
    model.set_input(0, x, copy=False)
    kept = model.get_output(0)
    del again
    model.close()
    assert sys.getrefcount(x) == references
    gc.collect()
    np.testing.assert_array_equal(shared, kept)  # memory that outlives the model


def test_what_cannot_be_shared_is_copied_or_refused(run_model, model):
    shape = model.inputs[0].shape
    fits = run_model.empty(shape)
    fits[:] = 0.5
    frozen = fits.view()
    frozen.flags.writeable = False
    beside = run_model.empty(fits.size + 1)[1:].reshape(shape)
    beside[:] = fits
    want = model(fits)[0]
    for other in (fits.astype(np.float64), fits[..., ::-1], beside, frozen, fits.tolist()):
        with pytest.raises(run_model.Error, match="needs a copy") as caught:
            model.set_input(0, other, copy=False)
        assert caught.value.code == 6
        model.set_input(0, np.zeros(shape))
        model.set_input(0, other, copy=None)
        model.run()
        np.testing.assert_array_equal(model.get_output(0), want)
    with pytest.raises(run_model.Error, match="given"):
        model.set_input(0, fits[0], copy=None)

    class OnlyDlpack:  # as tensors of other frameworks are
        def __dlpack__(self, **options: object) -> object:
            return fits.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return fits.__dlpack_device__()

    for how in (True, False, None):
        model.set_input(0, np.zeros(shape))
        model.set_input(0, OnlyDlpack(), copy=how)
        model.run()
        np.testing.assert_array_equal(model.get_output(0), want)


def test_what_does_not_fit_is_refused(run_model, model):
    for call, code in ((lambda: model(np.zeros((1, 3, 224, 223))), 6),
                       (lambda: model.set_input("other", 0), 6),
                       (lambda: model.get_output(1), 2), (lambda: model.get_output(-1), 2),
                       (lambda: model.set_input(1, 0), 2), (lambda: model.set_input(-1, 0), 2),
                       (lambda: model(np.zeros((1, 3, 224, 224)), data=0), 2),
                       (lambda: model(np.full((1, 3, 224, 224), 1e39)), 6),
                       (lambda: model.see(PICTURE, classes=-1), 2),
                       (lambda: model.see(PICTURE, size=(2 ** 32, 0)), 2),
                       (lambda: model.see(PICTURE, size=(5,)), 2),
                       (lambda: model.see(f"{PICTURE}\0.jpg"), 2),
                       (lambda: run_model.Model(ARTIFACTS, "squeezenet1_1\0"), 2),
                       (lambda: run_model.Model(ARTIFACTS, "squeezenet1_1", threads=2 ** 32), 2),
                       (lambda: model.see(LABELS), 7),
                       (lambda: run_model.Model("/nowhere"), 3),
                       (lambda: run_model.Model(ARTIFACTS, "squeezenet1_1", device="gpu:1"), 2),
                       (lambda: run_model.load_picture("/nowhere.png"), 3)):
        with pytest.raises(run_model.Error) as caught:
            call()
        assert caught.value.code == code and len(str(caught.value)) > 20
    infinite = np.full((1, 3, 224, 224), np.inf)
    model.set_input(0, infinite)  # which is infinite as float32 too
    with pytest.raises(TypeError):
        model(np.zeros((1, 3, 224, 224), complex))
    with pytest.raises(TypeError, match="open it where"):
        copy.copy(model)
    model.close()
    with pytest.raises(run_model.Error, match="closed"):
        model.run()


@pytest.mark.compiles
def test_types_other_than_float32(run_model, tmp_path):
    network = save_network(tmp_path / "net.onnx", """
        (int32[2,3] a, bool[2,3] m) => (int32[2,3] y, bool[2,3] n) {
            b = Neg(a) y = Where(m, a, b) n = Not(m) }""")
    subprocess.run([ROOT / "scripts/compile_model", network, "--name", "net", "--out", tmp_path,
                    "--preprocessing", "none", "--target", "native"], check=True)
    a, m = np.array([[1, -2, 2 ** 31 - 1], [0, 5, 6]]), np.eye(2, 3, dtype=bool)
    with run_model.Model(tmp_path, "net") as net:
        assert [info.dtype for info in net.inputs] == [np.int32, np.bool_]
        y, n = net(a, m=m)
        assert y.dtype == np.int32 and n.dtype == np.bool_
        np.testing.assert_array_equal(y, np.where(m, a, -a))
        np.testing.assert_array_equal(n, ~m)
        shared = run_model.empty(m.shape, bool)
        shared[:] = ~m
        net.set_input("m", shared, copy=False)
        net.run()
        np.testing.assert_array_equal(net.get_output(1, copy=False), m)
        with pytest.raises(run_model.Error, match="beyond its range"):
            net(a + 1, m)  # which int32 has not
        with pytest.raises(TypeError):
            net(a, a)
        with pytest.raises(run_model.Error, match="NCHW|CHW|layout|preprocessing"):
            net.set_picture(PICTURE, "a")


@pytest.fixture(scope="module")
def finder(tmp_path_factory) -> Path:
    """A model that finds two boxes, and whose first output is the picture's mean colour."""
    folder = tmp_path_factory.mktemp("finder")
    network = save_network(folder / "net.onnx", """
        (float[1,3,h,w] x) => (float[1,3] means, float[1,2,6] boxes) {
            means = ReduceMean<axes=[2,3],keepdims=0>(x)
            first = ReduceMax(means)
            nothing = Mul(first, zero)
            boxes = Add(rows, nothing) }""", {
        "zero": np.float32(0),
        "rows": np.array([[[.25, .25, .75, .5, .9, 0], [0, .5, .5, 1, .6, 0]]], np.float32)})
    (folder / "boxes.json").write_text(json.dumps({
        "kind": "detection", "form": "box-rows", "output": "boxes", "box_format": "xyxy",
        "units": "normalized", "score_threshold": 0.5, "labels": ["thing"],
        "region": {"square": "long", "scale": 1.5}}))
    (folder / "colours.json").write_text(json.dumps({
        "kind": "embedding", "output": "means", "region": {"square": "long", "scale": 1.5}}))
    fixed = ["--shape", "x:1,3,32,32", "--crop", "32", "--resize", "36"]
    for name, flags in (("fixed", fixed), ("open", ["--dynamic"])):
        subprocess.run([ROOT / "scripts/compile_model", network, "--name", name, "--out", folder,
                        "--preprocessing", "imagenet", "--task", folder / "boxes.json", *flags],
                       check=True)
    return folder


def program_json(*arguments: object) -> dict:
    done = subprocess.run([os.environ["RUN_MODEL_PROGRAM"], *map(str, arguments), "--json"],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.compiles
def test_a_model_looks_at_what_another_one_finds(run_model, finder):
    want = program_json("fixed", finder, PICTURE, "--task", finder / "colours.json", "--detector",
                        "fixed")
    assert len(want["regions"]) == 2 and want["regions"][0] != want["regions"][1]
    pixels = run_model.load_picture(PICTURE)
    assert pixels.dtype == np.uint8 and pixels.shape == (300, 451, 3)
    with run_model.Model(finder, "fixed") as detector, \
            run_model.Model(finder, "fixed", tasks=finder / "colours.json") as colours:
        with pytest.raises(run_model.Error, match="none was set"):
            colours.regions(detector)
        (found,) = detector.see(pixels)
        assert [box["label"] for box in found["detections"]] == ["thing"] * 2
        regions = colours.regions(detector)
        assert regions == want["regions"]
        seen = [colours.see(pixels, region=region)[0] for region in regions]
        assert [{**one, "region": i} for i, one in enumerate(seen)] == want["results"]
        assert colours.see(PICTURE, region=regions[1])[0] == seen[1]
        assert colours.see(pixels)[0] not in seen  # all of it again
        with pytest.raises(run_model.Error, match="finds no boxes"):
            detector.regions(colours)
        with pytest.raises(run_model.Error) as caught:
            colours.see(pixels, region={"x": 9999, "y": 0, "width": 9, "height": 9})
        assert caught.value.code == 2
    with run_model.Model(finder, "fixed", score_threshold=0.7) as strict:
        assert len(strict.see(pixels)[0]["detections"]) == 1
    with pytest.raises(run_model.Error, match="score_threshold"):
        run_model.Model(finder, "fixed", score_threshold=0)


@pytest.mark.compiles
def test_sides_that_a_model_leaves_open(run_model, finder):
    with run_model.Model(finder, "open", tasks=finder / "colours.json") as model:
        assert model.inputs[0].shape == (1, 3, -1, -1)
        for width, height in ((96, 64), (64, 128)):
            want = program_json("open", finder, PICTURE, "--task", finder / "colours.json",
                                "--size", f"{width}x{height}")
            assert model.see(PICTURE, size=(width, height)) == want["results"]
        with pytest.raises(run_model.Error, match="say how large"):
            model.see(PICTURE)
        with pytest.raises(run_model.Error, match="height of 0"):
            model.see(PICTURE, size=(64, 0))


def test_threads_share_a_model_and_have_their_own(run_model, model):
    x = [np.full((1, 3, 224, 224), number, np.float32) for number in (0.25, 0.5)]
    want = [model(one)[0] for one in x]
    found: list = [None, None]

    def work(which: int) -> None:
        with run_model.Model(ARTIFACTS, "squeezenet1_1", threads=1) as own:
            found[which] = [(model(x[which])[0], own(x[which])[0]) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for expected, pairs in zip(want, found):
        for pair in pairs:
            for made in pair:
                np.testing.assert_array_equal(made, expected)


def test_without_its_library_it_says_what_to_do(tmp_path):
    source = Path(os.environ["RUN_MODEL_PYTHON"], "run_model.py").read_text()
    (tmp_path / "run_model.py").write_text(source)
    done = subprocess.run([sys.executable, "-c", "import run_model"], cwd=tmp_path, text=True,
                          capture_output=True, check=False,
                          env={**os.environ, "RUN_MODEL_LIBRARY": "/nowhere.so"})
    assert done.returncode == 1 and "put librun_model.so beside" in done.stderr
