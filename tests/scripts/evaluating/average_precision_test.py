"""Average precision by COCO's rules, held to pycocotools 2.0.8 on the same boxes and people
(coco/make_golden.py), and to what follows from the rules by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from run_model_tools.evaluating.datasets import coco
from run_model_tools.evaluating.example import DETECTION, KEYPOINTS, DataSet
from run_model_tools.evaluating.figures import figures
from run_model_tools.evaluating.metrics.average_precision import Detections, Things, summarise
from run_model_tools.evaluating.store import Result

COCO = Path(__file__).parent / "coco"
sys.path.insert(0, str(COCO))
from cases import CASES, make_case  # noqa: E402

GOLDEN = json.loads((COCO / "golden.json").read_text())
NAMES = {
    "bbox": ["ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar_1", "ar_10", "ar_100",
             "ar_small", "ar_medium", "ar_large"],
    "keypoints": ["ap", "ap50", "ap75", "ap_medium", "ap_large", "ar", "ar50", "ar75", "ar_medium",
                  "ar_large"]}


def results_of(data: DataSet, detections: list[dict]) -> list[Result]:
    """As they are stored after run_model has said the same."""
    kept: dict[str, list] = {example.key: [] for example in data.examples}
    for one in detections:
        x, y, width, height = one["bbox"]
        row = [one["category_id"], one["score"], x, y, x + width, y + height]
        if data.kind == KEYPOINTS:
            row.append([v for k in range(17) for v in one["keypoints"][3 * k:3 * k + 2]])
        kept[f"{one['image_id']}.png"].append(row)
    return [Result(key, {"found": found, "unknown": 0}, None, 0.0, False, 0.0)
            for key, found in kept.items()]


@pytest.mark.parametrize("name", CASES)
def test_figures_are_those_of_pycocotools(name: str, tmp_path: Path) -> None:
    seed, kind = CASES[name]
    annotations, detections = make_case(seed, kind)
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(annotations))
    data = coco.read(path, tmp_path, KEYPOINTS if kind == "keypoints" else DETECTION)
    assert data.kind == (KEYPOINTS if kind == "keypoints" else DETECTION)
    result = figures(data, results_of(data, detections))
    for title, expected in zip(NAMES[kind], GOLDEN[name]):
        found = -1.0 if result[title] is None else result[title]
        assert found == pytest.approx(expected, abs=1e-9), title
    assert 0 < result["ap"] < 1


def one(boxes: list, scores: list[float] | None = None) -> Things | Detections:
    array = np.array(boxes, float).reshape(-1, 4)
    areas = (array[:, 2:] - array[:, :2]).prod(1)
    if scores is not None:
        return Detections(array, areas, np.array(scores))
    none = np.zeros(len(array), bool)
    return Things(array, areas, none, none)


def test_what_follows_by_hand() -> None:
    """One of two things found, and surer of something that is not there: precision 1/2 at recalls
    up to 1/2, which are 51 of 101, at overlaps up to 0.95 for a box that is exact."""
    things = {("a", 1): one([[0, 0, 50, 50], [100, 0, 150, 50]])}
    found = {("a", 1): one([[300, 300, 350, 350], [0, 0, 50, 50]], [0.9, 0.8])}
    result = summarise({1: "thing"}, things, found)
    assert result["ap"] == pytest.approx(0.5 * 51 / 101) and result["ar_100"] == 0.5
    assert result["ar_1"] == 0.0 and result["ap_small"] is None
    assert result["categories"] == [{"id": 1, "name": "thing", "things": 2,
                                     "ap": result["ap"], "ap50": result["ap50"]}]


def test_nothing_found_and_nothing_there() -> None:
    assert summarise({1: "thing"}, {("a", 1): one([[0, 0, 9, 9]])}, {})["ap"] == 0.0
    assert summarise({1: "thing"}, {}, {("a", 1): one([[0, 0, 9, 9]], [0.5])})["ap"] is None
