"""What a long command is doing, with the seconds that pass: on a terminal only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stage(title: str) -> Iterator[None]:
    """Shows `title` and a clock on standard error while the body runs, then how long it took."""
    if not sys.stderr.isatty():
        yield
        return
    start = time.monotonic()
    finished = threading.Event()

    def tick() -> None:
        while not finished.wait(0.5):
            sys.stderr.write(f"\r{title} ... {time.monotonic() - start:.0f} s")
            sys.stderr.flush()

    sys.stderr.write(f"{title} ...")
    sys.stderr.flush()
    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    outcome = "failed"
    try:
        yield
        outcome = "done"
    finally:
        finished.set()
        clock.join()
        sys.stderr.write(f"\r{title} ... {outcome} ({time.monotonic() - start:.1f} s)\033[K\n")
        sys.stderr.flush()
