"""artifacts/modern/networks.json: the networks kept as skeletons."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.environment import BUILD_DIR, DATA_ROOT
from run_model_tools.errors import USAGE, ToolError
from run_model_tools.files import locked
from run_model_tools.zoo.modern.skeleton import fill_skeleton, load_skeleton

SCHEMA_VERSION = 1

FOLDER = DATA_ROOT / "artifacts" / "modern"
FILE = FOLDER / "networks.json"
FILLED = BUILD_DIR / "modern"

#: Half precision keeps 11 bits, of which sums in another order lose some. A quantised value that
#: lies at the border of two steps moves what follows by whole steps, of which there are 255.
_TOLERANCES = {"float16": 1e-2, "int8": 3e-2}


@dataclass(frozen=True)
class Input:
    """high: whole numbers in [0, high); 0: values of a normal distribution."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    high: int

    def values(self, seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        if self.high == 2:  # a mask: all tokens count
            return np.ones(self.shape, self.dtype)
        if self.high:
            return random.integers(0, self.high, self.shape).astype(self.dtype)
        return random.standard_normal(self.shape).astype(self.dtype)


@dataclass(frozen=True)
class Network:
    """facts: its entry of the file. An open extent of an input has the shape's."""

    name: str
    inputs: tuple[Input, ...]
    facts: dict[str, Any]

    @property
    def tolerance(self) -> float:
        """Allowed difference of outputs from ONNX Runtime's, of the largest value."""
        of_type = _TOLERANCES.get(self.facts.get("arithmetic", ""), 1e-3)
        return float(self.facts.get("tolerance", of_type))

    @property
    def skeleton(self) -> Path:
        return FOLDER / f"{self.name}.onnx.xz"

    def fill(self, folder: Path = FILLED, force: bool = False) -> Path:
        """FOLDER/NAME.onnx, with its weights inside or beside it as exported; made unless it has
        been since the skeleton was."""
        path = folder / f"{self.name}.onnx"
        with locked(folder / f".{self.name}.lock"):
            if force or not path.is_file() or (
                    path.stat().st_mtime < self.skeleton.stat().st_mtime):
                fill_skeleton(load_skeleton(self.skeleton), seed_of(self.name), path)
        return path

    def sample(self, seed: int) -> dict[str, np.ndarray]:
        return {item.name: item.values(seed) for item in self.inputs}


def seed_of(name: str) -> int:
    """Of a network's weights: the same for all exports of one, as resnet18 of resnet18-default."""
    return zlib.crc32(name.partition("-")[0].encode())


def read_networks() -> dict[str, Network]:
    document = json.loads(FILE.read_text(encoding="utf-8"))
    return {entry["name"]: Network(
        entry["name"], tuple(Input(i["name"], tuple(i["shape"]), np.dtype(i["dtype"]),
                                   i.get("high", 0)) for i in entry["inputs"]), entry)
        for entry in document["networks"]}


def choose(networks: dict[str, Network], names: list[str]) -> list[Network]:
    """Those of the names, or all."""
    for name in names:
        if name not in networks:
            raise ToolError(USAGE, f"there is no network '{name}'; there are "
                                   f"{', '.join(networks)}.")
    return [networks[name] for name in names or networks]
