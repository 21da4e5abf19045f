"""Makes artifacts/torchvision_weights.json: how pictures are prepared for torchvision's trained
classifiers, by the names of their weights, as their transforms() say.

Run with the Python of the environment of scripts/requirements-exporting.txt, and scripts/ in
PYTHONPATH: python -m run_model_tools.pictures.make_torchvision_weights
"""

from __future__ import annotations

from typing import Any

from run_model_tools.files import json_text, write_atomically
from run_model_tools.pictures.preprocessing import WEIGHTS


def made() -> dict[str, Any]:
    from torchvision.models import get_model_weights, list_models
    from torchvision.transforms._presets import ImageClassification

    groups: dict[tuple[Any, ...], list[str]] = {}
    for model in list_models():
        names = get_model_weights(model)
        for name, weights in names.__members__.items():  # DEFAULT, which is one of the others, too.
            does = weights.transforms()
            if isinstance(does, ImageClassification):
                key = (f"pil-{does.interpolation.value}", *does.resize_size, *does.crop_size,
                       tuple(does.mean), tuple(does.std))
                groups.setdefault(key, []).append(f"{names.__name__}.{name}")
    return {"schema_version": 1, "groups": [
        {"resizer": resizer, "resize": resize, "crop": crop, "mean": list(mean), "std": list(std),
         "weights": sorted(set(names))}
        for (resizer, resize, crop, mean, std), names in sorted(groups.items())]}


if __name__ == "__main__":
    write_atomically(WEIGHTS, json_text(made()).encode())
