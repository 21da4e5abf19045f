"""What a long command is doing, with the seconds that pass: on a terminal only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SHOWN_EVERY = 0.5


class Counted:
    """A line: how many of so many are done, how fast, how long still, and what else is said."""

    def __init__(self, total: int, what: str) -> None:
        self._active = sys.stderr.isatty()
        self._total, self._what, self._done = total, what, 0
        self._start = self._shown = time.monotonic()

    def one_more(self, note: str = "") -> None:
        self._done += 1
        now = time.monotonic()
        if not self._active or (now - self._shown < _SHOWN_EVERY and self._done < self._total):
            return
        self._shown = now
        sys.stderr.write(f"\r{self.line(now - self._start)}{note}\033[K")
        sys.stderr.flush()

    def line(self, seconds: float) -> str:
        pace = self._done / max(seconds, 1e-9)
        return (f"{self._done} of {self._total} {self._what}, {pace:.3g} a second, "
                f"{_duration((self._total - self._done) / pace)} left")

    def end(self) -> None:
        if self._active and self._done:
            sys.stderr.write("\n")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


@contextmanager
def stage(title: str) -> Iterator[Callable[[str], None]]:
    """Shows `title` and a clock on standard error while the body runs, then how long it took.

    What the body calls the given function with is shown too: what is at work.
    """
    at_work = [""]

    def tell(what: str) -> None:
        at_work[0] = f" {what[:60]}"

    if not sys.stderr.isatty():
        yield tell
        return
    start = time.monotonic()
    finished = threading.Event()

    def tick() -> None:
        while not finished.wait(0.5):
            seconds = time.monotonic() - start
            sys.stderr.write(f"\r{title} ...{at_work[0]} {seconds:.0f} s\033[K")
            sys.stderr.flush()

    sys.stderr.write(f"{title} ...")
    sys.stderr.flush()
    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    outcome = "failed"
    try:
        yield tell
        outcome = "done"
    finally:
        finished.set()
        clock.join()
        sys.stderr.write(f"\r{title} ... {outcome} ({time.monotonic() - start:.1f} s)\033[K\n")
        sys.stderr.flush()
