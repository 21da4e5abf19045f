"""How a model's pictures are prepared and what its outputs mean: as flags say, or what is published
with it, in its file or beside it."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_model_tools.errors import ToolError
from run_model_tools.files import read_json
from run_model_tools.pictures import preprocessing
from run_model_tools.pictures.preprocess import check_crop, check_levels
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.published import (
    configurations,
    image_processors,
    tflite_metadata,
    timm_models,
    ultralytics,
)
from run_model_tools.source_model import ModelInput, SourceModel
from run_model_tools.tasks import presets
from run_model_tools.tasks.description import check_tasks
from run_model_tools.tasks.fit import Output, check_fit

Shapes = dict[str, tuple[int, ...]]


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
        functools.partial(_read_preprocessing, _picture_of(model, shapes or {})))
    return found


def _read_preprocessing(picture: _Picture | None, path: Path,
                        ) -> tuple[Preprocessing | None, str | None]:
    """preprocessing.read_file(), also of Hugging Face's files; raises ToolError (3, 4)."""
    value = read_json(path)
    if image_processors.is_image_processor(value):
        return image_processors.preprocessing_of(value, str(path)), None
    if timm_models.is_timm(value):
        return timm_models.preprocessing_of(value, str(path),
                                            None if picture is None else picture.side), None
    return preprocessing.read_file(path)


@dataclass(frozen=True)
class _Picture:
    """A network's only input, which is a picture's by its shape."""

    given: ModelInput
    shape: tuple[int | None, ...]
    layout: str

    @property
    def side(self) -> int | None:
        """Of a square one."""
        sides = {extent for axis, extent in zip(self.layout, self.shape) if axis in "HW"}
        return next(iter(sides)) if len(sides) == 1 else None


def _picture_of(model: SourceModel, shapes: Shapes) -> _Picture | None:
    if len(model.inputs) != 1:
        return None
    (given,) = model.inputs
    shape = shapes.get(given.name) or given.shape or ()
    layout = next((name for name, axis in (("NCHW", 1), ("NHWC", 3))
                   if len(shape) == 4 and shape[axis] == 3), None)
    return None if layout is None else _Picture(given, shape, layout)


_Candidate = tuple[str, Callable[[], Any]]


class _Search:
    def __init__(self, model: SourceModel, shapes: Shapes, found: Description) -> None:
        self._model, self._found = model, found
        self._picture = _picture_of(model, shapes)
        self._is_tflite = model.file_format == "tflite"
        self._properties = (ultralytics.properties_behind(model.path) if self._is_tflite
                            else model.properties)
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
        candidates = self._own(self._own_preprocessing) + self._classifier(
            self._classifiers_preprocessing)
        for path, value in self._json_files(image_processors.FILE, configurations.FILE):
            if image_processors.is_image_processor(value) or timm_models.is_timm(value):
                candidates.append((str(path), functools.partial(self._preprocessing, path)))
        return candidates

    def tasks(self) -> list[_Candidate]:
        candidates = self._own(self._own_tasks) + self._classifier(self._classifiers_tasks)
        for path, value in self._json_files(configurations.FILE):
            if configurations.is_configuration(value):
                candidates.append((str(path), functools.partial(self._tasks, path, value)))
        return candidates

    def _own(self, read: Callable[[], Any]) -> list[_Candidate]:
        """What the model's file itself says."""
        own = ultralytics.is_ultralytics(self._properties)
        return [(f"{self._model.path} (by Ultralytics)", read)] if own else []

    def _classifier(self, read: Callable[[], Any]) -> list[_Candidate]:
        """What the metadata of a .tflite file says."""
        if not self._is_tflite:
            return []
        return [(f"the metadata of {self._model.path}", read)]

    def _classifiers_tasks(self) -> list[dict[str, Any]]:
        found = tflite_metadata.read(self._model.path)
        if found is None or len(self._model.outputs) != 1:
            return []
        return self._of_network(tflite_metadata.tasks_of(found, self._model.output_shapes),
                                str(self._model.path))

    def _classifiers_preprocessing(self) -> Preprocessing | None:
        found = tflite_metadata.read(self._model.path)
        if found is None or self._picture is None or not self._classifiers_tasks():
            return None
        return self._fitting(tflite_metadata.preprocessing_of(found, self._picture.given,
                                                              str(self._model.path)))

    def _by_ultralytics(self) -> tuple[list[dict[str, Any]], Preprocessing]:
        layout = self._picture.layout if self._is_tflite and self._picture else None
        return ultralytics.described(self._properties, self._model.output_shapes,
                                     str(self._model.path), layout)

    def _own_preprocessing(self) -> Preprocessing | None:
        return self._fitting(self._by_ultralytics()[1])

    def _own_tasks(self) -> list[dict[str, Any]]:
        return self._of_network(self._by_ultralytics()[0], str(self._model.path))

    def _preprocessing(self, path: Path) -> Preprocessing | None:
        spec, _ = _read_preprocessing(self._picture, path)
        return None if spec is None else self._fitting(spec)

    def _tasks(self, path: Path, value: dict[str, Any]) -> list[dict[str, Any]]:
        return self._of_network(configurations.tasks_of(value, self._model.outputs), str(path))

    def _json_files(self, *names: str) -> list[tuple[Path, Any]]:
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

    def _of_network(self, tasks: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
        if tasks:
            check_fit(check_tasks(tasks, what), self._outputs, what)
        return tasks
