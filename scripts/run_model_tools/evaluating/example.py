"""What a data set says: pictures, and what is true of each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

from run_model_tools.evaluating.outline import Outline

CLASSIFICATION, DETECTION, KEYPOINTS, SEGMENTATION, MAP, IMAGE = (
    "classification", "detection", "keypoints", "segmentation", "map", "image")
#: Of things, by their masks, and by boxes with an angle.
INSTANCES, TURNED = "instances", "turned"
#: Kinds that a network's detections are judged by: title, and the member that its task needs.
OF_THINGS = {DETECTION: ("boxes", None), KEYPOINTS: ("keypoints", "keypoints"),
             INSTANCES: ("masks", "masks"), TURNED: ("turned boxes", "angle")}


@dataclass(frozen=True)
class Thing:
    """Something in a picture.

    box: x0, y0, x1, y1 in pixels.  area: what decides whether it is small or large, by COCO's rules
    that of its outline and not of its box.  crowd: a region with many of them, which no detection
    has to find and none is wrong in.  keypoints: (x, y, visibility) of each, where they are wanted.
    optional: need not be found, and may be.  outline: of its mask.  corners: of a box with an
    angle, four (x, y) in their order around it.
    """

    category: int
    box: tuple[float, float, float, float]
    area: float
    crowd: bool = False
    keypoints: tuple[tuple[float, float, int], ...] = ()
    optional: bool = False
    outline: Outline | None = None
    corners: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class ClassTruth:
    """index: of the network's class."""

    index: int


@dataclass(frozen=True)
class ThingsTruth:
    """size: width and height of the picture that the things were marked in, where that is known."""

    things: tuple[Thing, ...]
    size: tuple[int, int] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class FileTruth:
    """What is true of a picture, in a file of its own."""

    path: Path


class MaskTruth(FileTruth):
    """A picture whose pixels are the numbers of areas; 255 is for those that do not count."""


class MapTruth(FileTruth):
    """A .npy or .png file with a number for each pixel."""


class ImageTruth(FileTruth):
    """The picture that the network should make."""


Truth = Union[ClassTruth, ThingsTruth, FileTruth]


@dataclass(frozen=True)
class Example:
    """key: names the picture within its data set, on every machine."""

    key: str
    path: Path
    truth: Truth


@dataclass(frozen=True)
class DataSet:
    """categories: numbers and names of the things that detections are looked up in; empty for other
    kinds."""

    kind: str
    title: str
    examples: Sequence[Example]
    categories: dict[int, str] = field(default_factory=dict)

    def fingerprint(self) -> str:
        """Of the examples' names and truths: another data set has another one."""
        digest = hashlib.sha256(self.kind.encode())
        for example in self.examples:
            truth = (example.truth.path.name if isinstance(example.truth, FileTruth)
                     else repr(example.truth))
            digest.update(f"\0{example.key}\0{truth}".encode())
        return digest.hexdigest()[:16]
