"""Today's TVM, which compiles Relax: installed into build/relax when it is needed first."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from run_model_tools.environment import BUILD_DIR, DATA_ROOT, IS_INSTALLED, PACKAGE
from run_model_tools.setup.pip_site import pip_site

REQUIREMENTS = DATA_ROOT / "scripts" / "requirements-relax.txt"
FOLDER = BUILD_DIR / "relax" / "site"


@cache
def site() -> Path:
    """The folder with its packages, after they were installed."""
    return pip_site(REQUIREMENTS, FOLDER, "the compiler of Relax", "; --compiler relay needs none")


def environment() -> dict[str, str]:
    """The variables under which VENV_PYTHON imports it."""
    env = dict(os.environ)
    paths = [str(site())] + ([] if IS_INSTALLED else [str(PACKAGE.parent)])
    env["PYTHONPATH"] = ":".join(paths)
    env["PYTHONNOUSERSITE"] = "1"
    return env
