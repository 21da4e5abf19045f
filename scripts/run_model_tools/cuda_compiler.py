"""NVIDIA's compiler of CUDA C++: installed into build/cuda when it is needed first."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from run_model_tools.environment import BUILD_DIR, DATA_ROOT
from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.setup.pip_site import pip_site

REQUIREMENTS = DATA_ROOT / "scripts" / "requirements-cuda.txt"
FOLDER = BUILD_DIR / "cuda" / "site"

_LIBRARIES = {"builtins": "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.6",
              "nvrtc": "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
              "nvfatbin": "nvidia/nvfatbin/lib/libnvfatbin.so.12"}


@cache
def libraries() -> dict[str, str]:
    """The paths of its libraries (inside_tvm/devices/code/nvrtc.py), after they were installed."""
    site = pip_site(REQUIREMENTS, FOLDER, "NVIDIA's compiler of CUDA C++",
                    "; other targets need none")
    found = {name: str(site / path) for name, path in _LIBRARIES.items()}
    for library in found.values():
        if not Path(library).is_file():
            raise ToolError(MISMATCH, f"{library} is not there, though {REQUIREMENTS.name} was "
                                      f"installed: remove {FOLDER} and run this again.")
    return found
