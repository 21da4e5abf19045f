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


def used(logs: Path, preset: str, labels: dict[str, str]) -> dict[str, float]:
    """Seconds by label; `labels` is what labels_of() gives."""
    seconds: dict[str, float] = {}
    build = logs / f"{preset}.build_seconds"
    if build.exists():
        seconds["build"] = float(build.read_text())
    for case in ET.parse(logs / f"{preset}.junit.xml").getroot().iter("testcase"):
        label = labels.get(case.get("name", ""), "no label")
        seconds[label] = seconds.get(label, 0.0) + float(case.get("time", "0"))
    return seconds


def over_budget(seconds: dict[str, float], budget: dict[str, float], preset: str) -> Iterator[str]:
    """Prints the rows of a preset; gives "PRESET LABEL" for each that took too long."""
    for label, taken in sorted(seconds.items()):
        allowed = budget.get(label)
        late = allowed is None or taken > allowed
        print(f"{preset:12} {label:14} {taken:8.1f} {'-' if allowed is None else allowed:>8}"
              f"{'  over' if late else ''}")
        if late:
            yield f"{preset} {label}"


def main() -> int:
    logs, budget = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    presets = [path.name[:-len(".junit.xml")] for path in sorted(logs.glob("*.junit.xml"))]
    if not presets:
        print("test.sh: no tests have run yet, so there are no times.", file=sys.stderr)
        return 1
    print(f"{'preset':12} {'label':14} {'seconds':>8} {'budget':>8}")
    late = [name for preset in presets
            for name in over_budget(used(logs, preset, labels_of(preset)), budget.get(preset, {}),
                                    preset)]
    if late:
        print(f"\nOver their budget: {', '.join(late)}.", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
