"""Makes build/zoo/MODEL.onnx or .tflite, and MODEL.model.json beside it, which says what goes into
it and what comes out."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.environment import BUILD_DIR
from run_model_tools.errors import MALFORMED_FILE, MISMATCH, ToolError
from run_model_tools.files import json_text, locked, sha256_of, write_atomically
from run_model_tools.progress import stage
from run_model_tools.setup.download import Unreachable
from run_model_tools.zoo import torch_file
from run_model_tools.zoo.manifest import Model, Source
from run_model_tools.zoo.ndf_weights import load_weights
from run_model_tools.zoo.networks import BUILDERS
from run_model_tools.zoo.networks.squeezenet1_1 import caffe_name
from run_model_tools.zoo.networks.weights import Seeded, StateDict, Weights
from run_model_tools.zoo.sources import Fetcher

ZOO_DIR = BUILD_DIR / "zoo"


@dataclass(frozen=True)
class Outcome:
    """What became of one model: `made`, `up to date` or `left out`, and why."""

    model: Model
    state: str
    path: Path
    reason: str | None = None

    @property
    def is_there(self) -> bool:
        return self.state != "left out"


def paths(model: Model, folder: Path = ZOO_DIR) -> tuple[Path, Path]:
    """(the network's file, its description)."""
    return folder / f"{model.name}.{model.file_format}", folder / f"{model.name}.model.json"


def is_up_to_date(model: Model, folder: Path = ZOO_DIR) -> bool:
    """Whether both files are what `make` would make."""
    network, description = paths(model, folder)
    try:
        described = json.loads(description.read_text(encoding="utf-8"))
        found = sha256_of(network)
    except (OSError, ValueError):
        return False
    return (found == (model.sha256 or described.get(f"{model.file_format}_sha256"))
            and described in [_describe(model, source, found) for source in model.sources])


def make(model: Model, fetcher: Fetcher, folder: Path = ZOO_DIR, force: bool = False) -> Outcome:
    """Makes both files from the first source that can be reached.

    Safe while others make the same model: one of them does it, and the others find it done.
    Raises ToolError (4, 6) if what a source gives is not what the manifest says.
    """
    network, description = paths(model, folder)
    with locked(folder / f".{model.name}.lock"):
        if not force and is_up_to_date(model, folder):
            return Outcome(model, "up to date", network)
        reasons = []
        for source in model.sources:
            try:
                with stage(f"{model.name} from {source.describe()}"):
                    data = _build(model, source, fetcher)
            except Unreachable as error:
                reasons.append(str(error))
                continue
            found = hashlib.sha256(data).hexdigest()
            if model.sha256 not in (None, found):
                raise ToolError(MISMATCH, f"{model.name} from {source.describe()} became a file "
                                          f"with the SHA-256 {found}, where the manifest says "
                                          f"{model.sha256}.")
            write_atomically(network, data)
            write_atomically(description, json_text(_describe(model, source, found)).encode())
            return Outcome(model, "made", network)
        return Outcome(model, "left out", network, "; ".join(reasons))


def _describe(model: Model, source: Source, sha256: str) -> dict[str, Any]:
    """compile_model takes preprocessing, labels and tasks from here."""
    described = {"schema_version": 1, "model": model.name, f"{model.file_format}_sha256": sha256,
                 "source": {"kind": source.kind, "sha256": source.sha256},
                 "preprocessing": model.preprocessing.to_json() if model.preprocessing else None,
                 "labels": model.labels}
    return described if model.tasks is None else {**described, "tasks": model.tasks}


def _build(model: Model, source: Source, fetcher: Fetcher) -> bytes:
    if source.format == "seed":
        assert source.seed is not None  # manifest.py refuses such a source without one
        weights: Weights = Seeded(source.seed)
    else:
        data = fetcher.read(source)
        if source.format in ("onnx", "tflite"):
            return data
        what = source.member.path.rsplit("/", 1)[1] if source.member else source.file_name
        readers = {"ndf-pickle": load_weights, "npz": _load_npz}
        tensors = readers.get(source.format, torch_file.load_tensors)(data, what)
        weights = StateDict({caffe_name(name): array for name, array in tensors.items()}, what)
    assert model.architecture is not None  # manifest.py refuses such a source without one
    return BUILDERS[model.architecture](weights, name=model.name).SerializeToString()


def _load_npz(data: bytes, what: str) -> dict[str, np.ndarray]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ToolError(MALFORMED_FILE, f"{what} is no .npz of weights: {error}.") from None
