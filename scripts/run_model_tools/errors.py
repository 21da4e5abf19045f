"""How the commands fail: one sentence on standard error, and run_model's exit codes."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Callable, NoReturn

USAGE = 2
MISSING_FILE = 3
MALFORMED_FILE = 4
WRONG_MACHINE = 5
MISMATCH = 6
BAD_PICTURE = 7
FAILED_RUN = 8


class ToolError(Exception):
    """A failure that a person can do something about.

    `message` is a sentence naming the file, what was found, what was expected and what to do.
    `code` is the program's exit code.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def command(main: Callable[[], int | None]) -> Callable[[], NoReturn]:
    """A command's main function as one that ends the process: see run_command()."""
    @functools.wraps(main)
    def run() -> NoReturn:
        run_command(main)

    return run


def run_command(main: Callable[[], int | None]) -> NoReturn:
    """Runs a command's main function and ends the process with its exit code."""
    try:
        sys.exit(main() or 0)
    except ToolError as error:
        sys.stderr.write(f"{Path(sys.argv[0]).name}: {error}\n")
        sys.exit(error.code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        sys.stderr.close()
        sys.exit(0)
