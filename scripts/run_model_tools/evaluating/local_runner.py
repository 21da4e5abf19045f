"""A run_model process that is kept alive: a picture's path in, a line of JSON out."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from run_model_tools.errors import FAILED_RUN, MISSING_FILE, ToolError
from run_model_tools.evaluating.outcome import results_of

#: A process that has died so often, one after the other, without a single answer is not started
#: again.
_PATIENCE = 3


class PictureFailed(Exception):
    """There is no result for this picture; the sentence says why."""


class LocalRunner:
    """Not to be shared between threads.  Use as a context."""

    def __init__(self, program: Path, arguments: Sequence[str], timeout: float,
                 files: str | None = None) -> None:
        """files: "map" or "image", whose pixels become the member "array" of the first result of
        that kind (float32 [height, width], NaN where nothing was seen; uint8 [height, width, 3]);
        reports have none of them."""
        self._files = files
        self._folder = tempfile.TemporaryDirectory(prefix="run_model-")
        written = {"map": ["--save-map"], "image": ["--draw"]}.get(files or "", [])
        self._command = [str(program), *arguments,
                         *(part for flag in written for part in (flag, self._folder.name))]
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the runner)
        self._pending = b""
        self._deaths = 0
        self._answered = False

    def __enter__(self) -> LocalRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._log.close()
        self._folder.cleanup()

    def report(self, picture: Path) -> dict[str, Any]:
        """run_model's report. Raises PictureFailed, and ToolError where run_model does not work at
        all."""
        name = str(picture.absolute())
        if "\n" in name:
            raise PictureFailed("its name has a line break, which run_model cannot be told")
        process = self._started()
        try:
            assert process.stdin
            process.stdin.write(os.fsencode(name) + b"\n")
            process.stdin.flush()
            line = self._line(process)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self._end()
            raise PictureFailed(f"run_model did not answer within {self._timeout:g} s") from None
        if not line:
            self._has_died(process)
        self._answered, self._deaths = True, 0
        try:
            report = json.loads(line)
            image = report.get("image")
            said = image.get("path") if isinstance(image, dict) else image
        except (ValueError, TypeError, AttributeError):
            raise self._nonsense(line) from None
        if "error" in report:
            error = report["error"]
            raise PictureFailed(error["message"] if isinstance(error, dict) else str(error))
        if said != name:
            raise self._nonsense(line)
        self._add_pixels(report)
        return report

    def _add_pixels(self, report: dict[str, Any]) -> None:
        if self._files is None:
            return
        wanted = results_of(report, self._files)
        if not wanted:
            return
        path = Path(report["map"]["path"] if self._files == "map" else report["drawn"])
        try:
            if self._files == "map":
                wanted[0]["array"] = np.load(path, allow_pickle=False)
            else:
                with Image.open(path) as picture:
                    wanted[0]["array"] = np.asarray(picture)
        except (OSError, ValueError, SyntaxError) as error:
            raise ToolError(FAILED_RUN, f"run_model has written {path}, which cannot be read: "
                                        f"{error}.") from None
        path.unlink()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._pending = b""
            self._log.seek(0)
            self._log.truncate()
            try:
                self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE,
                                                 stdout=subprocess.PIPE, stderr=self._log,
                                                 start_new_session=True)
            except OSError as error:
                raise ToolError(MISSING_FILE, f"{self._command[0]} could not be started: "
                                              f"{error.strerror}.") from None
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        """The next line, or nothing where the process has ended."""
        assert process.stdout
        end = time.monotonic() + self._timeout
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = end - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    return b""
                self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _has_died(self, process: subprocess.Popen[bytes]) -> None:
        """Raises PictureFailed where it is worth trying another picture, else ToolError."""
        code = process.wait()
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip().splitlines()
        self._end()
        self._deaths += 1
        reason = said[-1] if said else f"it ended with the status {code}"
        if not self._answered and 0 < code < 10:
            # It has refused what it was started with, as any other picture would show.
            raise ToolError(code, reason)
        if self._deaths >= _PATIENCE:
            raise ToolError(FAILED_RUN, f"run_model has ended {self._deaths} times in a row "
                                        f"without an answer: {reason}")
        raise PictureFailed(f"run_model ended with the status {code}: {reason}")

    def _nonsense(self, line: bytes) -> ToolError:
        said = line[:120].decode(errors="replace")
        return ToolError(FAILED_RUN, f"{self._command[0]} answered '{said}', where its report on "
                                     "the picture is expected.")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin and process.stdout
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
