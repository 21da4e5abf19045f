"""The wheel, as pip installs it.  RUN_MODEL_PACKAGES is its folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_what_pip_installs_names_the_cat(tmp_path: Path) -> None:
    (wheel,) = Path(os.environ["RUN_MODEL_PACKAGES"]).glob("run_model-*.whl")
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet",
                    "--disable-pip-version-check", "--target", tmp_path, wheel], check=True)
    code = ("import json, sys, run_model\n"
            "model = run_model.Model(sys.argv[1], 'squeezenet1_1')\n"
            "print(json.dumps([run_model.__version__, run_model.__file__,"
            " model.see(sys.argv[2])[0]['top'][0]['index']]))")
    done = subprocess.run([sys.executable, "-c", code, ROOT / "artifacts",
                           ROOT / "images/chelsea.png"], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)})
    version, place, best = json.loads(done.stdout)
    assert f"-{version}-" in wheel.name and Path(place).parent == tmp_path / "run_model"
    assert best == 282

    # What Debian has and other systems may not is in it, and is what gets loaded.
    library = tmp_path / "run_model/librun_model.so"
    loaded = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"(lib(?:jpeg|z)\.so\.\d+) => (\S+)", loaded)
    assert {Path(path).parent for _, path in needed} <= {tmp_path / "run_model"}, loaded
    shown = subprocess.run([sys.executable, "-m", "pip", "list", "--path", tmp_path, "--format",
                            "json"], check=True, capture_output=True, text=True).stdout
    assert {"name": "run_model", "version": version} in json.loads(shown)
