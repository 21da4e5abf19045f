"""What the corpora of all releases have in common: running a release, packing what it made, and
comparing that with what is committed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

Entry = dict[str, Any]


def run_worker(python: Path, folder: Path, worker: Path) -> dict[str, Any]:
    """Runs a worker under a release's interpreter; gives the cases that it made in `folder`."""
    with open(folder / "log", "w+", encoding="utf-8") as log:
        # In the folder, since some releases leave a cache where they are started.
        process = subprocess.Popen([str(python), "-W", "ignore", str(worker),
                                    str(folder)], cwd=folder, stdout=subprocess.PIPE, stderr=log,
                                   text=True)
        for line in process.stdout:
            if sys.stdout.isatty():
                print("  " + line.rstrip(), flush=True)
        if process.wait() != 0:
            log.seek(0)
            raise SystemExit(f"make_artifacts: {worker} failed under {python}:\n"
                             + "\n".join(log.read().strip().splitlines()[-20:]))
    return json.loads((folder / "cases.json").read_text(encoding="utf-8"))


def pack(folder: Path, cases: list[str], path: Path) -> None:
    """One archive a release, members <case>/<file>; equal files give equal archives."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for case in cases:
            for file in sorted((folder / case).rglob("*")):
                if file.is_file():
                    member = zipfile.ZipInfo(file.relative_to(folder).as_posix())
                    member.compress_type = zipfile.ZIP_DEFLATED
                    member.external_attr = 0o644 << 16
                    archive.writestr(member, file.read_bytes())
    path.write_bytes(buffer.getvalue())


def key(entry: Entry) -> str:
    return f"{entry['case']} as {entry['form']} for {entry['machine']}"


def compare_arrays(entry: Entry, folder: Path, archive: zipfile.ZipFile) -> list[str]:
    """Inputs have to be equal, outputs within the tolerance."""
    differences = []
    for file in ("inputs.npz", "expected.npz"):
        member = f"{entry['case']}/{file}"
        with np.load(io.BytesIO(archive.read(member))) as old, np.load(folder / member) as new:
            if old.files != new.files:
                differences.append(f"{member}: the arrays are {new.files}, not {old.files}")
                continue
            for index, array in enumerate(old.files):
                tolerance = entry["tolerances"][index] if file == "expected.npz" else 0.0
                difference = np.abs(old[array].astype("float64") - new[array].astype("float64"))
                if old[array].dtype != new[array].dtype or difference.max() > tolerance:
                    differences.append(f"{member}: {array} differs by {difference.max():g}, "
                                       f"{tolerance:g} is allowed")
    return differences
