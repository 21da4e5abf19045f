"""Average precision of masks and of boxes with an angle, and how well a score tells two classes,
held to pycocotools, Shapely and scikit-learn (coco/make_golden.py), from files to figures."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from run_model_tools.errors import ToolError
from run_model_tools.evaluating.datasets import coco, csv_list, dota
from run_model_tools.evaluating.example import (
    CLASSIFICATION,
    INSTANCES,
    TURNED,
    ClassTruth,
    DataSet,
    Example,
)
from run_model_tools.evaluating.figures import figures
from run_model_tools.evaluating.outcome import Judged, Unfit
from run_model_tools.evaluating.outline import Outline
from run_model_tools.evaluating.predictions import CategoryMapping, judge
from run_model_tools.evaluating.store import Result
from run_model_tools.zoo.reference_pixels import coco_counts

COCO = Path(__file__).parent / "coco"
sys.path.insert(0, str(COCO))
from shapes import CATEGORIES, HEIGHT, WIDTH, make_masks, make_scores, make_turned  # noqa: E402

GOLDEN = json.loads((COCO / "golden.json").read_text())
NAMES = ["ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar_1", "ar_10", "ar_100",
         "ar_small", "ar_medium", "ar_large"]
LABELS = {one["id"]: one["name"] for one in CATEGORIES}


def said(detections: list[dict[str, Any]], picture: int, **own: Any) -> dict[str, Any]:
    """run_model's report; own: further members, of each detection."""
    return {"results": [{"kind": "detection", "detections": [
        {"box": [0, 0, 1, 1], "class": 0, "label": LABELS[one["category_id"]],
         "score": one["score"], **{name: value(one) for name, value in own.items()}}
        for one in detections if one["image_id"] == picture]}]}


def judged(data: DataSet, detections: list[dict[str, Any]], **own: Any) -> list[Judged]:
    of_one = judge(data, CategoryMapping(data.categories, "name"), None)
    return [of_one(said(detections, int(example.path.stem), **own), example.truth)
            for example in data.examples]


def figures_of(data: DataSet, found: list[Judged]) -> dict[str, Any]:
    """Of what was kept in JSON."""
    return figures(data, [Result(example.key, json.loads(json.dumps(one.prediction)), None,
                                 one.score, one.correct, 0.0)
                          for example, one in zip(data.examples, found)])


def hold(result: dict[str, Any], golden: list[float]) -> None:
    for title, expected in zip(NAMES, golden, strict=True):
        found = -1.0 if result[title] is None else result[title]
        assert found == pytest.approx(expected, abs=1e-9), title
    assert 0.1 < result["ap"] < 0.9


def rle(detection: dict[str, Any]) -> dict[str, Any]:
    mask = Outline(HEIGHT, WIDTH, tuple(map(tuple, detection["polygons"]))).mask()
    counts = coco_counts(mask.reshape(WIDTH, HEIGHT).T)
    return {"rle": {"size": [HEIGHT, WIDTH], "counts": counts}}


@pytest.fixture(scope="module")
def masks(tmp_path_factory: pytest.TempPathFactory) -> tuple[DataSet, list[dict[str, Any]]]:
    annotations, detections = make_masks()
    path = tmp_path_factory.mktemp("masks") / "annotations.json"
    path.write_text(json.dumps(annotations))
    return coco.read(path, path.parent, INSTANCES), detections


def test_masks(masks: tuple[DataSet, list[dict[str, Any]]]) -> None:
    data, detections = masks
    digest = hashlib.sha256()
    for one in detections:
        digest.update(rle(one)["rle"]["counts"].encode() + b"\n")
    assert digest.hexdigest() == GOLDEN["masks"]["run_lengths"]
    found = judged(data, detections, mask=rle)
    hold(figures_of(data, found), GOLDEN["masks"]["figures"])
    assert max(one.score for one in found) > 0.5 > min(one.score for one in found)


def test_masks_that_do_not_fit(masks: tuple[DataSet, list[dict[str, Any]]]) -> None:
    data, detections = masks
    with pytest.raises(ToolError, match="gives no masks of things") as error:
        judged(data, detections)
    assert error.value.code == 6
    with pytest.raises(Unfit, match="2 x 3 pixels, and 160 x 120 by the data set"):
        judged(data, detections, mask=lambda _: {"rle": {"size": [3, 2], "counts": [6]}})


def write_dota(folder: Path, things: list[dict[str, Any]]) -> tuple[Path, Path]:
    pictures, labels = folder / "images", folder / "labelTxt"
    pictures.mkdir()
    labels.mkdir()
    for number in range(1, 21):
        (pictures / f"{number:02d}.png").touch()
        lines = ["imagesource:drawn", "gsd:0.1"]
        lines += [" ".join([*map(str, np.ravel(one["corners"])), LABELS[one["category_id"]],
                            str(one["difficult"])]) for one in things if one["image_id"] == number]
        (labels / f"{number:02d}.txt").write_text("\n".join(lines) + "\n")
    return pictures, labels


def test_boxes_with_an_angle(tmp_path: Path) -> None:
    things, detections = make_turned()
    data = dota.read(*write_dota(tmp_path, things))
    assert data.kind == TURNED and list(data.categories.values()) == ["ball", "robot"]
    found = judged(data, detections, corners=lambda one: one["corners"])
    hold(figures_of(data, found), GOLDEN["turned"])
    with pytest.raises(ToolError, match="have no angle"):
        judged(data, detections)


def test_a_csv_file_of_boxes_with_an_angle(tmp_path: Path) -> None:
    """A square on its corner, found exactly, and as the upright box around it: half the area."""
    path = tmp_path / "list.csv"
    names = ",".join(f"{axis}{corner}" for corner in range(4) for axis in "xy")
    path.write_text(f"picture,class,{names}\n1.png,ball,5,0,10,5,5,10,0,5\n2.png,,,,,,,,,\n")
    data = csv_list.read(path, [])
    assert data.kind == TURNED and not data.examples[1].truth.things

    def found(*corners: int) -> list[Judged]:
        one = {"image_id": 1, "category_id": 3, "score": 0.9,
               "corners": np.reshape(corners, (4, 2)).tolist()}
        return judged(data, [one], corners=lambda one: one["corners"])

    exact, around = found(5, 0, 10, 5, 5, 10, 0, 5), found(0, 0, 10, 0, 10, 10, 0, 10)
    assert figures_of(data, exact)["ap"] == pytest.approx(1)
    assert exact[0].prediction["found"][0][7] == [1.0]
    assert around[0].prediction["found"][0][6:] == [100.0, [0.5]]
    assert figures_of(data, around)["ap50"] == pytest.approx(1)


@pytest.mark.parametrize("line, part", [
    ("1 2 3 4 5 6 7 8", "is not eight numbers"), ("0 0 9 0 9 9 0 x ball", "four corners"),
    ("0 0 9 9 9 0 0 9 ball 0", "sides of .* cross"), ("0 0 9 0 9 9 0 nan ball", "four corners"),
    ("0 0 9 0 9 9 0 9 ball maybe", "is not eight numbers")])
def test_labels_that_cannot_be_used(tmp_path: Path, line: str, part: str) -> None:
    pictures, labels = write_dota(tmp_path, [])
    (labels / "07.txt").write_text(f"gsd:1\n{line}\n")
    with pytest.raises(ToolError, match=f"07.txt, line 2: .*{part}") as error:
        dota.read(pictures, labels)
    assert error.value.code == 4


@pytest.mark.parametrize("segmentation, part", [
    (None, "polygons or run lengths"), ([], "polygons or run lengths"), ([[1, 2, 3, 4]], "polygon"),
    ([[1, 2, 3, 4, 5, 1e9]], "more than"), ({"size": [1, 1], "counts": [1]}, "1 x 1"),
    ({"size": [120, 160], "counts": [5]}, "do not make")])
def test_outlines_that_cannot_be_used(tmp_path: Path, segmentation: Any, part: str) -> None:
    annotations, _ = make_masks()
    annotations["annotations"][2]["segmentation"] = segmentation
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(annotations))
    with pytest.raises(ToolError, match=f"annotation 3 .*{part}") as error:
        coco.read(path, tmp_path, INSTANCES)
    assert error.value.code == 4


@pytest.mark.parametrize("name", GOLDEN["scores"])
def test_two_classes(name: str) -> None:
    scores, positive = make_scores()[name]
    examples = [Example(f"{n:03d}", Path(f"{n}.png"), ClassTruth(int(one)))
                for n, one in enumerate(positive)]
    data = DataSet(CLASSIFICATION, "two", examples)
    results = [Result(example.key, {"top": sorted([[0, 1 - score], [1, score]],
                                                  key=lambda one: -one[1]),
                                    "truth": example.truth.index}, None, 0.0, True, 0.0)
               for example, score in zip(examples, scores)]
    result = figures(data, results)
    assert [result["auroc"], result["average_precision"]] == pytest.approx(GOLDEN["scores"][name],
                                                                           abs=1e-12)
    alone = figures(data, [r for r in results if r.prediction["truth"] == 1])
    assert alone["auroc"] is None and alone["top1"] is not None
