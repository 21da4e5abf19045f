"""Networks of TensorFlow Lite: what is read of a file, and compiling one as a user does."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from run_model_tools import tvm_process
from run_model_tools.errors import ToolError
from run_model_tools.source_model import Scale, resolve_shapes
from run_model_tools.tflite.file import parse
from run_model_tools.tflite.model import read_tflite
from run_model_tools.tflite.sparsity import dense_values
from run_model_tools.verifying.inputs import random_inputs
from tflite_networks import TfliteNetwork, byte_network, float_network


def litert_or_skip(path: Path):
    model = read_tflite(path)
    reason = model.why_not_run()
    if reason is not None:
        pytest.skip(reason)
    return model


def test_facts(tmp_path):
    model = read_tflite(byte_network().save(tmp_path / "m.tflite"))
    given, = model.inputs
    assert (given.name, given.shape, given.dtype) == ("picture", (1, 17, 14, 3), np.dtype("int8"))
    assert given.scale == Scale(1 / 128, 0)
    assert model.output_scales[0] == Scale(1 / 256, -128)
    # Float32 has no 0.03, and the shortest decimals that mean the same are what a person wrote.
    assert model.output_scales[1] == Scale(0.03, 3)


@pytest.mark.parametrize("network", [float_network(), byte_network()])
def test_what_is_cut_short_is_said_in_a_sentence(tmp_path, network):
    data = network.save(tmp_path / "whole.tflite").read_bytes()
    path = tmp_path / "part.tflite"
    for end in range(0, len(data) - 64, max(1, len(data) // 97)):
        path.write_bytes(data[:end])
        with pytest.raises(ToolError) as caught:
            read_tflite(path)
        assert caught.value.code == 4 and "part.tflite" in str(caught.value)


def test_damage_is_noticed_or_read_as_something(tmp_path):
    data = bytearray(float_network().save(tmp_path / "whole.tflite").read_bytes())
    random = np.random.default_rng(3)
    path = tmp_path / "damaged.tflite"
    said = 0
    for _ in range(300):
        damaged = bytearray(data)
        # The tables lie behind the weights.
        for place in random.integers(len(data) // 2, len(data), 4):
            damaged[place] = random.integers(256)
        path.write_bytes(damaged)
        try:
            read_tflite(path)
        except ToolError as error:
            assert error.code == 4
            said += 1
    assert said > 20


def test_sparse_constants_become_dense(tmp_path):
    """Rows dense, columns compressed, in blocks of 1 x 4: the form of the schema's example."""
    dense = np.zeros((3, 8), np.float32)
    dense[0, 4:], dense[2, :4] = [1, 2, 3, 4], [5, 6, 7, 8]
    segments, indices = np.array([0, 1, 1, 2]), np.array([1, 0])

    def level(size=0, sparse=False):
        vectors = {"ArraySegments": segments, "ArrayIndices": indices} if sparse else {}
        return SimpleNamespace(
            Format=lambda: int(sparse), DenseSize=lambda: size,
            **{name: (lambda v=v: v) for name, v in vectors.items()},
            ArraySegmentsType=lambda: 1, ArrayIndicesType=lambda: 1)

    levels = [level(3), level(sparse=True), level(4)]
    sparsity = SimpleNamespace(
        TraversalOrderAsNumpy=lambda: np.array([0, 1, 2]), BlockMapAsNumpy=lambda: np.array([1]),
        DimMetadata=lambda i: levels[i], DimMetadataLength=lambda: 3)
    values = np.arange(1, 9, dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("run_model_tools.tflite.sparsity._numbers", lambda table, kind: table)
        np.testing.assert_array_equal(dense_values(sparsity, values, (3, 8)), dense)
        with pytest.raises(ValueError, match="7 values"):
            dense_values(sparsity, values[:7], (3, 8))


def test_compiles_and_is_compared(tmp_path, command):
    """A network in float32: its pictures stay in their own layout."""
    path = float_network().save(tmp_path / "net.tflite")
    model = litert_or_skip(path)
    result = command("compile_model", path, "--out", tmp_path / "out", "--json")
    report = json.loads(result.stdout)
    assert report["verification"]["done"] and report["verification"]["reference"] == "litert"
    metadata = report["metadata"]
    assert metadata["source"] == {"tflite_sha256": model.sha256, "tflite_version": 3}
    assert metadata["inputs"] == [{"name": "picture", "shape": [1, 17, 14, 3], "dtype": "float32",
                                   "layout": "NHWC"}]
    assert metadata["kernels"]["method"] == "ours"


def compile_many(networks: dict[str, TfliteNetwork], folder: Path, **options) -> dict[str, dict]:
    requests = []
    for name, network in networks.items():
        (folder / name).mkdir()
        path = network.save(folder / name / "net.tflite")
        shapes = resolve_shapes(read_tflite(path), {})
        requests.append({"tflite": str(path), "target": "native", "shapes": shapes,
                         "opt_level": 3, "directory": str(folder / name), "kernels": "auto",
                         **options})
    results = tvm_process.call("compile_many", None, requests=requests)["results"]
    return dict(zip(networks, results))


def outputs_of(folder: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    np.savez(folder / "in.npz", **inputs)
    tvm_process.call("run", None, directory=str(folder), inputs=str(folder / "in.npz"),
                     outputs=str(folder / "out.npz"))
    with np.load(folder / "out.npz") as file:
        return [file[f"arr_{i}"] for i in range(len(file.files))]


def without_names() -> TfliteNetwork:
    network = float_network()
    for tensor in network.tensors:
        tensor["name"] = ""
    return network


def half_weights() -> TfliteNetwork:
    """Weights stored as float16, made float32 by an operator of their own."""
    n = TfliteNetwork(4)
    x = n.tensor((1, 6, 6, 4))
    n.inputs = [x]
    n.conv(x, 8)
    code, inputs, outputs, *rest = n.operators.pop()
    weights = n.tensors[inputs[1]]
    weights.update(data=weights["data"].astype(np.float16), dtype="float16")
    wide = n.tensor(weights["shape"])
    n.add("DEQUANTIZE", [inputs[1]], [wide])
    n.operators.append((code, [inputs[0], wide, inputs[2]], outputs, *rest))
    n.outputs = outputs
    return n


def of_any_batch() -> TfliteNetwork:
    """A transposed convolution, the shape of whose result the file computes of its input's."""
    n = TfliteNetwork(7)
    x = n.tensor((1, 3, 4, 5), name="x")
    n.inputs = [x]
    first, behind = (n.constant(np.array([i], np.int32)) for i in (0, 1))
    batch = n.tensor((), "int32")
    extents = n.add("SHAPE", [x], [n.tensor((4,), "int32")], "ShapeOptions", OutType=2)
    n.add("STRIDED_SLICE", [extents, first, behind, behind], [batch], "StridedSliceOptions",
          ShrinkAxisMask=1)
    sizes = [n.constant(np.array(size, np.int32)) for size in (6, 8, 2)]
    shape = n.add("PACK", [batch, *sizes], [n.tensor((4,), "int32")], "PackOptions", ValuesCount=4)
    weights = n.constant(n.random.standard_normal((2, 3, 3, 5)).astype(np.float32))
    n.outputs = [n.add("TRANSPOSE_CONV", [shape, weights, x], [n.tensor((1, 6, 8, 2))],
                       "TransposeConvOptions", Padding=0, StrideH=2, StrideW=2)]
    return n


def slopes_by_channel(shape: tuple[int, ...], channels: int) -> TfliteNetwork:
    """PReLU after convolutions and after their sum, before a pooling."""
    n = TfliteNetwork(8)
    x = n.tensor((1, 12, 12, channels), name="x")
    n.inputs = [x]

    def activated(y: int) -> int:
        slopes = n.random.uniform(-0.5, 0.5, shape).astype(np.float32)
        return n.add("PRELU", [y, n.constant(slopes)], [n.like(y, n.tensors[y]["shape"])])

    first = activated(n.conv(x, channels))
    n.outputs = [n.pool(activated(n.binary("ADD", first, n.conv(first, channels))),
                        "MAX_POOL_2D", 2, 2)]
    return n


def opened(n: TfliteNetwork) -> TfliteNetwork:
    """The network with pictures of any number, as Keras' models come by themselves."""
    for tensor in n.tensors:
        if tensor["data"] is None and len(tensor["shape"]) == 4:
            tensor["signature"] = (-1, *tensor["shape"][1:])
    return n


def filled_like_the_input() -> TfliteNetwork:
    n = TfliteNetwork(9)
    x = n.tensor((1, 3, 4, 5), name="x")
    n.inputs = [x]
    extents = n.add("SHAPE", [x], [n.tensor((4,), "int32")], "ShapeOptions", OutType=2)
    same = n.add("FILL", [extents, n.constant(np.float32(0.5))], [n.tensor((1, 3, 4, 5))])
    filled = n.add("MUL", [x, same], [n.tensor((1, 3, 4, 5))], "MulOptions")
    # A row of the number 1, and then the number: constants of one value and two ranks.
    first, behind, rest = (n.constant(np.array([i], np.int32)) for i in (0, 1, 60))
    row = n.add("STRIDED_SLICE", [extents, first, behind, behind], [n.tensor((1,), "int32")],
                "StridedSliceOptions")
    joined = n.add("CONCATENATION", [row, behind, rest], [n.tensor((3,), "int32")],
                   "ConcatenationOptions", Axis=0)
    flat = n.add("RESHAPE", [x, joined], [n.tensor((1, 1, 60))])
    batch = n.add("STRIDED_SLICE", [extents, first, behind, behind], [n.tensor((), "int32")],
                  "StridedSliceOptions", ShrinkAxisMask=1)
    one, count = (n.constant(np.int32(extent)) for extent in (1, 60))
    shape = n.add("PACK", [batch, one, count], [n.tensor((3,), "int32")], "PackOptions",
                  ValuesCount=3)
    n.outputs = [filled, n.add("RESHAPE", [flat, shape], [n.tensor((1, 1, 60))])]
    return n


def test_a_picture_of_any_number_is_one(tmp_path):
    gives_what_litert_gives({"slopes": opened(slopes_by_channel((1, 1, 6), 6)),
                             "filled": opened(filled_like_the_input()),
                             "slope_of_each": opened(slopes_by_channel((12, 12, 3), 3)),
                             "bytes": opened(leaky_bytes())}, tmp_path)


@pytest.mark.full
def test_activations_stay_in_the_layout_of_convolutions(tmp_path):
    answer = compile_many({"slopes": slopes_by_channel((1, 1, 16), 16)}, tmp_path)["slopes"]
    assert set(answer["kernels"]["left_to_tvm"]) == {"layout_transform"}
    # Into blocks and out of them.
    assert answer["kernels"]["layout_changes"] == 2


@pytest.mark.full
def test_layers_of_bytes_stay_in_the_layout_of_convolutions(tmp_path):
    """Rounding to bytes and back between them has no layout of its own."""
    kernels = compile_many({"bytes": byte_network()}, tmp_path,
                           target="llvm -mcpu=x86-64-v3")["bytes"]["kernels"]
    assert kernels["layout_changes"] == 2 and kernels["int8_layers"] == 9


@pytest.mark.full
def test_layers_of_bytes_take_several_pictures(tmp_path):
    """All but the fully connected one, whose rows are a product of float32."""
    networks = {"three": byte_network(batch=3), "unsigned": byte_network("uint8", batch=3)}
    gives_what_litert_gives(networks, tmp_path)
    (tmp_path / "v3").mkdir()
    kernels = compile_many({"three": byte_network(batch=3)}, tmp_path / "v3",
                           target="llvm -mcpu=x86-64-v3")["three"]["kernels"]
    assert kernels["int8_layers"] == 8


def leaky_bytes() -> TfliteNetwork:
    """Between layers in blocks of channels, an activation of the picture as the file has it."""
    n = TfliteNetwork(12)
    x = n.tensor((1, 16, 16, 16), "int8", 1 / 64, 0, name="x")
    n.inputs = [x]
    a = n.conv(x, 16, out=(0.02, -7))
    y = n.add("LEAKY_RELU", [a], [n.like(a, n.tensors[a]["shape"], 0.021, -3)],
              "LeakyReluOptions", Alpha=0.2)
    n.outputs = [n.conv(y, 16, depthwise=True, stride=2, out=(0.03, 5))]
    return n


def test_axes_may_be_moved_between_layers_of_bytes(tmp_path):
    """TVM makes one conversion of those in front of each other, and wants one name for an axis."""
    gives_what_litert_gives({"leaky": leaky_bytes()}, tmp_path)


@pytest.mark.full
def test_small_networks_give_what_litert_gives(tmp_path):
    gives_what_litert_gives({
        "slopes": slopes_by_channel((1, 1, 16), 16), "one_slope": slopes_by_channel((1,), 6),
        "one_channel": slopes_by_channel((1, 1, 1), 1),
        "slope_of_each": slopes_by_channel((12, 12, 3), 3),
        "of_any_batch": of_any_batch(), "without_names": without_names(),
        "half_weights": half_weights(), "signed": byte_network(),
        "unsigned": byte_network("uint8")}, tmp_path)


def gives_what_litert_gives(networks: dict[str, TfliteNetwork], tmp_path: Path) -> None:
    answers = compile_many(networks, tmp_path)
    for name in networks:
        assert "error" not in answers[name], name
        model = litert_or_skip(tmp_path / name / "net.tflite")
        random = np.random.default_rng(5)
        inputs, shapes = {}, resolve_shapes(model, {})
        for item in model.inputs:
            shape = shapes[item.name]
            inputs[item.name] = (
                random.integers(-128, 128, shape).astype(np.int8).view(item.dtype)
                if item.scale else random.standard_normal(shape).astype(np.float32))
        pairs = zip(outputs_of(tmp_path / name, inputs), model.run(inputs), model.output_scales)
        for ours, theirs, scale in pairs:
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            apart = np.abs(ours.astype(np.float64) - theirs)
            # LiteRT rounds halves away from zero in some layers, and to even in others.
            assert apart.max() <= (2 if scale else 1e-5 * np.abs(theirs).max()), name
            assert scale is None or (apart > 1).mean() < 0.01


@pytest.mark.full
def test_mediapipes_transposed_convolution(tmp_path):
    """By its definition: every input adds its filter, two to the right. LiteRT, which lacks it,
    runs its own in its place."""
    n = TfliteNetwork(6)
    x = n.tensor((1, 3, 4, 5), name="x")
    n.inputs = [x]
    weights = n.random.standard_normal((2, 2, 2, 5)).astype(np.float32)
    bias = np.array([0.5, -1], np.float32)
    y = n.tensor((1, 6, 8, 2))
    n.add("CUSTOM", [x, n.constant(weights), n.constant(bias)], [y],
          custom=np.array([1, 2, 2], np.int32).tobytes(), custom_code="Convolution2DTransposeBias")
    n.outputs = [y]
    answer = compile_many({"t": n}, tmp_path)["t"]
    assert "error" not in answer
    given = np.random.default_rng(7).standard_normal((1, 3, 4, 5)).astype(np.float32)
    expected = np.einsum("yxi,ohwi->yhxwo", given[0], weights).reshape(6, 8, 2) + bias
    got, = outputs_of(tmp_path / "t", {"x": given})
    np.testing.assert_allclose(got[0], expected, atol=1e-5)
    reference, = litert_or_skip(tmp_path / "t" / "net.tflite").run({"x": given})
    np.testing.assert_allclose(reference[0], expected, atol=1e-5)


def test_operators_that_are_not_there_are_named(tmp_path, command):
    n = TfliteNetwork()
    x = n.tensor((1, 4), name="x")
    n.inputs, y = [x], n.tensor((1, 4))
    n.add("CUSTOM", [x], [y], custom=b"1234", custom_code="MyOwn")
    n.outputs = [y]
    result = command("compile_model", n.save(tmp_path / "m.tflite"), "--out", tmp_path / "out",
                     code=4)
    assert "MyOwn" in result.stderr
    assert "Traceback" not in result.stderr and not (tmp_path / "out" / "m" / "native").exists()


def test_constants_that_are_given_as_tensors_of_bytes(tmp_path):
    """Weights of bytes beside activations of float32 stand for numbers."""
    n = byte_network()
    n.save(tmp_path / "m.tflite")
    tensor = next(t for t in parse((tmp_path / "m.tflite").read_bytes()).tensors
                  if t.constant is not None and t.dtype == "int8")
    numbers = tensor.quantized.to_numbers(tensor.constant)
    scale = tensor.quantized.scales.reshape(-1, 1, 1, 1)
    np.testing.assert_allclose(numbers, tensor.constant * scale, rtol=1e-6)


def weights_of_bytes() -> TfliteNetwork:
    """As the converter writes weights by default where it is asked to make them small."""
    n = TfliteNetwork(9)
    x = n.tensor((1, 40), name="x")
    n.inputs = [x]
    y = n.dense(x, 7)
    weights = n.tensors[n.operators[0][1][1]]
    scales = np.abs(weights["data"]).max(axis=1) / 127
    weights.update(data=np.rint(weights["data"] / scales[:, None]).astype(np.int8), dtype="int8",
                   scale=scales.astype(np.float32))
    n.outputs = [y]
    return n


def test_weights_of_bytes_beside_floats_stand_for_numbers_in_the_reference_too(tmp_path):
    """LiteRT would round what they are multiplied by, which the compiled network does not."""
    network = weights_of_bytes()
    model = litert_or_skip(network.save(tmp_path / "net.tflite"))
    weights, bias = (network.tensors[i] for i in network.operators[0][1][1:])
    x = np.random.default_rng(3).standard_normal((1, 40)).astype(np.float32)
    want = x @ (weights["data"] * weights["scale"][:, None]).T + bias["data"]
    got, = model.run({"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_floats_that_were_rounded_last_are_compared_in_steps(tmp_path, command):
    """Floats outside, whole numbers inside, as the converter writes by default."""
    n = byte_network()
    last = n.outputs[1]
    picture = n.tensor((1, 17, 14, 3), name="floats")
    n.operators.insert(0, ("QUANTIZE", [picture], n.inputs, None, {}, b"", ""))
    n.inputs = [picture]
    n.outputs = [n.add("DEQUANTIZE", [last], [n.tensor((1, 5))]), last]
    path = n.save(tmp_path / "net.tflite")
    model = litert_or_skip(path)
    assert model.steps == [pytest.approx(0.03), None] and model.rounds
    assert model.inputs[0].span == (-1, 127 / 128)
    tried = random_inputs(model.inputs, {"floats": (1, 17, 14, 3)}, None, {}, 20)["floats"]
    assert -1 <= tried.min() < -0.9 and 0.9 < tried.max() < 1 and abs(tried.mean()) < 0.1
    verification = json.loads(command("compile_model", path, "--out", tmp_path / "out",
                                      "--json").stdout)["verification"]
    assert verification["done"] and verification["relative_difference"] < 0.01
