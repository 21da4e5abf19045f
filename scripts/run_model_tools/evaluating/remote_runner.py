"""The network on a board, pictures and results here.

TVM's stock client runs the artifact in rpc_server (inside_tvm/remote_network.py, a process of its
own, since it needs TVM's libraries). Pictures are prepared, and outputs read, by the references
that run_model is held to (pictures.preprocess, zoo.reference_results): the artifact is for another
machine, and run_model could not load it here.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.compiling.artifact import guess_layout
from run_model_tools.environment import PACKAGE, TVM_DIR, tvm_environment
from run_model_tools.errors import FAILED_RUN, MISMATCH, MISSING_FILE, ToolError
from run_model_tools.evaluating.artifact import Artifact
from run_model_tools.evaluating.local_runner import PictureFailed
from run_model_tools.pictures.preprocess import load_picture, preprocess
from run_model_tools.pictures.preprocessing import from_json
from run_model_tools.zoo.golden import probabilities, top
from run_model_tools.zoo.placement import Placement, placement_of
from run_model_tools.zoo.reference_results import Reference

_CLIENT = PACKAGE / "inside_tvm" / "remote_network.py"


def tasks_of(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """The tasks of metadata.json, which has one or a list of them, or none."""
    found = metadata.get("tasks") or []
    return [found] if isinstance(found, dict) else found


def _real(value: np.ndarray, described: dict[str, Any]) -> np.ndarray:
    """What whole numbers stand for, where the metadata has a scale."""
    if "scale" not in described:
        return value
    return (value.astype(np.float64) - described.get("zero_point", 0)) * described["scale"]


@dataclass(frozen=True)
class Board:
    """Where rpc_server listens, or the tracker that knows it."""

    address: tuple[str, int]
    key: str
    is_tracker: bool


class RemoteRunner:
    """Use as a context."""

    def __init__(self, board: Board, artifact: Artifact, tasks: list[dict[str, Any]],
                 python: Path) -> None:
        """tasks: none where the outputs are scores of classes.  python: has what TVM's client
        imports."""
        metadata = artifact.metadata
        inputs = metadata.get("inputs") or []
        if not metadata.get("preprocessing") or len(inputs) != 1:
            raise ToolError(MISMATCH, (
                f"{artifact.library} has no metadata.json that says how a picture becomes its only "
                "input: compile it with compile_model and --preprocessing."))
        self._spec = from_json(metadata["preprocessing"], str(artifact.library))
        self._input = inputs[0]
        self._board, self._artifact = board, artifact
        self._tasks, self._python = tasks, python
        self._folder = tempfile.TemporaryDirectory(prefix="run_model-")
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> RemoteRunner:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            assert self._process.stdin
            self._process.stdin.close()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()

    def report(self, picture: Path) -> dict[str, Any]:
        """As run_model's. Raises PictureFailed, and ToolError where there is no board."""
        given, outputs = (Path(self._folder.name, name) for name in ("in.npz", "out.npz"))
        try:
            pixels = load_picture(picture)
        except ToolError as error:
            raise PictureFailed(str(error)) from None
        shape = tuple(self._input["shape"])
        layout = self._input.get("layout") or guess_layout(shape) or "NCHW"
        tensor = preprocess(pixels, self._spec, shape, self._input["dtype"], layout).tensor
        np.savez(given, **{self._input["name"]: tensor})
        self._ask(f"{given}\t{outputs}")
        extents = dict(zip(layout, shape))
        size = (pixels.shape[1], pixels.shape[0])
        placement = placement_of(self._spec, size, (extents["W"], extents["H"]))
        return {"width": size[0], "height": size[1], **self._read(outputs, placement)}

    def _read(self, outputs: Path, placement: Placement) -> dict[str, Any]:
        with np.load(outputs, allow_pickle=False) as arrays:
            values = [arrays[f"output_{index}"] for index in range(len(arrays.files))]
        if not all(np.isfinite(value).all() for value in values):
            raise PictureFailed("the network gave NaN or infinity")
        if not self._tasks:
            chances = probabilities(values[0])
            return {"top": [{"index": index, "probability": float(chances[index])}
                            for index in top(chances, 5)]}
        names = [str(output["name"]) for output in self._artifact.metadata.get("outputs", ())]
        scales = self._artifact.metadata.get("outputs", ())
        values = [_real(value, scales[k] if k < len(scales) else {})
                  for k, value in enumerate(values)]
        return {"results": Reference(names, values, placement).results(self._tasks)}

    def _ask(self, line: str) -> None:
        """Has the client do what the line says, to its end."""
        process = self._process or self._connected()
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(line + "\n")
            process.stdin.flush()
        self._expect(process, "done")

    def _connected(self) -> subprocess.Popen[str]:
        if not (TVM_DIR / "python" / "tvm" / "libtvm.so").exists():
            raise ToolError(MISSING_FILE, f"TVM's client {TVM_DIR} is not there: run "
                                          "scripts/setup.sh once.")
        host, port = self._board.address
        request = Path(self._folder.name, "request.json")
        artifact = self._artifact
        request.write_text(json.dumps({
            "library": str(artifact.library),
            "graph": str(artifact.graph) if artifact.graph else None,
            "params": str(artifact.params) if artifact.params else None,
            "host": host, "port": port, "key": self._board.key,
            "tracker": self._board.is_tracker}))
        self._process = subprocess.Popen([str(self._python), str(_CLIENT), str(request)],
                                         env=tvm_environment(), stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         text=True, start_new_session=True)
        self._expect(self._process, "ready")
        return self._process

    def _expect(self, process: subprocess.Popen[str], expected: str) -> None:
        assert process.stdout
        line = process.stdout.readline().strip()
        if line == expected:
            return
        host, port = self._board.address
        what = "tracker" if self._board.is_tracker else "rpc_server"
        raise ToolError(FAILED_RUN, (
            f"the board behind the {what} {host}:{port} gave no result: "
            f"{line.removeprefix('error: ') or 'the connection ended'}; what is done is kept: "
            "start rpc_server on the board with --host 0.0.0.0 and the same --key, and go on with "
            "--resume."))
