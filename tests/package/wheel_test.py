"""The wheel, as pip installs it.  RUN_MODEL_PACKAGES is its folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


NEEDS = """
 0x0000000000000001 (NEEDED)             Shared library: [libz.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
Version definition section '.gnu.version_d' contains 1 entry:
  000000: Rev: 1  Flags: BASE  Index: 1  Cnt: 1  Name: GLIBC_2.99
Version needs section '.gnu.version_r' contains 2 entries:
  000000: Version: 1  File: libc.so.6  Cnt: 1
  0x0010:   Name: GLIBC_2.17  Flags: none  Version: 2
  0x0020: Version: 1  File: libz.so.1  Cnt: 1
  0x0030:   Name: ZLIB_1.2.9  Flags: none  Version: 3
"""


@pytest.mark.parametrize("name,present,release", [
    ("GLIBC_2.17", {"libz.so.1"}, 31), ("GLIBC_2.33", {"libz.so.1"}, 33),
    ("GLIBC_2.17", set(), None),  # a libz that it does not bring
    ("GLIBC_ABI_DT_RELR", {"libz.so.1"}, 36), ("GLIBCXX_3.4.29", {"libz.so.1"}, 34),
    ("GLIBCXX_3.4.30", {"libz.so.1"}, 35), ("CXXABI_1.3.14", {"libz.so.1"}, 39),
    ("GLIBCXX_3.4.99", {"libz.so.1"}, None), ("GLIBC_PRIVATE", {"libz.so.1"}, None),
    ("CXXABI_ARM_1.3.3", {"libz.so.1"}, 31)])
def test_the_oldest_system_that_has_what_is_asked_for(monkeypatch, name, present, release):
    monkeypatch.syspath_prepend(ROOT / "cmake/package")
    from wheel_tag import system_asked_for

    assert system_asked_for(NEEDS.replace("GLIBC_2.17", name), present) == release


def test_the_wheel_says_what_its_libraries_ask_for(tmp_path: Path) -> None:
    """As the dynamic loader would: by what the libraries here define."""
    (wheel,) = Path(os.environ["RUN_MODEL_PACKAGES"]).glob("run_model-*.whl")
    glibc = int(re.search(r"-manylinux_2_(\d+)_", wheel.name).group(1))
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, tmp_path], check=True)
    asked = set()
    for library in (tmp_path / "run_model").glob("*.so*"):
        asked |= set(re.findall(rb"GLIBC_2\.(\d+)\0", library.read_bytes()))
    assert glibc >= max(map(int, asked)) and glibc <= int(os.confstr("CS_GNU_LIBC_VERSION")[8:])
