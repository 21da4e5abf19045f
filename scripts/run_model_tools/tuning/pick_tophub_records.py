"""Picks from a log of TopHub the records that fit networks and targets of this project.

  pick_tophub_records arm_cpu_v0.08.log --models resnet18.onnx,squeezenet1_1.onnx

writes kernels/records/FAMILY.TARGET.autotvm for every target with a board in the log whose CPU is
its own or near it, each line as TopHub has it.  The logs are public (github.com/tlc-pack/tophub,
Apache License 2.0); none is downloaded.  bench/arm_records/count then drops what costs more
instructions than untuned code.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from run_model_tools import tvm_process
from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, USAGE, ToolError, command
from run_model_tools.onnx_model import read_model
from run_model_tools.source_model import resolve_shapes
from run_model_tools.targets import named_targets
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning.selection import BOARDS, COMMITTED
from run_model_tools.tuning.session import family_of


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, metavar="LOG")
    parser.add_argument("--models", required=True, metavar="M.onnx,N.onnx",
                        type=lambda text: [Path(part) for part in text.split(",") if part])
    parser.add_argument("--targets", metavar="T,U", default=",".join(BOARDS),
                        type=lambda text: text.split(","),
                        help=f"default: {','.join(BOARDS)}")
    parser.add_argument("--records-dir", type=Path, default=COMMITTED, metavar="FOLDER",
                        help="default: kernels/records")
    parser.add_argument("--dry-run", action="store_true", help="count, and write nothing")
    parser.add_argument("--json", action="store_true", help="report as one JSON object")
    return parser.parse_args()


@command
def main() -> int:
    args = parse_arguments()
    unknown = [name for name in args.targets if name not in BOARDS]
    if unknown:
        raise ToolError(USAGE, f"no board of TopHub is near {', '.join(unknown)}: choose of "
                               f"{', '.join(BOARDS)}.")
    if not args.log.is_file():
        raise ToolError(MISSING_FILE, f"{args.log} is not there.")
    _, records, unreadable = tuning_records.read(args.log)
    if not records:
        raise ToolError(MALFORMED_FILE, f"{args.log} has no record of AutoTVM.")
    targets = {name: named_targets()[name].tvm for name in args.targets}
    report = {"schema_version": 1, "lines": len(records), "unreadable": unreadable, "picked": []}
    for path in args.models:
        model = read_model(path)
        found = tvm_process.call("layers", None, onnx=str(path.resolve()),
                                 shapes=resolve_shapes(model, {}), target="llvm",
                                 targets=list(targets.values()))["layers"]
        for name, text in targets.items():
            words = tuning_records.target_words(text)
            for board in BOARDS[name]:
                of_board = tuning_records.best(
                    r for r in records if tuning_records.target_words(r.target)["model"] == board
                    and tuning_records.target_words(r.target)["machine"] == words["machine"])
                if of_board:
                    break
            layers = found[text]
            fitting = [min((of_board[key] for key in layer if key in of_board),
                           key=lambda record: record.seconds)
                       for layer in layers if any(key in of_board for key in layer)]
            family = family_of(path.stem)
            report["picked"].append({"family": family, "target": name, "board": board,
                                     "layers": len(layers), "records": len(fitting)})
            if fitting and not args.dry_run:
                tuning_records.write(args.records_dir / f"{family}.{name}.autotvm", {
                    "family": family, "target": name, "kind": "autotvm",
                    "measured_on": f"{board}, by TopHub", "origin": f"TopHub {args.log.name}",
                    "licence": "Apache-2.0"}, fitting)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        for row in report["picked"]:
            print(f"{row['family']:16} {row['target']:16} {row['board']:8} "
                  f"{row['records']:3} of {row['layers']:3} layers")
    return 0
