"""Makes the zoo: fetches its models, compiles each for each target, and makes reference results.

  make_zoo                                       every model that can be had, for every target
  make_zoo --models squeezenet1_1 --targets native,raspi4_aarch64
  make_zoo --seeded --targets riscv64            the models whose weights a seed decides

writes artifacts/MODEL/TARGET/ (compile_model's files) and, for models whose reference results are
not committed, build/zoo/golden/MODEL/.  What is up to date is left alone, so that it costs little
to ask again; several at once do not get into each other's way.

Exit status: 0 when everything that was asked for is there; models that were not named may be left
out because their source is out of reach, and with --allow-missing named ones too.  Otherwise that
of the first failure.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from run_model_tools import environment
from run_model_tools.errors import MISSING_FILE, USAGE, ToolError, command
from run_model_tools.targets import named_devices, named_targets
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.build import Builder, Cell
from run_model_tools.zoo.manifest import Model, choose, read_manifest
from run_model_tools.zoo.sources import Cache, Fetcher

REPORT_SCHEMA_VERSION = 1


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=names, default=[], metavar="A,B",
                        help="default: all but the seeded ones")
    parser.add_argument("--seeded", action="store_true", help="the seeded models")
    parser.add_argument("--targets", type=names, default=[], metavar="T,U",
                        help="names of artifacts/targets.json (default: all of its CPUs)")
    parser.add_argument("--forms", metavar="F,G",
                        help="also make these forms of each artifact; as compile_model says")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="how many are compiled at the same time (default: the CPUs)")
    parser.add_argument("--out", type=Path, default=environment.REPO_ROOT / "artifacts",
                        metavar="FOLDER", help="default: artifacts")
    parser.add_argument("--cache", type=Path, metavar="FOLDER",
                        help="where to look for models first (default: RUN_MODEL_ZOO_CACHE)")
    parser.add_argument("--allow-missing", action="store_true",
                        help="also leave out models that were named and cannot be reached")
    parser.add_argument("--no-verify", action="store_true",
                        help="leave it to check_zoo to compare what was made, which under an "
                             "emulator takes half of the time")
    parser.add_argument("--check", action="store_true",
                        help="only say by the exit status whether all is up to date (0 or 1)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but failures")
    parser.add_argument("--json", action="store_true", help="report as one JSON object")
    return parser.parse_args()


def choose_targets(wanted: list[str]) -> list[str]:
    cpus = list(named_targets())
    known = [*cpus, *named_devices()]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ToolError(USAGE, f"there is no target '{unknown[0]}'; there are {', '.join(known)}.")
    return wanted or cpus


def fetch(models: list[Model], needed: list[Model], fetcher: Fetcher) -> list[zoo.Outcome]:
    """Every model's ONNX file; a needed model that cannot be had ends the command."""
    outcomes = [zoo.make(model, fetcher) for model in models]
    for outcome in outcomes:
        if not outcome.is_there and outcome.model in needed:
            raise ToolError(MISSING_FILE, f"{outcome.model.name} cannot be had: {outcome.reason}.")
    return outcomes


def print_table(cells: list[Cell], targets: list[str], left_out: list[zoo.Outcome]) -> None:
    rows = [("model", *targets)]
    models = list(dict.fromkeys(cell.model for cell in cells))
    states = {(cell.model, cell.target): cell.state for cell in cells}
    rows += [(model, *(states[model, target] for target in targets)) for model in models]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    for outcome in left_out:
        print(f"left out: {outcome.model.name}: {outcome.reason}")


@command
def main() -> int:
    args = parse_arguments()
    known = read_manifest()
    named = choose(known, args.models)
    models = named + [m for m in known if m not in named and (
        m.is_seeded if args.seeded else not args.models and not m.is_seeded)]
    targets = choose_targets(args.targets)
    builder = Builder(args.out, args.forms, max(1, args.jobs), verified=not args.no_verify,
                      quiet=args.quiet or args.json)
    if args.check:
        ready = all(zoo.is_up_to_date(model) for model in models) and builder.check(models, targets)
        return 0 if ready else 1

    needed = [] if args.allow_missing else named
    outcomes = fetch(models, needed, Fetcher(Cache.of_user(args.cache)))
    there = [outcome.model for outcome in outcomes if outcome.is_there]
    left_out = [outcome for outcome in outcomes if not outcome.is_there]
    cells = builder.compile(there, targets)
    builder.make_golden(there)
    if args.json:
        print(json.dumps({
            "schema_version": REPORT_SCHEMA_VERSION,
            "artifacts": [cell.__dict__ for cell in cells],
            "left_out": [{"model": o.model.name, "reason": o.reason} for o in left_out]}, indent=2))
    elif not args.quiet:
        print_table(cells, targets, left_out)
    failed = [cell for cell in cells if cell.state == "failed"]
    if failed:
        raise ToolError(failed[0].code, "; ".join(
            f"{cell.model} for {cell.target}: {cell.reason}" for cell in failed))
    return 0
