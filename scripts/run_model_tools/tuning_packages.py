"""The cost model's package, which only tuning needs, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

from run_model_tools import bootstrap
from run_model_tools.pip_site import pip_site

REQUIREMENTS = bootstrap.REPO_ROOT / "scripts" / "requirements-tuning.txt"
FOLDER = bootstrap.BUILD_DIR / "tuning" / "site"


def site() -> Path:
    """The folder to add to PYTHONPATH; it is made when it is asked for first.

    Raises ToolError (3) if the package cannot be had.
    """
    return pip_site(REQUIREMENTS, FOLDER, "the package that tuning learns with",
                    ", or search without it: --tuner ga, random or gridsearch")
