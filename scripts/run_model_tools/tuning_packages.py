"""The cost model's package, which only tuning needs, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from run_model_tools import bootstrap
from run_model_tools.errors import MISSING_FILE, ToolError
from run_model_tools.files import locked, sha256_of

REQUIREMENTS = bootstrap.REPO_ROOT / "scripts" / "requirements-tuning.txt"
FOLDER = bootstrap.BUILD_DIR / "tuning" / "site"


def site() -> Path:
    """The folder to add to PYTHONPATH; it is made when it is asked for first.

    Raises ToolError (3) if the package cannot be had.
    """
    stamp = FOLDER / ".requirements.sha256"
    key = sha256_of(REQUIREMENTS)
    with locked(FOLDER.parent / ".site.lock"):
        if stamp.exists() and stamp.read_text() == key:
            return FOLDER
        making = Path(tempfile.mkdtemp(dir=FOLDER.parent, prefix=".site."))
        try:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-deps",
                       "--disable-pip-version-check", "--progress-bar", "off", "--only-binary",
                       ":all:", "--retries", "1", "--timeout", "30", "--target", str(making),
                       "--requirement", str(REQUIREMENTS)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                lines = (result.stderr or result.stdout).strip().splitlines()
                reason = next((l for l in lines if "ERROR" in l), lines[-1] if lines else "nothing")
                raise ToolError(MISSING_FILE, (
                    f"the package that tuning learns with ({REQUIREMENTS.name}) could not be "
                    f"installed: pip says '{reason.strip()}'; check the network and the index in "
                    "your pip configuration, or search without it: --tuner ga, random or "
                    "gridsearch."))
            (making / ".requirements.sha256").write_text(key)
            os.chmod(making, 0o755)
            shutil.rmtree(FOLDER, ignore_errors=True)
            os.replace(making, FOLDER)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return FOLDER
