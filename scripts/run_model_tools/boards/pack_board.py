"""Packs everything that a board needs into one archive.

  pack_board raspi4_aarch64 --models squeezenet1_1,resnet18

writes build/boards/raspi4_aarch64.tar.gz: a folder raspi4_aarch64/ with the programs run_model and
check_zoo (where they have been built rpc_server, and run_model.py with its library), the compiled
models, their reference results with the pictures, and the labels, laid out as in this repository.
On the board, in that folder, ./check_zoo checks every model, and ./run_model MODEL artifacts
images/PICTURE labels/imagenet.txt runs one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from run_model_tools import environment
from run_model_tools.boards import board
from run_model_tools.errors import command


def parse_arguments() -> argparse.Namespace:
    root = environment.REPO_ROOT
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="a target of artifacts/targets.json")
    parser.add_argument("--models", default="", metavar="A,B",
                        help="default: all that are compiled for the target")
    parser.add_argument("--artifacts", type=Path, default=root / "artifacts", metavar="FOLDER",
                        help="where make_zoo put the models (default: artifacts)")
    parser.add_argument("--golden", type=Path, action="append", metavar="FOLDER",
                        help="where the reference results are; may be repeated "
                             "(default: artifacts/golden and build/zoo/golden)")
    parser.add_argument("--images", type=Path, default=root / "images", metavar="FOLDER",
                        help="the pictures that the reference results are of (default: images)")
    parser.add_argument("--programs", type=Path, metavar="FOLDER",
                        help="where the target's programs are (default: build/PRESET/bin)")
    parser.add_argument("--out", type=Path, default=environment.BUILD_DIR / "boards",
                        metavar="FOLDER", help="default: build/boards")
    args = parser.parse_args()
    args.golden = args.golden or [root / "artifacts" / "golden",
                                  environment.BUILD_DIR / "zoo" / "golden"]
    return args


@command
def main() -> None:
    args = parse_arguments()
    plan = board.plan(args.target, [m for m in args.models.split(",") if m], args.artifacts,
                      args.golden, args.images, args.programs)
    args.out.mkdir(parents=True, exist_ok=True)
    archive = args.out / f"{args.target}.tar.gz"
    with tempfile.TemporaryDirectory(dir=args.out, prefix=".packing.") as scratch:
        folder = Path(scratch, args.target)
        for place, source in plan.files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / place)
        for program in plan.programs:
            subprocess.run([plan.strip, str(folder / program)], check=True)
        packed = Path(scratch, archive.name)
        with tarfile.open(packed, "w:gz") as tar:
            tar.add(folder, arcname=args.target)
        os.replace(packed, archive)
    print(f"{archive}  {archive.stat().st_size:,} bytes")
    for model, cases in sorted(plan.models.items()):
        print(f"  {model}: " + (f"{cases} reference results" if cases else
                                "no reference results, so check_zoo cannot check it"))
