"""Whether a process uses AVX-512, as the kernel sees it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_AGE = re.compile(r"^AVX512_elapsed_ms:\s*(-?\d+)", re.MULTILINE)


def used_by(pid: int, seconds: float, proc: Path = Path("/proc")) -> bool | None:
    """Whether one of the process's threads did within the last `seconds`; None: it is not known.

    arch_status (Documentation/filesystems/proc.rst) has the milliseconds since the kernel took the
    thread off a CPU and found registers in use that only AVX-512 has, or -1.
    """
    ages = list(_ages(proc / str(pid) / "task"))
    return any(0 <= age <= 1e3 * seconds for age in ages) if ages else None


def _ages(tasks: Path) -> Iterable[int]:
    for status in tasks.glob("*/arch_status"):
        try:
            match = _AGE.search(status.read_text(encoding="ascii"))
        except OSError:  # the thread has ended meanwhile
            continue
        if match:
            yield int(match[1])
