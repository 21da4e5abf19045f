"""The committed reference results, and the rules behind them."""

import copy
import json

import numpy as np
import pytest
from conftest import ROOT

from run_model_tools.files import sha256_of
from run_model_tools.pictures.originals import PICTURES
from run_model_tools.zoo import golden

FOLDER = ROOT / "artifacts" / "golden" / "squeezenet1_1"


def load(stem):
    return json.loads((FOLDER / f"{stem}.json").read_text()), np.load(FOLDER / f"{stem}.npy")


def test_softmax_is_applied_once():
    logits = np.array([[1.0, 3.0, 2.0]], np.float32)
    once = golden.probabilities(logits)
    assert once.sum() == pytest.approx(1) and once[1] == pytest.approx(0.66524, abs=1e-5)
    assert np.allclose(golden.probabilities(once.astype(np.float32)), once, atol=1e-7)
    assert not golden.is_distribution(np.array([1.5, -0.5]))
    assert golden.probabilities(np.array([1000.0, 0.0])).tolist() == [1.0, 0.0]


def test_ties_go_by_index():
    assert golden.top(np.array([0.1, 0.4, 0.1, 0.4]), 3) == [1, 3, 0]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.file_name)
def test_committed_results_fit_together(picture):
    described, output = load(picture.file_name.split(".")[0])
    assert described["picture"]["sha256"] == picture.sha256
    assert sha256_of(ROOT / "images" / picture.file_name) == picture.sha256
    assert output.dtype == np.float32 and list(output.shape) == described["output"]["shape"]
    assert [t["index"] for t in described["top"]] == golden.top(golden.probabilities(output), 5)


def test_the_cat_is_a_cat():
    described, _ = load("chelsea")
    assert [t["index"] for t in described["top"]][:3] == [282, 285, 281]


@pytest.mark.parametrize("change", ["input", "top", "picture", "values", "shape", "nan"])
def test_differences_are_found(change):
    described, output = load("coffee")
    old, old_output = copy.deepcopy(described), output.copy()
    assert golden.compare(described, output, old, old_output, 1e-5) is None
    if change == "input":
        old["input"]["sha256"] = "0" * 64
    elif change == "top":
        old["top"][0]["index"] = 1
    elif change == "picture":
        del old["picture"]
    elif change == "values":
        old_output[0, 0] += 1e-3
    elif change == "nan":
        old_output[0, 0] = np.nan
    else:
        old_output = old_output[:, 1:]
    assert golden.compare(described, output, old, old_output, 1e-5)


def test_versions_and_tiny_differences_do_not_matter():
    described, output = load("coffee")
    old = copy.deepcopy(described)
    old["made_with"] = {}
    assert golden.compare(described, output * (1 + 1e-7), old, output, 1e-5) is None


def test_committed_results_are_reproduced(command):
    result = command("make_golden", "--zoo", "squeezenet1_1", "--check")
    assert f"{len(PICTURES)} results" in result.stdout


def test_a_changed_picture_is_not_reproduced(command, tmp_path):
    from PIL import Image
    Image.open(ROOT / "images" / "chelsea.png").rotate(180).save(tmp_path / "chelsea.png")
    result = command("make_golden", "--zoo", "squeezenet1_1", "--check", "--pictures",
                     tmp_path / "chelsea.png", code=6)
    assert "chelsea" in result.stderr and "'picture'" in result.stderr


def test_only_what_is_missing_is_made(command, classifier, tmp_path):
    from PIL import Image
    Image.open(ROOT / "images" / "dam.png").resize((12, 8)).save(tmp_path / "dam.png")
    (tmp_path / "labels.txt").write_text("one\ntwo\nthree\n")
    arguments = ("make_golden", "--model", classifier, "--pictures", tmp_path / "dam.png",
                 "--labels", tmp_path / "labels.txt", "--out", tmp_path / "golden", "--missing",
                 "--preprocessing", "imagenet", "--resize", 8, "--crop", 8)
    assert command(*arguments).stdout.count("dam.png") == 1
    assert (tmp_path / "golden" / "tiny" / "dam.json").is_file()
    assert command(*arguments).stdout == ""
    (tmp_path / "golden" / "tiny" / "dam.npy").unlink()
    assert "dam.png" in command(*arguments).stdout
    # Another preprocessing is another result.
    assert "dam.png" in command(*arguments, "--color-order", "BGR").stdout


def test_intermediates_are_the_networks(classifier):
    """Each value by its place and name; the last one is what the network gives."""
    from run_model_tools.onnx_model import run_onnx
    from run_model_tools.zoo.intermediates import compute, npz_bytes
    x = np.random.default_rng(2).normal(0, 1, (1, 3, 8, 8)).astype(np.float32)
    values = compute(classifier, {"image": x})
    assert list(values) == ["0000:image", "0001:c", "0002:r", "0003:p", "0004:f", "0005:logits",
                            "0006:prob"]
    assert np.array_equal(values["0002:r"], np.maximum(values["0001:c"], 0))
    np.testing.assert_allclose(values["0006:prob"], run_onnx(classifier, {"image": x})[0],
                               rtol=1e-5)
    import io
    back = np.load(io.BytesIO(npz_bytes(values)), allow_pickle=False)
    assert back.files == list(values)
    assert all(np.array_equal(back[key], values[key]) for key in values)
