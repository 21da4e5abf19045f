"""The command line of `run`. Needs nothing but Python itself."""

from __future__ import annotations

import argparse
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1]


class Settings(argparse.Namespace):
    """What the flags of the same names say."""

    emulate: bool
    connect: tuple[str, int] | None
    tracker: tuple[str, int] | None
    key: str
    target: str
    local: str | None
    episodes: int
    seed: int
    policy: Path
    out: Path | None
    build: Path | None
    json: bool


def _address(text: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT")
    return host.strip("[]"), int(port)


def parse_arguments(description: str, arguments: list[str] | None = None) -> Settings:
    """Ends the program with exit code 2 where `arguments` (the program's, if None) make no
    sense."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    board = parser.add_mutually_exclusive_group(required=True)
    board.add_argument("--emulate", action="store_true",
                       help="start the target's own programs on this machine, under an emulator")
    board.add_argument("--connect", type=_address, metavar="HOST:PORT", help="of rpc_server")
    board.add_argument("--tracker", type=_address, metavar="HOST:PORT", help="needs --key")
    parser.add_argument("--key", default="", help="which the board's server was started with")
    parser.add_argument("--target", default="pynq_z1",
                        help="as for compile_model (default: pynq_z1, which is Armv7 with NEON)")
    parser.add_argument("--local", metavar="COMMAND",
                        help="starts cartpole_local on the board with a policy, as in "
                             "'ssh xilinx@pynq ./cartpole_local policy.so'")
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="default: 100")
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="of the first episode's start; the others count on (default: 1)")
    parser.add_argument("--policy", type=Path, default=_FOLDER / "policy.onnx", metavar="FILE",
                        help="default: policy.onnx beside this command")
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        help="default: build/examples/cartpole/TARGET")
    parser.add_argument("--build", type=Path, metavar="FOLDER",
                        help="with --emulate: where the programs were built (default: the build "
                             "folder of the target's preset)")
    parser.add_argument("--json", action="store_true",
                        help="print results.json instead of a summary")
    settings = parser.parse_args(arguments, Settings())
    if settings.tracker and not settings.key:
        parser.error("--tracker needs --key")
    if not 1 <= settings.episodes <= 100_000:
        parser.error("--episodes must be from 1 to 100000")
    if settings.seed < 0:
        parser.error("--seed must not be negative")
    return settings
