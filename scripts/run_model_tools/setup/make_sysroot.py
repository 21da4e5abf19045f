"""Makes build/sysroot/<preset>: the libraries that programs for another machine link.

They are Debian's packages of that architecture, downloaded with this machine's apt sources and
keys and unpacked beside each other.  Nothing is installed, and no root is needed.
"""

from __future__ import annotations

import argparse

from run_model_tools.errors import command
from run_model_tools.files import locked
from run_model_tools.setup import sysroot


@command
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", metavar="preset",
                        help=f"which to make: {', '.join(sysroot.ALL)} (default: all)")
    parser.add_argument("--check", action="store_true",
                        help="make nothing; exit status 0 if they are made already, 1 if not")
    args = parser.parse_args()
    unknown = [name for name in args.presets if name not in sysroot.ALL]
    if unknown:
        parser.error(f"there is no preset '{unknown[0]}'; known are {', '.join(sysroot.ALL)}")
    wanted = [sysroot.ALL[name] for name in args.presets or sysroot.ALL]
    if args.check:
        return 0 if all(map(sysroot.is_made, wanted)) else 1
    for root in wanted:
        # One at a time; who waited finds it made.
        with locked(sysroot.SYSROOTS / f".{root.preset}.lock"):
            if not sysroot.is_made(root):
                sysroot.make(root)
        print(f"{root.preset}: {root.folder}")
    return 0
