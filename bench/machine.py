"""What a bench's report says of the machine."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path


def describe_machine() -> dict[str, object]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                 platform.machine())
    return {"cpu": model, "machine": platform.machine(), "cpus": len(os.sched_getaffinity(0)),
            "kernel": platform.release(), "busy": busy_share(2.0)}


def warn_if_busy(program: str, machine: dict[str, object]) -> None:
    """Says on standard error that times measured now will be too long, where they will."""
    if machine["busy"] > 0.1:
        print(f"{program}: other programs use {machine['busy']:.0%} of the CPUs: the times will be "
              "too long", file=sys.stderr)


def best_isa() -> str | None:
    """"avx512" (with all of x86-64-v4), "avx2", or None."""
    line = next((line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                 if line.startswith("flags")), "")
    flags = set(line.split())
    if {f"avx512{part}" for part in ("f", "bw", "cd", "dq", "vl")} <= flags:
        return "avx512"
    return "avx2" if {"avx2", "fma"} <= flags else None


def busy_share(seconds: float) -> float:
    """How much of all CPUs' time others use just now, out of /proc/stat."""

    def times() -> tuple[int, int]:
        values = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii")
                  .splitlines()[0].split()[1:]]
        return values[3] + values[4], sum(values)  # idle and waiting for disks; all

    idle_before, all_before = times()
    time.sleep(seconds)
    idle, total = times()
    return 1 - (idle - idle_before) / max(1, total - all_before)
