"""What a long command is doing, with the seconds that pass: on a terminal only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
