"""All pictures of a data set through several runners at once, each result stored when it is
there."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from run_model_tools.errors import ToolError
from run_model_tools.evaluating.example import Example
from run_model_tools.evaluating.local_runner import PictureFailed
from run_model_tools.evaluating.predictions import Judged, Unfit
from run_model_tools.evaluating.store import Result, Store

_SHOWN_EVERY = 0.5


class Runner(Protocol):
    def __enter__(self) -> Runner: ...

    def __exit__(self, *_: object) -> None: ...

    def report(self, picture: Any) -> dict[str, Any]: ...


def run_all(examples: Sequence[Example], make_runner: Callable[[], Runner], jobs: int,
            judge: Callable[[dict[str, Any], Any], Judged], store: Store) -> None:
    """Raises ToolError where nothing works; what was stored until then stays."""
    waiting: queue.SimpleQueue[Example] = queue.SimpleQueue()
    for example in examples:
        waiting.put(example)
    done: queue.SimpleQueue[Result | BaseException | None] = queue.SimpleQueue()
    stopped = threading.Event()
    jobs = min(jobs, max(len(examples), 1))
    threads = [threading.Thread(target=_work, daemon=True,
                                args=(waiting, done, stopped, make_runner, judge))
               for _ in range(jobs)]
    for thread in threads:
        thread.start()
    progress = _Progress(len(examples))
    failure: BaseException | None = None
    running = len(threads)
    try:
        while running:
            item = done.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                failure = failure or item
                stopped.set()
            else:
                store.put(item)
                progress.show(item)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
        progress.end()
    if failure is not None:
        raise failure


def _work(waiting: queue.SimpleQueue[Example],
          done: queue.SimpleQueue[Result | BaseException | None], stopped: threading.Event,
          make_runner: Callable[[], Runner],
          judge: Callable[[dict[str, Any], Any], Judged]) -> None:
    try:
        with make_runner() as runner:
            while not stopped.is_set():
                try:
                    example = waiting.get_nowait()
                except queue.Empty:
                    return
                done.put(_result(example, runner, judge))
    except BaseException as error:
        done.put(error)
    finally:
        done.put(None)


def _result(example: Example, runner: Runner,
            judge: Callable[[dict[str, Any], Any], Judged]) -> Result:
    start = time.monotonic()
    try:
        judged = judge(runner.report(example.path), example.truth)
    except (PictureFailed, Unfit) as error:
        return Result(example.key, None, str(error), None, None, time.monotonic() - start)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ToolError(8, f"run_model's report on {example.path} is not what is expected: "
                           f"{error!r}.") from None
    return Result(example.key, judged.prediction, None, judged.score, judged.correct,
                  time.monotonic() - start)


class _Progress:
    """A line on a terminal: how many, how fast, how long still, and how many are right so far."""

    def __init__(self, total: int) -> None:
        self._active = sys.stderr.isatty()
        self._total, self._done, self._right, self._failed = total, 0, 0, 0
        self._start = self._shown = time.monotonic()

    def show(self, result: Result) -> None:
        self._done += 1
        self._right += bool(result.correct)
        self._failed += result.error is not None
        now = time.monotonic()
        if not self._active or (now - self._shown < _SHOWN_EVERY and self._done < self._total):
            return
        self._shown = now
        pace = self._done / max(now - self._start, 1e-9)
        failed = f", {self._failed} failed" if self._failed else ""
        judged = max(self._done - self._failed, 1)
        sys.stderr.write(f"\r{self._done} of {self._total} pictures, {pace:.3g} a second, "
                         f"{_duration((self._total - self._done) / pace)} left, "
                         f"{100 * self._right / judged:.1f} % right{failed}\033[K")
        sys.stderr.flush()

    def end(self) -> None:
        if self._active and self._done:
            sys.stderr.write("\n")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
