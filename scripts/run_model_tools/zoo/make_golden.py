"""Makes reference results with ONNX Runtime or LiteRT, for run_model to be compared with.

  make_golden                            the models of build/zoo whose results are committed
  make_golden --zoo                      every model of the zoo that is in build/zoo
  make_golden --zoo resnet18 ...         these models
  make_golden --zoo --check              compares with the results that are there instead
  make_golden --model M.onnx --pictures a.png b.jpg
  make_golden --zoo resnet18 --intermediates --pictures images/dam.png

For each picture FOLDER/MODEL/PICTURE.json (without PICTURE's suffix) and .npy are written: the
input's SHA-256, the top five, and the whole output.  Of a network with tasks (--task, or as
artifacts/zoo.json says) the .json alone: boxes, masks, landmarks, by post-processing in NumPy.  The
zoo's results go where artifacts/zoo.json says: into artifacts/golden/, which is committed, or into
build/zoo/golden/.

--intermediates writes build/zoo/intermediates/MODEL/PICTURE.npz instead: every value between the
network's operators, float32, as ONNX Runtime computes it without optimisation.  Its members are
called INDEX:VALUE in the order of the graph.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools import environment
from run_model_tools.errors import MISMATCH, MISSING_FILE, USAGE, ToolError, command
from run_model_tools.files import json_text, read_lines, write_atomically
from run_model_tools.onnx_model import OnnxModel, read_model
from run_model_tools.pictures import preprocessing
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.progress import stage
from run_model_tools.published.describing import describe
from run_model_tools.source_model import SourceModel
from run_model_tools.tasks import presets
from run_model_tools.tflite.model import is_tflite, read_tflite
from run_model_tools.zoo import golden, intermediates
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.manifest import choose, read_manifest

PICTURE_SUFFIXES = (".png", ".bmp", ".ppm", ".jpg", ".jpeg")


@dataclass(frozen=True)
class Job:
    """A model and where its results go."""

    name: str
    model: SourceModel
    spec: Preprocessing
    folder: Path
    tasks: list[dict[str, Any]] | None
    pictures: list[Path]


def parse_arguments() -> argparse.Namespace:
    root = environment.REPO_ROOT
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--zoo", nargs="*", metavar="MODEL", help="models of artifacts/zoo.json")
    what.add_argument("--model", type=Path, metavar="MODEL",
                      help="any other model (.onnx, .tflite)")
    parser.add_argument("--name", help="for --model: its name (default: the file's)")
    parser.add_argument("--pictures", type=Path, nargs="+", metavar="PICTURE",
                        help="default: those in images/, or those that artifacts/zoo.json names")
    parser.add_argument("--labels", type=Path, default=root / "labels" / "imagenet.txt")
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        help="results go into FOLDER/MODEL (default: as said above, and "
                             "artifacts/golden for --model)")
    parser.add_argument("--missing", action="store_true",
                        help="only make results that are not there for this very ONNX file")
    parser.add_argument("--intermediates", action="store_true",
                        help="write the values between the operators instead")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; fail where a result is not reproduced")
    parser.add_argument("--tolerance", type=float, default=1e-5, metavar="X",
                        help="for --check: allowed difference, relative to the output's largest "
                             "value (default: 1e-5)")
    parser.add_argument("--outputs", action="append", default=[], metavar="NAME,...",
                        help="for --model: end the network at these tensors, as compile_model does")
    presets.add_flags(parser)
    preprocessing.add_flags(parser)
    return parser.parse_args()


def jobs_of(args: argparse.Namespace) -> list[Job]:
    root = environment.REPO_ROOT
    if args.model:
        network = read_network(args.model, args.outputs)
        said = describe(args, network)
        if said.preprocessing is None:
            raise ToolError(USAGE, f"nothing says how {args.model} wants its pictures: add "
                                   "--preprocessing imagenet, caffe or FILE.")
        name = args.name or args.model.stem
        folder = (args.out or root / "artifacts" / "golden") / name
        return [Job(name, network, said.preprocessing, folder, said.tasks,
                    pictures_of(args.pictures))]
    known = read_manifest()
    models = choose(known, args.zoo) if args.zoo else [
        m for m in known if (m.is_committed or args.zoo is not None) and zoo.is_up_to_date(m)]
    if not models:
        raise ToolError(MISSING_FILE, f"{zoo.ZOO_DIR} holds no model: run scripts/fetch_zoo.")
    jobs = []
    for model in models:
        path = zoo.paths(model)[0]
        if not path.is_file():
            raise ToolError(MISSING_FILE, f"{path} is not there: make it with scripts/fetch_zoo "
                                          f"{model.name}.")
        folder = args.out / model.name if args.out else root / model.golden
        if model.preprocessing is None:
            raise ToolError(USAGE, f"nothing says how {model.name} wants its pictures.")
        named = [root / "images" / name for name in model.facts.get("pictures", ())]
        jobs.append(Job(model.name, read_network(path), model.preprocessing, folder, model.tasks,
                        pictures_of(args.pictures or named)))
    return jobs


def read_network(path: Path, outputs: list[str] | None = None) -> SourceModel:
    """A model of either format; outputs: as --outputs names them."""
    return read_tflite(path) if is_tflite(path) else read_model(path, outputs=outputs or ())


def check_one(job: Job, stem: str, described: dict, arrays: list[np.ndarray],
              tolerance: float) -> str | None:
    try:
        old = json.loads((job.folder / f"{stem}.json").read_text())
        old_arrays = [np.load(job.folder / name, allow_pickle=False)
                      for name in golden.array_names(stem, job.tasks)]
    except (OSError, ValueError) as error:
        return f"it cannot be read: {error}"
    if job.tasks is None:
        return golden.compare(described, arrays[0], old, old_arrays[0], tolerance)
    return golden.compare_tasks(described, old) or next(
        filter(None, map(golden.compare_pixels, arrays, old_arrays)), None)


def write_intermediates(job: Job, picture: Path) -> None:
    path = zoo.ZOO_DIR / "intermediates" / job.name / f"{picture.stem}.npz"
    with stage(f"intermediates of {job.name} on {picture.name}"):
        inputs = golden.prepare(job.model, job.spec, picture).inputs
        values = intermediates.compute(job.model.path, inputs)
        write_atomically(path, intermediates.npz_bytes(values))
    print(f"{path}: {len(values)} values")


def pictures_of(named: list[Path] | None) -> list[Path]:
    """The named pictures, or those in images/."""
    return named or sorted(p for p in (environment.REPO_ROOT / "images").iterdir()
                           if p.suffix in PICTURE_SUFFIXES)


def run_job(job: Job, labels: list[str], args: argparse.Namespace) -> list[str]:
    """Makes or checks one model's results; gives what was not reproduced."""
    wrong = []
    for picture in job.pictures:
        if args.intermediates:
            write_intermediates(job, picture)
            continue
        if args.missing and golden.is_there(job.folder, picture, job.model, job.spec, job.tasks):
            continue
        with stage(f"{job.name} on {picture.name}"):
            described, arrays = make_one(job, picture, labels)
        if args.check:
            difference = check_one(job, picture.stem, described, arrays, args.tolerance)
            if difference:
                wrong.append(f"{job.folder / picture.stem}: {difference}")
            continue
        for name, array in zip(golden.array_names(picture.stem, job.tasks), arrays):
            write_atomically(job.folder / name, golden.npy_bytes(array))
        write_atomically(job.folder / f"{picture.stem}.json", json_text(described).encode())
        print(f"{job.name}, {picture.name}: {summary_of(described)}")
    return wrong


def make_one(job: Job, picture: Path, labels: list[str]) -> tuple[dict[str, Any],
                                                                  list[np.ndarray]]:
    """(what goes into PICTURE.json, what goes into the arrays beside it)."""
    if job.tasks is not None:
        return golden.make_task_golden(job.model, job.name, job.spec, job.tasks, picture)
    if not isinstance(job.model, OnnxModel):
        raise ToolError(USAGE, f"nothing says what the outputs of {job.model.path} mean: add "
                               "--task.")
    described, output = golden.make_golden(job.model, job.name, job.spec, picture, labels)
    return described, [output]


def summary_of(described: dict[str, Any]) -> str:
    """The results in a line."""
    if "top" in described:
        first = described["top"][0]
        return f"{first['index']} {first['label']} {first['probability']:.4f}"
    parts = []
    for result in described["results"]:
        if result["kind"] == "detection":
            scores = ", ".join(f"{one['score']:.3f}" for one in result["detections"][:3])
            parts.append(f"{len(result['detections'])} found" + (f" ({scores})" if scores else ""))
        elif result["kind"] == "segmentation":
            whole = result["width"] * result["height"]
            parts.append(" and ".join(f"{one.get('label', one['class'])} on "
                                      f"{one['pixels'] / whole:.1%}" for one in result["classes"]))
        elif result["kind"] == "landmarks":
            parts.append(f"{len(result['points'])} points, {result['score']:.3f}")
        elif result["kind"] in ("map", "image"):
            parts.append(f"{result['kind']} of {result['width']} x {result['height']}")
        elif result["kind"] == "embedding":
            parts.append(f"{len(result['values'])} numbers")
        else:
            parts.append(f"{result['top'][0].get('label', result['top'][0]['index'])}")
    return "; ".join(parts)


@command
def main() -> None:
    args = parse_arguments()
    stems = [picture.stem for picture in args.pictures or []]
    if len(set(stems)) != len(stems):
        raise ToolError(USAGE, "two pictures differ in their suffix only, and would share a file.")
    labels = read_lines(args.labels)
    jobs = jobs_of(args)
    wrong = [line for job in jobs for line in run_job(job, labels, args)]
    if wrong:
        raise ToolError(MISMATCH, "not reproduced: " + "; ".join(wrong) + ".")
    if args.check:
        for job in jobs:
            print(f"{len(job.pictures)} results in {job.folder} reproduced.")
