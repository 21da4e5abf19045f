"""The artifact that run_model takes, as its --inspect tells: nothing is loaded."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from run_model_tools.errors import FAILED_RUN, ToolError


@dataclass(frozen=True)
class Artifact:
    """fingerprint: of the library, the parameters and the metadata."""

    library: Path
    graph: Path | None
    params: Path | None
    metadata: dict[str, Any]
    target: str | None
    fingerprint: str


def find_artifact(program: Path, name: str, artifacts: Path, target: str | None) -> Artifact:
    """Raises ToolError with run_model's own words and exit code."""
    command = [str(program), "--inspect", name, str(artifacts), "--json"]
    if target is not None:
        command += ["--target", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
        if "error" in report:
            raise ToolError(report["error"]["code"], report["error"]["message"])
        found = report["artifact"]
        paths = [Path(found[part]) if found[part] else None
                 for part in ("library", "graph", "params", "metadata")]
    except (ValueError, KeyError, TypeError):
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["nothing"]
        raise ToolError(FAILED_RUN, f"{program} --inspect did not describe the artifact, but said "
                                    f"'{said[0]}'.") from None
    library, graph, params, metadata = paths
    assert library is not None
    digest = xxhash.xxh3_64()
    for path in paths:
        if path is not None:
            digest.update(path.read_bytes())
    described = json.loads(metadata.read_text(encoding="utf-8")) if metadata else {}
    return Artifact(library, graph, params, described, found["target"], digest.hexdigest())
