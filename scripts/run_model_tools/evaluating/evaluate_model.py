"""Judges a compiled network on a whole data set.

  evaluate_model NAME ARTIFACTS --dataset imagenet:FOLDER
  evaluate_model NAME ARTIFACTS --dataset coco:annotations.json:FOLDER --jobs 4
  evaluate_model NAME ARTIFACTS --dataset coco-keypoints:annotations.json:FOLDER
  evaluate_model NAME ARTIFACTS --dataset coco-masks:annotations.json:FOLDER
  evaluate_model NAME ARTIFACTS --dataset dota:FOLDER:LABELS
  evaluate_model NAME ARTIFACTS --dataset voc-masks:FOLDER[:LIST]
  evaluate_model NAME ARTIFACTS --dataset maps:FOLDER:TRUTHS
  evaluate_model NAME ARTIFACTS --dataset images:FOLDER:TRUTHS
  evaluate_model NAME ARTIFACTS --dataset csv:FILE
  evaluate_model NAME ARTIFACTS --dataset ... --resume run.sqlite
  evaluate_model NAME ARTIFACTS --dataset ... --rpc HOST:PORT
  evaluate_model --compare before.sqlite after.sqlite

gives top-1 and top-5 of classes (of two classes also the area under the ROC curve), mean average
precision of boxes, boxes with an angle, masks of things or keypoints by COCO's rules, the mean
intersection over union of areas, errors of depth and other maps, or PSNR and SSIM of images, of
what run_model says of each picture.

Every result is kept in a SQLite file as soon as it is there (--resume, else one in
build/evaluations): after an interruption of any kind the same command with --resume FILE goes on.
--compare says which pictures changed between two runs, and whether that is more than chance.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from run_model_tools.environment import BUILD_DIR, IS_INSTALLED, VENV_PYTHON
from run_model_tools.errors import (
    BAD_PICTURE,
    MISMATCH,
    MISSING_FILE,
    USAGE,
    ToolError,
    command,
)
from run_model_tools.evaluating import comparison, report
from run_model_tools.evaluating.artifact import Artifact, find_artifact
from run_model_tools.evaluating.datasets.reading import FORMS, read_dataset, with_files
from run_model_tools.evaluating.example import (
    CLASSIFICATION,
    DETECTION,
    IMAGE,
    MAP,
    OF_THINGS,
    DataSet,
)
from run_model_tools.evaluating.figures import figures
from run_model_tools.evaluating.local_runner import LocalRunner
from run_model_tools.evaluating.metrics.depth import ALIGNMENTS, DepthRules
from run_model_tools.evaluating.pixel_predictions import MILLIMETRE, ImageRules, MapRules
from run_model_tools.evaluating.predictions import CategoryMapping, judge
from run_model_tools.evaluating.remote_runner import Board, RemoteRunner, tasks_of
from run_model_tools.evaluating.running import Runner, run_all
from run_model_tools.evaluating.store import open_store
from run_model_tools.files import read_json, read_lines
from run_model_tools.tasks.description import check_tasks

#: mAP needs the unsure detections too; COCO's rules look at 100 of a picture.
SCORE_THRESHOLD = 0.001
COCO_LIMIT = 100


def _address(text: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT")
    return host.strip("[]"), int(port)


def _range(text: str) -> tuple[float, float]:
    least, _, most = text.partition(":")
    try:
        found = float(least), float(most)
    except ValueError:
        found = math.nan, math.nan
    if not 0 <= found[0] < found[1]:
        raise argparse.ArgumentTypeError(f"'{text}' is not LEAST:MOST, as 0.001:80")
    return found


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", metavar="NAME", help="as run_model takes it")
    parser.add_argument("artifacts", nargs="?", metavar="ARTIFACTS", type=Path,
                        help="as run_model takes it")
    parser.add_argument("--dataset", metavar="FORM", help=FORMS)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"),
                        help="two files of results of the same data set")
    parser.add_argument("--resume", type=Path, metavar="FILE.sqlite",
                        help="where results are kept; what is there is not done again (default: a "
                             "new file in build/evaluations)")
    parser.add_argument("--jobs", type=int, metavar="N",
                        help="processes at the same time (default: one for each two CPUs)")
    parser.add_argument("--threads", type=int, metavar="N",
                        help="of each process (default: what the CPUs allow)")
    parser.add_argument("--target", metavar="NAME", help="as run_model takes it")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N pictures")
    parser.add_argument("--labels", type=Path, metavar="FILE",
                        help="names of a classifier's classes, for a CSV file that has names")
    parser.add_argument("--classes", choices=("name", "order", "id"), default="name",
                        help="how the network's classes are found among a data set's categories: "
                             "by name (default), class i as the i-th category, or as category i")
    parser.add_argument("--score-threshold", type=float, default=SCORE_THRESHOLD, metavar="X",
                        help="detections less sure than that are left out (default: "
                             f"{SCORE_THRESHOLD})")
    parser.add_argument("--task", type=Path, metavar="FILE.json",
                        help="what the outputs mean, where metadata.json does not say it")
    parser.add_argument("--allow-missing", action="store_true",
                        help="leave out pictures whose files are not there")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="S",
                        help="seconds that a picture may take (default: 600)")
    parser.add_argument("--program", type=Path, metavar="FILE",
                        help="run_model (default: build/host/bin/run_model)")
    parser.add_argument("--json", action="store_true", help="report as one JSON object")
    pixels = parser.add_argument_group("maps and images")
    pixels.add_argument("--truth-step", type=float, metavar="X",
                        help="what a 1 of a PNG file with true depths stands for, where 0 is "
                             f"unknown (default: {MILLIMETRE}; KITTI's is 0.00390625)")
    pixels.add_argument("--align", choices=ALIGNMENTS,
                        help="what each picture's depths are put right by first: the factor of the "
                             "medians or of least squares, or a factor and an addend (default: "
                             "none, and scale-shift of an inverse depth)")
    pixels.add_argument("--depth-range", type=_range, metavar="LEAST:MOST",
                        help="true depths beyond these do not count, and predictions are brought "
                             "between them")
    pixels.add_argument("--luma", action="store_true",
                        help="compare images by their luma (Y of BT.601) only")
    pixels.add_argument("--border", type=int, metavar="N",
                        help="leave N pixels of each side of images out")
    board = parser.add_argument_group(
        "on a board", "The network runs in rpc_server there, driven by TVM's own client; pictures "
        "are prepared, and outputs read, here.")
    board.add_argument("--rpc", type=_address, metavar="HOST:PORT", help="of rpc_server")
    board.add_argument("--tracker", type=_address, metavar="HOST:PORT", help="needs --key")
    board.add_argument("--key", default="", help="which the board's server was started with")
    args = parser.parse_args()
    check_arguments(parser, args)
    return args


def check_arguments(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Ends the program where flags exclude each other, or numbers make no sense."""
    if args.compare is None and not (args.name and args.artifacts and args.dataset):
        parser.error("NAME, ARTIFACTS and --dataset are needed, or --compare BEFORE AFTER")
    if args.compare is not None and (args.name or args.dataset):
        parser.error("--compare takes two files of results and nothing else")
    for flag, least in (("jobs", 1), ("threads", 1), ("first", 1), ("border", 0)):
        if getattr(args, flag) is not None and getattr(args, flag) < least:
            parser.error(f"--{flag} must be at least {least}")
    if not 0 <= args.score_threshold <= 1 or not args.timeout > 0:
        parser.error("--score-threshold is from 0 to 1, and --timeout above 0")
    if args.truth_step is not None and not 0 < args.truth_step < math.inf:
        parser.error("--truth-step is above 0")
    if args.rpc and args.tracker:
        parser.error("--rpc and --tracker exclude each other")
    if args.tracker and not args.key:
        parser.error("--tracker needs --key")
    if (args.rpc or args.tracker) and (args.jobs or 1) > 1:
        parser.error("a board is one machine: leave --jobs out with --rpc and --tracker")


def program_of(args: argparse.Namespace) -> Path:
    """Raises ToolError (3)."""
    path = args.program or BUILD_DIR / "host" / "bin" / "run_model"
    if not path.is_file() and args.program is None and IS_INSTALLED:
        path = Path(shutil.which("run_model") or path)
    if not path.is_file():
        raise ToolError(MISSING_FILE, f"{path} is not there: build it with cmake --preset host && "
                                      "cmake --build --preset host --target run_model, or name one "
                                      "with --program.")
    return path


def data_of(args: argparse.Namespace) -> tuple[DataSet, int]:
    """(the data set, how many pictures were left out). Raises ToolError (2, 3, 4)."""
    labels = [] if args.labels is None else read_lines(args.labels)
    data = read_dataset(args.dataset, labels)
    if args.first is not None:
        data = DataSet(data.kind, data.title, data.examples[:args.first], data.categories)
    return with_files(data, args.allow_missing)


def tasks_for(args: argparse.Namespace, data: DataSet, artifact: Artifact,
              ) -> list[dict[str, Any]]:
    """The network's tasks that the data set judges, with unsure detections too; none for classes.

    Raises ToolError (3, 4, 6).
    """
    known = tasks_of(artifact.metadata)
    if args.task is not None:
        known = check_tasks(read_json(args.task), str(args.task))
    kind = DETECTION if data.kind in OF_THINGS else data.kind
    wanted = [task for task in known if task.get("kind") == kind]
    title, member = OF_THINGS.get(data.kind, ("", None))
    if wanted and member is not None:
        wanted = [task for task in wanted if task.get(member) is not None]
        if not wanted:
            raise ToolError(MISMATCH, (
                f"the data set is for {title}, and {args.name} gives none: its detection has no "
                f"member '{member}' (postprocess/README.md); name a --task that has it."))
    if not wanted and kind != CLASSIFICATION:
        has = ", ".join(sorted({str(task.get("kind")) for task in known})) or "none"
        raise ToolError(MISMATCH, (
            f"the data set is for a network with a task of the kind {kind}, and {args.name} has "
            f"{has}: compile it with --task, or name a file here."))
    if kind == DETECTION:
        wanted = [{**task, "score_threshold": args.score_threshold, "limit": COCO_LIMIT}
                  for task in wanted]
    return wanted[:1] if kind in (MAP, IMAGE) else wanted


def rules_for(args: argparse.Namespace, data: DataSet,
              tasks: list[dict[str, Any]]) -> MapRules | ImageRules | None:
    """How maps and images are judged; None for other kinds. Raises ToolError (2) for flags that
    have no meaning for the kind."""
    quantity = tasks[0]["quantity"] if data.kind == MAP else None
    of_depth = quantity not in (None, "other")
    for flag, given, meant in (
            ("--truth-step", args.truth_step is not None, data.kind == MAP),
            ("--align", args.align is not None, of_depth),
            ("--depth-range", args.depth_range is not None, of_depth),
            ("--luma", args.luma, data.kind == IMAGE),
            ("--border", args.border is not None, data.kind == IMAGE)):
        if given and not meant:
            what = (f"the task's quantity {quantity}" if quantity else f"the kind {data.kind}")
            raise ToolError(USAGE, f"{flag} has no meaning for {what}.")
    if data.kind == IMAGE:
        return ImageRules(args.luma, args.border or 0)
    if quantity is None:
        return None
    align = args.align or ("scale-shift" if quantity == "inverse-depth" else "none")
    return MapRules(quantity, args.truth_step, DepthRules(align, *(args.depth_range or ())))


def runner_of(args: argparse.Namespace, artifact: Artifact, program: Path,
              tasks: list[dict[str, Any]], folder: Path, jobs: int) -> Callable[[], Runner]:
    """folder: for the file that tells run_model of the tasks."""
    if args.rpc or args.tracker:
        board = Board(args.rpc or args.tracker, args.key, args.tracker is not None)
        return lambda: RemoteRunner(board, artifact, tasks, VENV_PYTHON)
    labels = [] if args.labels is None else [str(args.labels.absolute())]
    cpus = len(os.sched_getaffinity(0))
    threads = args.threads or max(1, cpus // jobs)
    command_line = [args.name, str(args.artifacts.absolute()), "-", *labels, "--json", "--threads",
                    str(threads)]
    if args.target is not None:
        command_line += ["--target", args.target]
    if tasks:
        path = folder / "tasks.json"
        path.write_text(json.dumps(tasks), encoding="utf-8")
        command_line += ["--task", str(path)]
    files = tasks[0]["kind"] if tasks and tasks[0]["kind"] in (MAP, IMAGE) else None
    return lambda: LocalRunner(program, command_line, args.timeout, files)


def store_path(args: argparse.Namespace) -> Path:
    """--resume, or a file that is not there yet."""
    if args.resume is not None:
        return args.resume
    folder = BUILD_DIR / "evaluations"
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9._+-]", "_", f"{args.name}-{args.dataset.partition(':')[0]}")
    date = time.strftime("%Y%m%d-%H%M%S")
    return next(path for n in range(1000)
                if not (path := folder / f"{stem}-{date}{f'-{n}' if n else ''}.sqlite").exists())


def evaluate(args: argparse.Namespace) -> int:
    program = program_of(args)
    data, left_out = data_of(args)
    artifact = find_artifact(program, args.name, args.artifacts, args.target)
    tasks = tasks_for(args, data, artifact)
    jobs = 1 if args.rpc or args.tracker else args.jobs or max(
        1, len(os.sched_getaffinity(0)) // 2)
    path = store_path(args)
    facts = {"kind": data.kind, "dataset": args.dataset,
             "dataset_fingerprint": data.fingerprint(), "pictures": len(data.examples),
             "model": args.name, "target": artifact.target, "artifact": artifact.fingerprint,
             "classes": args.classes, "tasks": tasks}
    rules = rules_for(args, data, tasks)
    if rules is not None:
        facts["rules"] = rules.facts()
    mapping = CategoryMapping(data.categories, args.classes)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder, open_store(
            path, facts) as store:
        known = store.keys()
        waiting = [example for example in data.examples if example.key not in known]
        if sys.stderr.isatty() and known:
            sys.stderr.write(f"{path} has {len(data.examples) - len(waiting)} of "
                             f"{len(data.examples)} pictures\n")
        try:
            run_all(waiting, runner_of(args, artifact, program, tasks, Path(folder), jobs), jobs,
                    judge(data, mapping, rules), store)
        except KeyboardInterrupt:
            sys.stderr.write(f"\nevaluate_model: what is done is in {path}: go on with --resume "
                             f"{path}\n")
            raise
        results = list(store.results())
    described = report.describe(facts, artifact, path, results, left_out,
                                time.monotonic() - start, len(waiting))
    described["figures"] = figures(data, results)
    if args.json:
        print(json.dumps(described, indent=2, allow_nan=False))
    else:
        print("\n".join(report.text(described)))
    failed = described["failed"]
    if failed:
        raise ToolError(BAD_PICTURE, (
            f"{len(failed)} of {len(data.examples)} pictures gave no result and are not in the "
            f"figures; the first is {failed[0]['picture']}: {failed[0]['error']}"))
    return 0


@command
def main() -> int:
    args = parse_arguments()
    if args.compare is None:
        return evaluate(args)
    compared: dict[str, Any] = comparison.compare(*args.compare)
    if args.json:
        print(json.dumps({"schema_version": report.SCHEMA_VERSION, **compared}, indent=2))
    else:
        print("\n".join(comparison.text(compared)))
    return 0
