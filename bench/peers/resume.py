"""A report that an earlier run of the bench has written, to go on with."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.results import SCHEMA_VERSION

#: Settings that do not change what a figure means: how long rounds may go on is said of each.
_FREE = {"minutes"}


@dataclass
class Earlier:
    """networks, runners, left_out: as in reports. busy: what other programs used of the CPUs."""

    networks: dict[str, dict] = field(default_factory=dict)
    runners: dict[str, dict] = field(default_factory=dict)
    left_out: list[dict] = field(default_factory=list)
    busy: float = 0.0


def earlier_report(path: Path | None, settings: dict[str, Any]) -> Earlier:
    """What `path` has; nothing where there is no such file. Ends the program where it was measured
    with other settings, which figures side by side have to have in common."""
    if path is None or not path.exists():
        return Earlier()
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["schema_version"] != SCHEMA_VERSION:
            sys.exit(f"{path} has schema version {report['schema_version']}, and {SCHEMA_VERSION} "
                     "is expected: leave --resume out to measure anew.")
        for key in sorted(settings.keys() - _FREE):
            if report["settings"].get(key) != settings[key]:
                sys.exit(f"{path} was measured with {key} {report['settings'].get(key)}, not "
                         f"{settings[key]}: leave --resume out to measure anew, or take another "
                         "file.")
        # What no network had is looked for again: it may be installed by now.
        left_out = [item for item in report["left_out"] if item["network"] in report["networks"]]
        return Earlier(report["networks"], report["runners"], left_out, report["machine"]["busy"])
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path} is no report of this bench ({error!r}): leave --resume out to measure "
                 "anew.")
