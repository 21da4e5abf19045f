"""The zoo beside networks and results that others made; they lie in a folder of the user's.

RUN_MODEL_ZOO_CACHE names it.  Besides the models of the manifest it may hold top5.json and
golden/ (somebody else's ONNX Runtime results for pictures of images/, see below); what is not
there is skipped by name.
"""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from run_model_tools.onnx_model import read_model, run_onnx
from run_model_tools.pictures.preprocess import preprocess
from run_model_tools.zoo import golden
from run_model_tools.zoo.manifest import choose, read_manifest
from run_model_tools.zoo.networks import BUILDERS, mobilenet_v2
from run_model_tools.zoo.networks.weights import Kind, Seeded, StateDict
from run_model_tools.zoo.sources import CACHE_VARIABLE, Cache


def cached(name):
    """(manifest's entry, path of the ONNX file in the user's folder)."""
    folder = os.environ.get(CACHE_VARIABLE)
    if not folder:
        pytest.skip(f"{name}: {CACHE_VARIABLE} is not set")
    model = choose(read_manifest(), [name])[0]
    path = Cache(Path(folder)).find(model.sources[0].sha256, model.sources[0].size)
    if path is None:
        pytest.skip(f"{name} is not in {folder}")
    return model, path


def tensors(path):
    return {tensor.name: numpy_helper.to_array(tensor)
            for tensor in onnx.load(str(path)).graph.initializer}


def identity_norms(layers, biases, epsilon=1e-5):
    """BatchNorms that only add: for networks whose own were folded into the convolutions."""
    result = {}
    for layer, bias in zip(layers, biases):
        ones = np.ones_like(bias)
        result.update({f"{layer}.weight": ones, f"{layer}.bias": bias,
                       f"{layer}.running_mean": 0 * ones,
                       f"{layer}.running_var": ones - np.float32(epsilon)})
    return result


def build_shufflenet_v1(theirs):
    weights = {name: array for name, array in theirs.items() if array.dtype == np.float32}
    return BUILDERS["shufflenet_v1_x0_5_g3"](StateDict(weights, "cache"))


def build_squeezenet(theirs):
    return BUILDERS["squeezenet1_1"](StateDict(theirs, "cache"))


def build_resnet18(weights):
    convs = [name.removesuffix(".weight") for name in weights
             if name.endswith(".weight") and not name.startswith("fc.")]
    norms = [conv.replace("conv", "bn").replace("downsample.0", "downsample.1") for conv in convs]
    weights.update(identity_norms(norms, [weights.pop(f"{conv}.bias") for conv in convs]))
    return BUILDERS["resnet18"](StateDict(weights, "cache"))


def build_mobilenet_v2(theirs):
    """Its layers are numbered in the order of the network, and TensorFlow's padding is used."""
    order = []

    class Recorder(Seeded):
        def take(self, name, kind, shape):
            order.append((name.rpartition(".")[0], kind))
            return super().take(name, kind, shape)
    mobilenet_v2.build(Recorder(1), same_padding=True)
    kernels = (Kind.KERNEL, Kind.LINEAR_KERNEL, Kind.CLASSIFIER)
    convs = [layer for layer, kind in order if kind in kernels]
    norms = [layer for layer, kind in order if kind is Kind.MEAN]
    # The last convolution is the classifier: 1x1 on pooled features.
    last = len(convs) - 1
    weights = {f"{layer}.weight": theirs[f"conv_{i}.weight"] for i, layer in enumerate(convs)}
    weights["classifier.1.weight"] = weights["classifier.1.weight"].reshape(1000, 1280)
    weights["classifier.1.bias"] = theirs[f"conv_{last}.bias"]
    weights.update(identity_norms(norms, [theirs[f"conv_{i}.bias"] for i in range(last)]))
    return mobilenet_v2.build(StateDict(weights, "cache"), same_padding=True)


BUILD = {"resnet18_kill_the_bits": build_resnet18, "mobilenet_v2_coral": build_mobilenet_v2,
         "shufflenet_v1_x0_5_g3": build_shufflenet_v1, "squeezenet1_1_ncnn": build_squeezenet}


@pytest.mark.parametrize("name", BUILD)
def test_our_network_of_their_weights_is_theirs(name, tmp_path):
    model, path = cached(name)
    built = BUILD[name](tensors(path))
    (tmp_path / "built.onnx").write_bytes(built.SerializeToString())
    pixels = np.random.default_rng(3).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    x = preprocess(pixels, model.preprocessing, (1, 3, 224, 224), "float32", "NCHW").tensor
    theirs = run_onnx(path, {read_model(path).inputs[0].name: x})[0]
    ours = run_onnx(tmp_path / "built.onnx", {built.graph.input[0].name: x})[0]
    assert np.abs(theirs).max() > 1e-3
    np.testing.assert_allclose(ours, theirs, atol=2e-5 * np.abs(theirs).max())


@pytest.mark.parametrize("name", BUILD)
def test_results_are_those_of_another_run(name):
    """golden/FILE_cat_output.npy: somebody else's output for images/cat.png of that folder."""
    model, path = cached(name)
    folder = Path(os.environ[CACHE_VARIABLE])
    reference = folder / "golden" / f"{path.stem}_cat_output.npy"
    picture = folder / "images" / "cat.png"
    if not reference.is_file() or not picture.is_file():
        pytest.skip(f"{name}: {reference} or {picture} is not there")
    onnx_model = read_model(path)
    given = golden.prepare(onnx_model, model.preprocessing, picture)
    ours = run_onnx(path, given.inputs)[0]
    theirs = np.load(reference)
    np.testing.assert_allclose(ours.ravel(), theirs.ravel(), atol=1e-4 * np.abs(theirs).max())


@pytest.mark.parametrize("name", BUILD)
def test_the_top_five_are_those_of_another_run(name):
    model, path = cached(name)
    folder = Path(os.environ[CACHE_VARIABLE])
    if not (folder / "top5.json").is_file():
        pytest.skip(f"{name}: {folder}/top5.json is not there")
    theirs = json.loads((folder / "top5.json").read_text())
    onnx_model = read_model(path)
    compared = 0
    for picture, results in theirs.items():
        file, five = folder / "images" / picture, results.get(path.name)
        # Decoders of JPEG differ.
        if not five or not file.is_file() or file.suffix != ".png":
            continue
        given = golden.prepare(onnx_model, model.preprocessing, file)
        # They round the long side to the nearest pixel, where torchvision cuts.
        width, height = given.prepared.original_size
        if max(given.prepared.resized_size) != round(256 * max(width, height) / min(width, height)):
            continue
        chances = golden.probabilities(run_onnx(path, given.inputs)[0])
        # Their probabilities are rounded: equal ones may be listed in another order.
        assert [float(chances[i]) for i in golden.top(chances, 5)] == pytest.approx(
            [chance for _, _, chance in five], abs=1e-3)
        assert golden.top(chances, 1)[0] == five[0][0]
        compared += 1
    assert compared >= 3
