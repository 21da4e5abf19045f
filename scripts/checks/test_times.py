"""Prints where the time of the last scripts/test.sh went, against a budget for each label.

    test_times.py LOG_FOLDER BUDGET.json

A test counts under its first label; `build` is what building took. Times of tests that ran beside
each other add up to more than went by on the clock. The budget holds seconds on 2 idle cores. Exit
status 1 if a label took more than its budget or has none.
"""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def labels_of(preset: str) -> dict[str, str]:
    """The first label of each test of the preset, by the test's name."""
    listed = subprocess.run(["ctest", "--preset", preset, "--show-only=json-v1"], cwd=ROOT,
                            capture_output=True, text=True, check=True)
    labels = {}
    for test in json.loads(listed.stdout)["tests"]:
        for item in test.get("properties", []):
            if item["name"] == "LABELS":
                labels[test["name"]] = item["value"][0]
    return labels


def used(logs: Path, preset: str) -> dict[str, float]:
    """Seconds by label."""
    seconds: dict[str, float] = {}
    build = logs / f"{preset}.build_seconds"
    if build.exists():
        seconds["build"] = float(build.read_text())
    labels = labels_of(preset)
    for case in ET.parse(logs / f"{preset}.junit.xml").getroot().iter("testcase"):
        label = labels.get(case.get("name", ""), "no label")
        seconds[label] = seconds.get(label, 0.0) + float(case.get("time", "0"))
    return seconds


def over_budget(logs: Path, budget: dict[str, dict[str, float]]) -> Iterator[str]:
    """Prints the table; gives "PRESET LABEL" for each that took too long."""
    print(f"{'preset':12} {'label':14} {'seconds':>8} {'budget':>8}")
    for path in sorted(logs.glob("*.junit.xml")):
        preset = path.name[:-len(".junit.xml")]
        for label, seconds in sorted(used(logs, preset).items()):
            allowed = budget.get(preset, {}).get(label)
            late = allowed is None or seconds > allowed
            print(f"{preset:12} {label:14} {seconds:8.1f} {allowed if allowed else '-':>8}"
                  f"{'  over' if late else ''}")
            if late:
                yield f"{preset} {label}"


def main() -> int:
    logs, budget = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    if not list(logs.glob("*.junit.xml")):
        print("test.sh: no tests have run yet, so there are no times.", file=sys.stderr)
        return 1
    late = list(over_budget(logs, budget))
    if late:
        print(f"\nOver their budget: {', '.join(late)}.", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
