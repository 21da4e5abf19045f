"""How the commands fail: one sentence on standard error, and run_model's exit codes."""

from __future__ import annotations

import errno
import functools
import os
import select
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


def last_line(error: BaseException) -> str:
    """What an exception says where others' code raised it: in TVM's, traces come first."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def command(main: Callable[[], int | None]) -> Callable[[], NoReturn]:
    """A command's main function as one that ends the process: see run_command()."""
    @functools.wraps(main)
    def run() -> NoReturn:
        run_command(main)

    return run


def run_command(main: Callable[[], int | None]) -> NoReturn:
    """Runs a command's main function and ends the process with its exit code."""
    code: str | int | None = 0
    try:
        try:
            code = main()
        except SystemExit as end:
            code = end.code
        except ToolError as error:
            code = error.code
            _say(str(error))
        except KeyboardInterrupt:
            code = 130
        # Python itself writes what is left after all handlers, and ends with words of its own.
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        _forget_output()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS):
            raise
        where = f"'{error.filename}'" if error.filename else "all of its output"
        _say(f"cannot write {where}: {error.strerror}")
        _forget_output()
        code = code or MISSING_FILE
    sys.exit(code or 0)


def _reader_is_gone() -> bool:
    """Whether what read our standard output went away, as `| head` does."""
    output = select.poll()
    output.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))


def _say(sentence: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{Path(sys.argv[0]).name}: {sentence}\n")


def _forget_output() -> None:
    """What was not written of standard output stays so, without Python's complaint at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
