"""The networks: their known sizes, seeded weights that matter, and files that do not fit."""

import hashlib

import numpy as np
import onnx
import pytest
from conftest import ROOT

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import run_onnx
from run_model_tools.pictures.preprocess import load_picture, preprocess
from run_model_tools.pictures.preprocessing import PRESETS
from run_model_tools.zoo.intermediates import compute
from run_model_tools.zoo.networks import BUILDERS, squeezenet1_1
from run_model_tools.zoo.networks.graph import same_pads
from run_model_tools.zoo.networks.weights import Kind, Seeded, StateDict

# Trainable parameters.  Torchvision's documentation: num_params of each model; ShuffleNet v1 and
# EfficientNet-Lite0: the numbers of their authors, rounded (0.7 M, 1.9 M and 4.7 M).
KNOWN_SIZES = {
    "resnet18": 11_689_512, "squeezenet1_1": 1_235_496, "mobilenet_v2": 3_504_872,
    "shufflenet_v2_x1_0": 2_278_604, "shufflenet_v1_x0_5_g3": 0.7e6,
    "shufflenet_v1_x1_0_g3": 1.9e6, "efficientnet_lite0": 4.7e6,
}
# YOEO, which is no classifier, has a test of its own.
SEEDED = sorted(set(BUILDERS) - {"shufflenet_v1_x1_0_g3", "squeezenet1_1_logits", "yoeo",
                           "yoeo_field"})


class Recorder(Seeded):
    """Seeded weights that remember what was asked for."""

    def __init__(self):
        super().__init__(1)
        self.asked = {}

    def take(self, name, kind, shape):
        assert name not in self.asked
        array = super().take(name, kind, shape)
        self.asked[name] = kind, array
        return array


@pytest.mark.parametrize("name", KNOWN_SIZES)
def test_known_sizes(name):
    recorder = Recorder()
    BUILDERS[name](recorder)
    count = sum(array.size for kind, array in recorder.asked.values()
                if kind not in (Kind.MEAN, Kind.VARIANCE))
    known = KNOWN_SIZES[name]
    assert count == known if isinstance(known, int) else abs(count - known) < 0.05e6


def pictures():
    return [preprocess(load_picture(ROOT / "images" / name), PRESETS["imagenet"],
                       (1, 3, 224, 224), "float32", "NCHW").tensor
            for name in ("chelsea.png", "dam.png", "goldfish.png", "palace.png")]


@pytest.mark.parametrize("name", SEEDED)
def test_every_operator_of_a_seeded_network_matters(name, tmp_path):
    """Values neither die nor grow, every limit is reached, and pictures are told apart."""
    path = tmp_path / "n.onnx"
    model = BUILDERS[name](Seeded(1))
    path.write_bytes(model.SerializeToString())
    inputs = [{model.graph.input[0].name: tensor} for tensor in pictures()]
    values = compute(path, inputs[0])
    kinds = {f"{i:04d}:{node.output[0]}": node.op_type
             for i, node in enumerate(model.graph.node, 1)}
    for key, kind in kinds.items():
        if kind != "Softmax":
            assert 0.05 < values[key].std() < 50, key
        if kind in ("Relu", "Clip"):
            assert 0.02 < np.mean(values[key] == 0) < 0.9, key
    limited = [np.mean(values[key] == 6) for key, kind in kinds.items() if kind == "Clip"]
    assert not limited or np.mean(limited) > 0.02

    outputs = [run_onnx(path, x)[0].ravel() for x in inputs]
    spread = outputs[0].std()
    for i, one in enumerate(outputs):
        for other in outputs[:i]:
            assert np.abs(one - other).max() > 0.25 * spread


def test_seeded_weights_are_the_same_everywhere():
    """The hash is the manifest's, where another machine would see that its weights differ."""
    data = BUILDERS["squeezenet1_1"](Seeded(1), name="seeded_squeezenet1_1").SerializeToString()
    assert hashlib.sha256(data).hexdigest() in (ROOT / "artifacts" / "zoo.json").read_text()
    assert not np.array_equal(Seeded(1).take("w", Kind.BIAS, (9,)),
                              Seeded(2).take("w", Kind.BIAS, (9,)))


def tensors_of(name):
    recorder = Recorder()
    BUILDERS[name](recorder)
    return {key: array for key, (_, array) in recorder.asked.items()}


def test_a_state_dict_gives_the_same_network():
    """Its count of batches is not asked for; its tensors are those of the file, bit for bit."""
    tensors = tensors_of("shufflenet_v2_x1_0")
    tensors["conv1.1.num_batches_tracked"] = np.array(5)
    built = BUILDERS["shufflenet_v2_x1_0"](StateDict(tensors, "s.pth"))
    assert built == BUILDERS["shufflenet_v2_x1_0"](Seeded(1))


@pytest.mark.parametrize("change", ["missing", "shape", "more"])
def test_other_state_dicts_are_refused(change):
    tensors = tensors_of("squeezenet1_1")
    if change == "missing":
        del tensors["fire2/squeeze1x1.bias"]
    elif change == "shape":
        tensors["conv1.weight"] = tensors["conv1.weight"][:, :, :2]
    else:
        tensors["fc.weight"] = np.zeros(3)
    with pytest.raises(ToolError, match="s.pth") as caught:
        BUILDERS["squeezenet1_1"](StateDict(tensors, "s.pth"))
    assert caught.value.code == 4


def test_torchvisions_names_of_squeezenet():
    for theirs, caffe in (("features.0.weight", "conv1.weight"),
                          ("features.3.squeeze.bias", "fire2/squeeze1x1.bias"),
                          ("features.12.expand3x3.weight", "fire9/expand3x3.weight"),
                          ("classifier.1.bias", "conv10.bias"), ("other.bias", "other.bias")):
        assert squeezenet1_1.caffe_name(theirs) == caffe


def test_tensorflows_padding():
    """SAME: of 224 rows with stride 2, a 3x3 kernel needs one more, which goes to the end."""
    assert same_pads(224, 3, 2) == (0, 0, 1, 1)
    assert same_pads(56, 5, 2) == (1, 1, 2, 2)
    assert same_pads(112, 3, 1) == (1, 1, 1, 1)
    assert same_pads(7, 1, 1) == (0, 0, 0, 0)


def test_the_opset_is_what_compilers_read():
    model = BUILDERS["efficientnet_lite0"](Seeded(3))
    assert model.opset_import[0].version == 13 and model.ir_version == 7
    onnx.checker.check_model(model, full_check=True)
