"""yoeo_field.npz, the trained weights by their names in the network, and the network with them.

A .npz is a zip archive; its members get no date, so that equal weights are equal files.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from robot_vision_tools.field_picture import AREAS, CLASSES
from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.tasks import presets
from run_model_tools.zoo.networks import BUILDERS
from run_model_tools.zoo.networks.weights import StateDict

__all__ = ["AREAS", "CLASSES", "PATH", "description", "network", "to_bytes"]

PATH = Path(__file__).resolve().parents[1] / "yoeo_field.npz"
NAME = "yoeo_field"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def to_bytes(weights: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(weights):
            member = io.BytesIO()
            np.save(member, np.ascontiguousarray(weights[name], np.float32), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _LONG_AGO), member.getvalue(),
                             zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def network(path: Path = PATH) -> bytes:
    """The ONNX file. Raises ToolError (3, 4) where the weights are not there or another
    network's."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            weights = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: "
                                      f"{error.strerror or error}.") from None
    except (ValueError, AttributeError, zipfile.BadZipFile, KeyError) as error:
        raise ToolError(MALFORMED_FILE, f"{path} is no .npz of weights: {error}.") from None
    return BUILDERS[NAME](StateDict(weights, str(path)), name=NAME).SerializeToString()


def description() -> dict[str, Any]:
    """yoeo_field.model.json: how a picture is prepared, and what the outputs mean, as
    artifacts/tasks.json has it."""
    preset = presets.find(NAME)
    assert preset.preprocessing is not None
    return {"schema_version": 1, "model": NAME, "preprocessing": preset.preprocessing.to_json(),
            "tasks": preset.tasks}
