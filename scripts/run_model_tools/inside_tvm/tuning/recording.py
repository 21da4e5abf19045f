"""Measures every configuration of one AutoTVM task, for searches to be replayed without hardware:
the action "record_space".

Code is built and run in a child process, so that a configuration that takes LLVM minutes, or ends
the process, costs no more than itself.
"""

import os
import random
import select
import signal
import time

from run_model_tools.inside_tvm import tell
from run_model_tools.inside_tvm.tuning.tasks import create_task, knobs_of

# A configuration that is neither built nor run in so many seconds has failed, as AutoTVM's own
# builder and runner would say.
TIMEOUT = 20

# Every visit calls the code until it has run so long, but at least so often.
VISIT_SECONDS, VISIT_CALLS = 0.004, 3

# Passes over what is within this factor of the fastest so far.  Others run while these are
# measured, and whatever disturbs a time makes it longer, so the least of many visits that lie
# seconds apart is nearest to the truth.
PASSES = ((3.0, 2), (1.5, 4), (1.15, 10))


def record_space(tvm, request):
    """{"flops", "knobs", "seconds", "spread"}: a time for every index of the space, None for what
    failed.

    spread: the middle value, over the configurations within a tenth of the fastest, of the median
    of their visits' times divided by the least.
    """
    task = create_task(request)
    count = task.config_space.range_length
    visits = {index: [] for index in range(count)}
    waiting = list(range(count))
    while True:
        unfinished = _collect(request, tvm, task, waiting, visits)
        if unfinished is None:
            break
        # What was not answered for has ended the child; the next one goes on after it.
        waiting = unfinished[1:]
    seconds = [min(visits[i]) if visits[i] else None for i in range(count)]
    return {"flops": float(task.flop), "knobs": knobs_of(task), "seconds": seconds,
            "spread": _spread(visits)}


def _spread(visits):
    best = min(min(times) for times in visits.values() if times)
    ratios = sorted(sorted(times)[len(times) // 2] / min(times)
                    for times in visits.values() if times and min(times) <= 1.1 * best)
    return ratios[len(ratios) // 2]


def _collect(request, tvm, task, waiting, visits):
    """Lets a child measure and adds to `visits`; gives what it has not come to, or None."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _measure(tvm, task, waiting, visits, os.fdopen(writing, "w", buffering=1))
        finally:
            os._exit(0)
    os.close(writing)
    left, unread, ended = list(waiting), b"", False
    while not ended:
        ready, _, _ = select.select([reading], [], [], TIMEOUT)
        chunk = os.read(reading, 65536) if ready else b""
        if not chunk:
            break
        *lines, unread = (unread + chunk).split(b"\n")
        for line in lines:
            index, seconds = line.split()
            ended = index == b"end"
            if ended:
                break
            if seconds not in (b"failed", b"building"):
                visits[int(index)].append(float(seconds))
            if left and int(index) == left[0] and seconds != b"building":
                left.pop(0)
                tell(request, "progress", done=len(visits) - len(left), count=len(visits))
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None if ended else left


def _measure(tvm, task, waiting, visits, out):
    """The child: writes "index seconds" for each visit, then "end"."""
    built = {}
    times = {index: min(own) for index, own in visits.items() if own}

    def visit(index):
        seconds = _visit(*built[index])
        out.write("%d %.9g\n" % (index, seconds))
        times[index] = min(seconds, times.get(index, seconds))

    def close(factor):
        best = min(times.values())
        return [index for index, seconds in times.items() if seconds <= factor * best]

    for index in waiting:
        try:
            built[index] = _build(tvm, task, index)
            visit(index)
        except Exception:
            out.write("%d failed\n" % index)
        if index in times and times[index] > PASSES[0][0] * min(times.values()):
            del built[index]
    for factor, passes in PASSES:
        chosen = close(factor)
        for index in chosen:
            if index not in built:
                out.write("%d building\n" % index)
                built[index] = _build(tvm, task, index)
        for number in range(passes):
            random.Random(number).shuffle(chosen)
            for index in chosen:
                visit(index)
    out.write("end end\n")


def _build(tvm, task, index):
    """(function, its arguments) of one configuration."""
    import numpy as np

    with task.target:
        schedule, tensors = task.instantiate(task.config_space.get(index))
        function = tvm.build(schedule, tensors, task.target)
    numbers = np.random.default_rng(1)
    arrays = [tvm.nd.array(numbers.standard_normal([int(d) for d in tensor.shape])
                           .astype(tensor.dtype)) for tensor in tensors]
    return function, arrays


def _visit(function, arrays):
    """Seconds of the fastest of some calls, after one that brings the caches back."""
    evaluator = function.time_evaluator(function.entry_name, _cpu(), number=1, repeat=VISIT_CALLS)
    end, best = time.perf_counter() + VISIT_SECONDS, float("inf")
    while True:
        best = min(best, *evaluator(*arrays).results)
        if time.perf_counter() > end:
            return best


def _cpu():
    import tvm

    return tvm.cpu(0)
