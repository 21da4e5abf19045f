"""The networks that the side-by-side benches run: their ONNX files, artifacts, input and output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from run_model_tools.zoo.modern import manifest

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "build" / "zoo"

#: Models of artifacts/zoo.json by the network that they are, the first that is in build/zoo is
#: used; a seed decides the last one's weights, which change neither speed nor memory.
MODELS = {
    "resnet18": ("resnet18_torchvision", "resnet18", "seeded_resnet18"),
    "squeezenet1_1": ("squeezenet1_1", "squeezenet1_1_torchvision", "seeded_squeezenet1_1"),
    "mobilenet_v2": ("mobilenet_v2_torchvision", "mobilenet_v2", "seeded_mobilenet_v2"),
    "shufflenet_v2": ("shufflenet_v2_x1_0_torchvision", "shufflenet_v2_x1_0",
                      "seeded_shufflenet_v2"),
}


#: The name of all networks of artifacts/modern together, each by the first export of it.
MODERN = "modern"

#: Largest allowed difference of an output, of its largest value: what compile_model allows of
#: float32, in which arithmetic in another order stays far below it and half precision would not.
TOLERANCE = 1e-3
#: The same with products of bfloat16, of which OpenVINO's change ResNet-18 by 2 %.
BFLOAT16_TOLERANCE = 0.1


@dataclass(frozen=True)
class Network:
    """`name`: as the bench calls it. `model`: whose file `onnx` is.

    inputs: values by name; without them, inputs_of() makes those of the only input.
    tolerance: of its outputs. modern: whether it is one of artifacts/modern.
    """

    name: str
    model: str
    onnx: Path
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    tolerance: float = TOLERANCE
    modern: bool = False


class CannotCompile(SystemExit):
    """compile_model failed, or did not end: ends the program unless it is caught."""


class NoReference(SystemExit):
    """ONNX Runtime does not run a network."""


def find_networks(names: list[str]) -> list[Network]:
    """find_network() of each; MODERN stands for all of artifacts/modern."""
    expanded = []
    for name in names:
        expanded += modern_networks() if name == MODERN else [name]
    return [find_network(name) for name in expanded]


def modern_networks() -> list[str]:
    """Without further exports of a network, and those that differ in an open batch only."""
    firsts: dict[str, str] = {}
    for name in manifest.read_networks():
        if "_dynamic" not in name:
            firsts.setdefault(name.partition("-")[0], name)
    return list(firsts.values())


def _find_modern(name: str) -> Network | None:
    network = manifest.read_networks().get(name)
    if network is None:
        return None
    return Network(name, name, network.fill(), network.sample(seed=7), network.tolerance,
                   modern=True)


def find_network(name: str) -> Network:
    """A name of MODELS or of artifacts/modern, or the path of an ONNX file. Ends the program where
    it cannot be had."""
    if name.endswith(".onnx"):
        path = Path(name).resolve()
        if not path.is_file():
            sys.exit(f"{name} is not there: give an ONNX file, or one of {', '.join(MODELS)}.")
        return Network(path.stem, path.stem, path)
    if name not in MODELS:
        found = _find_modern(name)
        if found is None:
            sys.exit(f"there is no network '{name}': give an ONNX file, {MODERN}, or one of "
                     f"{', '.join([*MODELS, *manifest.read_networks()])}.")
        return found
    for model in MODELS[name]:
        if (ZOO / f"{model}.onnx").is_file():
            return Network(name, model, ZOO / f"{model}.onnx")
    model = MODELS[name][-1]
    _check(subprocess.run([ROOT / "scripts" / "fetch_zoo", model, "--out", ZOO],
                          capture_output=True, text=True, check=False), f"fetch_zoo {model}")
    return Network(name, model, ZOO / f"{model}.onnx")


def compile_network(network: Network, out: Path, *, kernels: str = "ours", tuned: bool = True,
                    records: Path | None = None, target: str = "native",
                    compiler: str = "relay", precision: str = "float32",
                    seconds: float | None = None) -> Path:
    """The artifact's folder below `out`, compiled for this machine unless that has been done.

    kernels: "ours", this project's, which not every CPU can run; "stock", TVM's schedules: tuned
    with the project's records, or with `records`; "auto": what compile_model takes by itself.
    compiler, precision: as compile_model's options. seconds: the most that compiling may take.
    """
    kind = {"ours": "ours", "auto": "auto", "stock": "tuned" if tuned else "untuned"}[kernels]
    if target != "native":
        kind += f"_{target}"
    if compiler != "relay":
        kind += f"_{compiler}"
    if precision != "float32":
        kind += f"_{precision}"
    command = [ROOT / "scripts" / "compile_model", network.onnx, "--name", network.model,
               "--target", target, "--target-name", kind, "--no-verify", "--preprocessing",
               "none", "--kernels", kernels, "--compiler", compiler,
               "--precision", precision, "--out", out]
    if not tuned:
        command += ["--tuning", "none"]
    elif records:
        command += ["--tuning-records", records.resolve()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        _, messages = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the compiler is a process of its own
        process.communicate()
        raise CannotCompile(f"compile_model {network.onnx} did not end within {seconds:g} "
                            "seconds") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        raise
    if process.returncode != 0:
        raise CannotCompile(f"compile_model {network.onnx} failed: {messages.strip()}")
    return out / network.model / kind


def inputs_of(network: Network) -> dict[str, np.ndarray]:
    """By name, the values that every runtime gets."""
    if network.inputs:
        return network.inputs
    name, shape = input_of(network)
    return {name: make_input(shape)}


def make_input(shape: tuple[int, ...]) -> np.ndarray:
    """The values that trial.h's fill_input gives: a linear congruential generator's, in [-1, 1)."""
    state = 1
    values = np.empty(int(np.prod(shape)), dtype=np.float32)
    for i in range(values.size):
        state = (state * 1664525 + 1013904223) & 0xffffffff
        values[i] = (state >> 8) / 8388608 - 1
    return values.reshape(shape)


def input_of(network: Network) -> tuple[str, tuple[int, ...]]:
    """Name and shape of the network's only input, which has to be float32."""
    import onnx
    graph = onnx.load(network.onnx, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if len(inputs) != 1 or inputs[0].type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        sys.exit(f"{network.onnx} does not have one input of float32, which this bench needs.")
    shape = tuple(d.dim_value for d in inputs[0].type.tensor_type.shape.dim)
    if not all(shape):
        sys.exit(f"{network.onnx} leaves the shape of its input open, which this bench cannot use.")
    return inputs[0].name, shape


def reference_output(network: Network, values: dict[str, np.ndarray]) -> np.ndarray:
    """The first output of the tools' own ONNX Runtime, with no optimisation of the graph.
    Raises NoReference."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(network.onnx), options,
                                               providers=["CPUExecutionProvider"])
    except Exception as error:  # of classes without a common one
        raise NoReference(f"ONNX Runtime does not load {network.onnx}: {error}") from error
    return session.run(None, values)[0].astype(np.float32)


def _check(done: subprocess.CompletedProcess, what: str) -> None:
    if done.returncode != 0:
        sys.exit(f"{what} failed: {done.stderr.strip()}")
