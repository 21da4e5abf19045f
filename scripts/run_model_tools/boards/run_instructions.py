"""Runs the commands of TARGET_INSTRUCTIONS.md, so that they stay true.

  run_instructions                      every section
  run_instructions raspi4_aarch64 c     these
  run_instructions --list               the sections' names

A section is a heading with a name in `backquotes`; its commands are the blocks marked ```sh, run
one after another by one shell in the repository's root, the first failure ending it.  No board is
at hand: ssh and scp are replaced by stand-ins that take an empty folder for the board's home, and
that run what is for another machine under the target's emulator (artifacts/targets.json).
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from run_model_tools import environment
from run_model_tools.boards import instructions
from run_model_tools.errors import (
    FAILED_RUN,
    MALFORMED_FILE,
    MISSING_FILE,
    USAGE,
    ToolError,
    command,
)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION")
    parser.add_argument("--file", type=Path, metavar="FILE.md",
                        default=environment.REPO_ROOT / "TARGET_INSTRUCTIONS.md")
    parser.add_argument("--list", action="store_true", help="only list the sections")
    return parser.parse_args()


@command
def main() -> None:
    args = parse_arguments()
    if not args.file.is_file():
        raise ToolError(MISSING_FILE, f"{args.file} is not there.")
    sections = instructions.read_sections(args.file.read_text(encoding="utf-8"))
    if not sections:
        raise ToolError(MALFORMED_FILE, f"{args.file} has no section with a name in `backquotes` "
                                        "and a block marked ```sh.")
    for name in args.sections:
        if name not in sections:
            raise ToolError(USAGE, f"{args.file} has no section '{name}'; there are "
                                   f"{', '.join(sections)}.")
    chosen = args.sections or list(sections)
    if args.list:
        print("\n".join(chosen))
        return
    for name in chosen:
        print(f"== {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="run_model-board-") as scratch:
            env = instructions.board_environment(Path(scratch), name)
            done = subprocess.run(["bash", "-euxo", "pipefail", "-c", sections[name]],
                                  cwd=environment.REPO_ROOT, env=env, stdin=subprocess.DEVNULL,
                                  check=False)
        if done.returncode != 0:
            raise ToolError(FAILED_RUN, f"the commands of section '{name}' of {args.file} ended "
                                        f"with exit status {done.returncode}; the last one shown "
                                        "above is the one that failed.")
    print(f"{len(chosen)} section{'s' if len(chosen) > 1 else ''} ran: {', '.join(chosen)}.")
