"""How a model's pictures are prepared and what its outputs mean: as flags say, or what is published
with it, in its file or beside it."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.files import read_json
from run_model_tools.pictures import preprocessing
from run_model_tools.pictures.preprocess import check_crop, check_levels
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.published import (
    image_processors,
    open_clip_models,
    tflite_metadata,
    timm_models,
    transformers_tasks,
    ultralytics,
)
from run_model_tools.source_model import ModelInput, Shapes, SourceModel
from run_model_tools.tasks import presets
from run_model_tools.tasks.description import check_tasks
from run_model_tools.tasks.fit import Output, check_fit

_MASK = "pixel_mask"


@dataclass
class Description:
    """How pictures are prepared, and what the outputs mean."""

    preprocessing: Preprocessing | None = None
    tasks: list[dict[str, Any]] | None = None
    labels: str | None = None
    """The labels' file, where a file beside the model names it."""
    notes: list[str] = field(default_factory=list)
    """For people: what was found in the model or beside it, and why something was not taken."""


def describe(args: argparse.Namespace, model: SourceModel, shapes: Shapes | None = None,
             ) -> Description:
    """As the flags say (--task, --preprocessing and its pieces), or MODEL.model.json beside the
    model; or else as the file's own properties do, or Hugging Face's files in its folder, or in the
    one above where that is called `onnx`.  Of these, what does not fit the network is not taken.

    shapes: of inputs, where other ones are asked for than the model's.
    Raises ToolError (2, 3, 4) for what the flags say.
    """
    found = Description()
    tasks, default = presets.from_flags(args, model.path)
    # That file says all, also by saying nothing.
    if not model.path.with_suffix(".model.json").exists():
        search = _Search(model, shapes or {}, found)
        if args.preprocessing is None and default is None:
            search.take("preprocessing", search.preprocessings())
        if not args.task:
            search.take("tasks", search.tasks())
    found.tasks = tasks or found.tasks
    found.preprocessing, found.labels = preprocessing.from_flags(
        args, model.path, default or found.preprocessing,
        functools.partial(_read_preprocessing, _picture_of(model, shapes or {}), found.notes))
    return found


def full_masks(args: argparse.Namespace, model: SourceModel, shapes: Shapes,
               ) -> dict[str, np.ndarray]:
    """The mask of a picture's pixels that transformers' detectors take beside it, where their
    processor lies beside the model and no flag says anything of either: all of them, since what
    prepares pictures here fills the input with one (transformers.js does the same)."""
    picture = _picture_of(model, shapes)
    mask = next((one for one in model.inputs if one.name == _MASK and one.dtype.kind in "biu"
                 and len(one.shape or ()) == 3), None)
    if (mask is None or mask.shape is None or picture is None or mask.name in shapes
            or args.preprocessing is not None or model.file_format != "onnx"
            or model.path.with_suffix(".model.json").exists()
            or not any(image_processors.is_image_processor(image_processors.inside(value))
                       for _, value in _Search(model, shapes, Description()).json_files(
                           image_processors.FILE, image_processors.PROCESSOR_FILE))):
        return {}
    sides = [1, *(picture.size or (1, 1))]
    return {mask.name: np.ones([extent or side for extent, side in zip(mask.shape, sides)],
                               mask.dtype)}


def _read_preprocessing(picture: _Picture | None, notes: list[str], path: Path,
                        ) -> tuple[Preprocessing | None, str | None]:
    """preprocessing.read_file(), also of Hugging Face's files; raises ToolError (3, 4)."""
    spec = _hugging_faces(read_json(path), picture, str(path), notes)
    return (spec, None) if spec is not None else preprocessing.read_file(path)


def _hugging_faces(value: Any, picture: _Picture | None, what: str, notes: list[str],
                   ) -> Preprocessing | None:
    """None of what is no file of its."""
    value = image_processors.inside(value)
    side = None if picture is None else picture.side
    if image_processors.is_image_processor(value):
        return image_processors.preprocessing_of(value, what,
                                                 None if picture is None else picture.size, notes)
    if timm_models.is_timm(value):
        return timm_models.preprocessing_of(value, what, side)
    if open_clip_models.is_open_clip(value):
        return open_clip_models.preprocessing_of(value, what, side)
    return None


@dataclass(frozen=True)
class _Picture:
    """A network's only input that is a picture's by its shape."""

    given: ModelInput
    shape: tuple[int | None, ...]
    layout: str

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width, where both are known."""
        height, width = (self.shape[self.layout.index(axis)] for axis in "HW")
        return None if height is None or width is None else (height, width)

    @property
    def side(self) -> int | None:
        """Of a square one."""
        return self.size[0] if self.size is not None and len(set(self.size)) == 1 else None


def _picture_of(model: SourceModel, shapes: Shapes) -> _Picture | None:
    """The only input of four axes, if it is a picture's; others are texts, masks, numbers."""
    found = [(given, shape) for given in model.inputs
             if len(shape := shapes.get(given.name) or given.shape or ()) == 4]
    if len(found) != 1:
        return None
    given, shape = found[0]
    layout = next((name for name, axis in (("NCHW", 1), ("NHWC", 3)) if shape[axis] == 3), None)
    return None if layout is None else _Picture(given, shape, layout)


_Candidate = tuple[str, Callable[[], Any]]


class _Search:
    def __init__(self, model: SourceModel, shapes: Shapes, found: Description) -> None:
        self._model, self._found = model, found
        self._picture = _picture_of(model, shapes)
        self._is_tflite = model.file_format == "tflite"
        self._outputs = [Output(*one) for one in zip(
            model.outputs, model.output_shapes, model.output_dtypes)]
        folder = model.path.resolve().parent
        self._folders = [folder, *([folder.parent] if folder.name == "onnx" else [])]

    def take(self, what: str, candidates: list[_Candidate]) -> None:
        """The first of the candidates that there is."""
        for source, read in candidates:
            try:
                value = read()
            except ToolError as error:
                self._found.notes.append(f"no {what} taken from {source}: {error}")
                return
            if value:
                setattr(self._found, what, value)
                self._found.notes.append(f"{what} from {source}")
                return

    def preprocessings(self) -> list[_Candidate]:
        return [*self._in_the_file(lambda: self._fitting(self._by_ultralytics[1]),
                                   self._classifiers_preprocessing),
                *((str(path), functools.partial(self._preprocessing, path, value))
                  for path, value in self.json_files(image_processors.FILE,
                                                      image_processors.PROCESSOR_FILE,
                                                  *open_clip_models.FILES,
                                                  transformers_tasks.FILE))]

    def tasks(self) -> list[_Candidate]:
        return [*self._in_the_file(lambda: self._of_network(self._by_ultralytics[0]),
                                   self._classifiers_tasks),
                *((str(path), functools.partial(self._tasks, path, value))
                  for path, value in self.json_files(transformers_tasks.FILE))]

    def _in_the_file(self, by_ultralytics: Callable[[], Any], by_metadata: Callable[[], Any],
                     ) -> list[_Candidate]:
        """What the model's file itself says."""
        path, found = self._model.path, list[_Candidate]()
        if ultralytics.is_ultralytics(self._model.properties):
            found.append((f"{path} (by Ultralytics)", by_ultralytics))
        if self._is_tflite:
            found.append((f"the metadata of {path}", by_metadata))
        return found

    @functools.cached_property
    def _by_ultralytics(self) -> tuple[list[dict[str, Any]], Preprocessing]:
        layout = self._picture.layout if self._is_tflite and self._picture else None
        return ultralytics.described(self._model.properties, self._model.output_shapes,
                                     str(self._model.path), layout)

    @functools.cached_property
    def _metadata(self) -> tflite_metadata.Metadata | None:
        return tflite_metadata.read(self._model.path)

    def _classifiers_tasks(self) -> list[dict[str, Any]]:
        if self._metadata is None or len(self._model.outputs) != 1:
            return []
        return self._of_network(tflite_metadata.tasks_of(self._metadata,
                                                         self._model.output_shapes))

    def _classifiers_preprocessing(self) -> Preprocessing | None:
        if self._metadata is None or self._picture is None or not self._classifiers_tasks():
            return None
        return self._fitting(tflite_metadata.preprocessing_of(
            self._metadata, self._picture.given, str(self._model.path)))

    def _preprocessing(self, path: Path, value: Any) -> Preprocessing | None:
        if self._picture is None:
            return None
        spec = _hugging_faces(value, self._picture, str(path), self._found.notes)
        if spec is not None and self._picture.layout == "NHWC":
            raise ToolError(MISMATCH, "it is about a network of PyTorch, whose pictures are NCHW; "
                                      "this one's are NHWC, and somebody may have made it for "
                                      f"other numbers: if not, add --preprocessing {path}")
        return None if spec is None else self._fitting(spec)

    def _tasks(self, path: Path, value: Any) -> list[dict[str, Any]]:
        return self._of_network(transformers_tasks.tasks_of(value, self._model.outputs)
                                if transformers_tasks.is_configuration(value) else [], path)

    def json_files(self, *names: str) -> list[tuple[Path, Any]]:
        """What cannot be read, or is no JSON, is somebody else's."""
        found = []
        for path in (folder / name for folder in self._folders for name in names):
            try:
                found.append((path, read_json(path)))
            except ToolError:
                continue
        return found

    def _fitting(self, spec: Preprocessing) -> Preprocessing | None:
        """Nothing for networks that take no picture."""
        picture = self._picture
        if picture is None:
            return None
        check_crop(spec, tuple(extent or -1 for extent in picture.shape), picture.layout)
        check_levels(spec, picture.given.dtype, picture.given.scale)
        return spec

    def _of_network(self, tasks: list[dict[str, Any]], said_in: Path | None = None,
                    ) -> list[dict[str, Any]]:
        if tasks:
            what = str(said_in or self._model.path)
            check_fit(check_tasks(tasks, what), self._outputs, what)
        return tasks
