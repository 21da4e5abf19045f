"""What takes part: run_model, its peers and TVM's own runtime, ready to be started on a network."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from networks import Network
from peers.held.holding import CannotHold, Hold, hold
from peers.processes import OUTPUT, THREADS, Runner
from run_model_tools.onnx_repair.stored_tensors import files_beside

WORKERS = Path(__file__).resolve().parent / "workers"
OURS = "run_model"
STOCK = "stock"
TVM = "tvm"
PEERS = ("onnxruntime", "openvino", "ncnn", "mnn", "litert")
#: Names for people.
TITLES = {OURS: "run_model", STOCK: "TVM tuned", TVM: "TVM untuned", "onnxruntime": "ONNX Runtime",
          "openvino": "OpenVINO", "ncnn": "ncnn", "mnn": "MNN", "litert": "LiteRT"}


class NotThere(Exception):
    """A runner cannot be had for this network or on this machine."""


@dataclass(frozen=True)
class PeerEnvironment:
    """Where the peers are installed, and where what is converted for them is kept.

    held: where libraries of peers that are held to AVX2 are kept; None: peers run as they like.
    bfloat16: whether OpenVINO computes in it; no other of the peers does on x86-64.
    """

    venv: Path
    litert_converter: Path
    converted: Path
    held: Path | None = None
    bfloat16: bool = False

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    def runner(self, peer: str, network: Network, inputs: Path,
               environment: dict[str, str] | None = None) -> Runner:
        """Converts the network unless that has been done. Raises NotThere.

        inputs: an .npz file of the inputs by name. environment: of a peer that is held to AVX2
        (Hold.environment).
        """
        model = self.convert(peer, network, environment)
        return Runner(peer, (str(self.python), str(WORKERS / "worker.py"), peer, str(inputs),
                             OUTPUT, str(model), THREADS),
                      (environment or {})
                      | ({"RUN_MODEL_PEER_PRECISION": "bf16"} if self.bfloat16 else {}))

    def hold(self, peer: str) -> Hold | CannotHold:
        """How the peer is held to AVX2, or why it cannot be. Raises NotThere."""
        version = self._version(peer)
        ran = subprocess.run([self.python, "-c", "import numpy; print(numpy.__path__[0])"],
                             capture_output=True, text=True, check=False)
        try:
            return hold(peer, Path(ran.stdout.strip()).parent, version, self.held)
        except CannotHold as error:
            return error

    def convert(self, peer: str, network: Network,
                held: dict[str, str] | None = None) -> Path:
        """held: the environment of a peer that is; what it converts is for the CPU that it sees."""
        if not self.python.exists():
            raise NotThere(f"{self.venv} is not there")
        version = self._version(peer) + ("-avx2" if held else "")
        digest = hashlib.sha256()
        for file in (network.onnx, *files_beside(network.onnx)):
            digest.update(file.read_bytes())
        digest.update((WORKERS / f"{peer}_peer.py").read_bytes())
        folder = self.converted / f"{network.model}-{peer}-{version}-{digest.hexdigest()[:12]}"
        done = folder / "done.json"
        if done.exists():
            return Path(json.loads(done.read_text(encoding="utf-8"))["path"])
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        copied = _copy(network.onnx, folder / "network.onnx")
        environment = os.environ | {"RUN_MODEL_LITERT_CONVERTER": str(self.litert_converter)}
        if peer in ("onnxruntime", "openvino"):  # others convert with programs of their own
            environment |= held or {}
        ran = subprocess.run([self.python, WORKERS / "convert.py", peer, copied, folder],
                             env=environment, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise NotThere(f"{network.model} cannot be converted: {_last_line(ran.stderr)}")
        path = ran.stdout.strip()
        done.write_text(json.dumps({"path": path}), encoding="utf-8")
        return Path(path)

    def _version(self, peer: str) -> str:
        ran = subprocess.run([self.python, "-c", f"import {peer}_peer as p; print(p.VERSION)"],
                             cwd=WORKERS, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise NotThere(f"it is not installed: {_last_line(ran.stderr)}")
        return ran.stdout.split()[-1]


def our_runner(program: Path, artifact: Path, input_names: Sequence[str], input_file: Path,
               name: str = OURS) -> Runner:
    """input_file: the inputs' bytes, one after the other."""
    return Runner(name, (str(program), "serve", str(input_file), OUTPUT, str(artifact),
                         *input_names), peer=False)


def tvm_runner(program: Path, tvm: Path, artifact: Path, input_names: Sequence[str],
               input_file: Path) -> Runner:
    """`tvm`: build/tvm, whose lib/ has the libraries that libtvm_runtime.so asks for."""
    runtime = tvm / "python" / "tvm" / "libtvm_runtime.so"
    if not runtime.exists():
        raise NotThere(f"{runtime} is not there")
    return Runner(TVM, (str(program), "serve", str(input_file), OUTPUT, str(runtime), str(artifact),
                        *input_names), {"LD_LIBRARY_PATH": str(tvm / "lib")}, peer=False)


def _copy(source: Path, destination: Path) -> Path:
    """In one file, since not every converter looks for others; a copy, since onnx2tf writes the
    network that it has simplified over the one it is given."""
    if files_beside(source):
        onnx.save(onnx.load(str(source)), str(destination))
    else:
        shutil.copy(source, destination)
    return destination


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
