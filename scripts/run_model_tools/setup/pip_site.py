"""Python packages that one tool alone needs, in a folder of their own: build/venv stays as it
is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from run_model_tools.errors import MISSING_FILE, ToolError
from run_model_tools.files import locked, sha256_of
from run_model_tools.progress import stage


def pip_site(requirements: Path, folder: Path, what: str, otherwise: str = "") -> Path:
    """`folder`, to be added to PYTHONPATH, with just what the file `requirements` pins.

    It is made where it is missing or of another `requirements`; what the packages themselves ask
    for is not installed. `what` names the packages, and `otherwise` what to do without them, in the
    message of the ToolError (3) that is raised if they cannot be had.
    """
    stamp = folder / ".requirements.sha256"
    key = sha256_of(requirements)
    with locked(folder.parent / f".{folder.name}.lock"):
        if stamp.exists() and stamp.read_text() == key:
            return folder
        making = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-deps",
                       "--disable-pip-version-check", "--progress-bar", "off", "--only-binary",
                       ":all:", "--retries", "1", "--timeout", "30", "--target", str(making),
                       "--requirement", str(requirements)]
            with stage(f"installing {what}"):
                result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise ToolError(MISSING_FILE, (
                    f"{what} ({requirements.name}) could not be installed: pip says "
                    f"'{why_pip_failed(result)}'; check the network and the index in your pip "
                    f"configuration{otherwise}."))
            (making / ".requirements.sha256").write_text(key)
            os.chmod(making, 0o755)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(making, folder)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return folder


def why_pip_failed(result: subprocess.CompletedProcess[str]) -> str:
    """The line that says it, of all that pip wrote."""
    lines = (result.stderr or result.stdout).strip().splitlines() or ["nothing"]
    return next((line for line in lines if "ERROR" in line), lines[-1]).strip()
