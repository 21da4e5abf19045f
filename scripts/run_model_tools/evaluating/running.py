"""All pictures of a data set through several runners at once, each result stored when it is
there."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from run_model_tools.errors import ToolError
from run_model_tools.evaluating.example import Example
from run_model_tools.evaluating.local_runner import PictureFailed
from run_model_tools.evaluating.outcome import Judged, Unfit
from run_model_tools.evaluating.store import Result, Store
from run_model_tools.progress import Counted


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
    progress, judged, right, failed = Counted(len(examples), "pictures"), 0, 0, 0
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
                judged += item.error is None
                failed += item.error is not None
                right += bool(item.correct)
                progress.one_more(_so_far(judged, right, failed))
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
        progress.end()
    if failure is not None:
        raise failure


def _so_far(judged: int, right: int, failed: int) -> str:
    share = 100 * right / max(judged, 1)
    return f", {share:.1f} % right" + (f", {failed} failed" if failed else "")


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
