"""config.json of Hugging Face: what the outputs of transformers' networks mean, as tasks.

How outputs become results is read from the post_process_* functions of transformers 5's image
processors, whose results run_model gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FILE = "config.json"

# Detectors without suppression: the last class is none, and one class counts for a box; or each
# class counts by itself.
_SOFTMAX_DETECTORS = ("detr", "yolos", "table-transformer")
_SIGMOID_DETECTORS = ("conditional_detr", "dab-detr", "deformable_detr", "deta", "d_fine",
                      "lw_detr", "rf_detr", "rt_detr", "rt_detr_v2")
_BEST_100 = ("conditional_detr", "dab-detr", "deformable_detr", "deta")
_INVERSE_DEPTH, _DEPTH = ("depth_anything", "dpt"), ("glpn", "zoedepth")
_MOST_MASK_CLASSES = 255
_SCORE = 0.5


def is_configuration(value: Any) -> bool:
    """Whether a JSON object is such a file."""
    return isinstance(value, dict) and ("architectures" in value or "model_type" in value)


def tasks_of(value: dict[str, Any], outputs: Sequence[str]) -> list[dict[str, Any]]:
    """Nothing where it does not say, or says what is not known here.

    outputs: the names of the network's; exporters that do not know the architecture give others
    than it has, in its order.
    """
    architectures = value.get("architectures")
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    kind, labels = str(value.get("model_type", "")), labels_of(value)
    named = {"labels": labels} if labels else {}

    def output(usual: str, index: int) -> str | int:
        return usual if usual in outputs else index

    if "ForImageClassification" in name:
        several = value.get("problem_type") == "multi_label_classification"
        return [{"kind": "classification", "output": output("logits", 0),
                 **({"activation": "sigmoid"} if several else {}), **named}]
    if name.endswith("ForSemanticSegmentation") and len(labels) <= _MOST_MASK_CLASSES:
        return [{"kind": "segmentation", "form": "scores", "layout": "NCHW",
                 "output": output("logits", 0), **named}]
    if name.endswith("ForObjectDetection"):
        task = {"kind": "detection", "form": "boxes", "boxes": output("pred_boxes", 1),
                "scores": output("logits", 0), "box_format": "cxcywh", "units": "normalized",
                "score_threshold": _SCORE}
        if kind in _SOFTMAX_DETECTORS and labels:
            return [{**task, "activation": "softmax", "background": len(labels), "limit": 100,
                     "labels": [*labels, "no object"]}]
        if kind in _SIGMOID_DETECTORS:
            return [{**task, "activation": "sigmoid", "classes_per_box": "every",
                     "limit": 100 if kind in _BEST_100 else 300, **named}]
    if name.endswith("ForDepthEstimation") and kind in (*_INVERSE_DEPTH, *_DEPTH):
        metric = kind in _DEPTH or value.get("depth_estimation_type") == "metric"
        return [{"kind": "map", "output": output("predicted_depth", 0), "resample": "bicubic",
                 **({"quantity": "depth", "unit": "m"} if metric
                    else {"quantity": "inverse-depth"})}]
    return []


def labels_of(value: dict[str, Any]) -> list[str]:
    """The names of the classes 0, 1, 2 …; none where there are gaps, or placeholders only."""
    found = value.get("id2label")
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        return []
    try:
        by_number = {int(number): name for number, name in found.items()}
    except ValueError:
        return []
    if set(by_number) != set(range(len(by_number))) or all(
            name == f"LABEL_{number}" for number, name in by_number.items()):
        return []
    return [by_number[number] for number in range(len(by_number))]
