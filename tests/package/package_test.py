"""The packages that cpack made: what is in them, and that what dpkg installs of them works.

RUN_MODEL_PACKAGES is their folder, RUN_MODEL_ARCHITECTURE Debian's name of the architecture,
RUN_MODEL_EMULATOR the command that runs its programs (empty on a machine of that kind), and
RUN_MODEL_INSTALLED_PROGRAMS the programs that belong in them.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(os.environ["RUN_MODEL_PACKAGES"])
ARCHITECTURE = os.environ["RUN_MODEL_ARCHITECTURE"]
EMULATOR = shlex.split(os.environ["RUN_MODEL_EMULATOR"])
PROGRAMS = os.environ["RUN_MODEL_INSTALLED_PROGRAMS"].split(",")
VERSION = re.search(r"project\(run_model VERSION ([0-9.]+)",
                    (ROOT / "CMakeLists.txt").read_text())[1]
DEBIAN_PACKAGE = PACKAGES / f"run-model_{VERSION}_{ARCHITECTURE}.deb"
ARCHIVE = PACKAGES / f"run-model_{VERSION}_{ARCHITECTURE}.tar.gz"
PYTHON_PACKAGE = PACKAGES / f"python3-{DEBIAN_PACKAGE.name}"

pytestmark = pytest.mark.skipif(shutil.which("dpkg") is None, reason="dpkg is not there")


def output_of(*command: object) -> str:
    return subprocess.run(list(map(str, command)), check=True, capture_output=True,
                          text=True).stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(DEBIAN_PACKAGE, tmp_path_factory.mktemp("root"))


def install(package: Path, root: Path) -> Path:
    """Has dpkg install the package into a folder, as if that were a machine's root.

    Neither the rights of root nor the other packages are there; the rest is dpkg's real work.
    """
    for folder in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    subprocess.run(["dpkg", f"--root={root}", f"--log={root}/dpkg.log", "--force-not-root",
                    "--force-depends", "--force-architecture", "--force-bad-path", "--install",
                    package], check=True, capture_output=True)
    return root


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive's only folder, unpacked."""
    folder = tmp_path_factory.mktemp("archive")
    output_of("tar", "-xf", ARCHIVE, "-C", folder)
    assert [path.name for path in folder.iterdir()] == [f"run-model_{VERSION}_{ARCHITECTURE}"]
    return next(folder.iterdir())


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


def field(name: str, package: Path = DEBIAN_PACKAGE) -> str:
    return output_of("dpkg-deb", "--field", package, name).strip()


def test_the_fields() -> None:
    assert field("Package") == "run-model"
    assert field("Version") == VERSION
    assert field("Architecture") == ARCHITECTURE
    assert (field("Section"), field("Priority")) == ("science", "optional")
    assert field("Maintainer") == "run_model developers"
    assert "TVM" in field("Description")
    for package in ("libc6", "libstdc++6", "libgcc-s1"):
        assert re.search(rf"(^|, ){re.escape(package)}( \(>= [0-9.]+\))?(,|$)", field("Depends"))


def test_holds_what_a_board_needs_and_no_more(installed: Path) -> None:
    files = files_below(installed / "usr")
    data = {"share/run_model/labels/imagenet.txt", "share/run_model/labels/README.md",
            "share/run_model/targets.json", "share/doc/run-model/README.md",
            "share/doc/run-model/LICENSE", "share/doc/run-model/copyright"}
    if "check_zoo" in PROGRAMS:
        data.add("share/run_model/tolerances.json")
    if "rpc_server" in PROGRAMS:
        data |= {"bin/rpc_auth_proxy", "lib/systemd/system/rpc_server.service"}
    for program in PROGRAMS:
        data |= {f"bin/{program}", f"share/man/man1/{program}.1.gz",
                 f"share/bash-completion/completions/{program}"}
    assert set(files) == data
    for library in ("gflags", "glog", "nlohmann", "stb", "xxhash", "zlib"):
        assert library in files["share/doc/run-model/copyright"].decode()


def test_the_archive_holds_the_same(installed: Path, unpacked: Path) -> None:
    assert files_below(unpacked) == files_below(installed / "usr")


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_are_stripped_and_depend_on_what_is_named(program: str, installed: Path) -> None:
    path = installed / "usr/bin" / program
    assert path.stat().st_mode & 0o777 == 0o755
    sections = output_of("readelf", "--section-headers", "--wide", path)
    assert ".dynsym" in sections and ".symtab" not in sections and ".debug_" not in sections
    packages = {"libc.so.6": "libc6", "libm.so.6": "libc6", "libstdc++.so.6": "libstdc++6",
                "libgcc_s.so.1": "libgcc-s1", "libatomic.so.1": "libatomic1"}
    dynamic = output_of("readelf", "--dynamic", "--version-info", "--wide", path)
    for library in re.findall(r"Shared library: \[(.*?)\]", dynamic):
        assert library.startswith("ld-linux") or packages[library] in field("Depends")
    newest = max(tuple(map(int, text.split(".")))
                 for text in re.findall(r"GLIBC_([0-9.]+)", dynamic))
    stated = re.search(r"libc6 \(>= ([0-9.]+)\)", field("Depends"))[1]
    assert tuple(map(int, stated.split("."))) >= newest


@pytest.mark.parametrize(("program", "most"), [
    ("run_model", 2_450_000), ("check_zoo", 2_100_000), ("rpc_server", 1_550_000)])
def test_programs_are_small(program: str, most: int, installed: Path) -> None:
    if program not in PROGRAMS:
        pytest.skip("not built")
    # Other machines' linkers do not fold functions that are alike.
    allowance = 1 if ARCHITECTURE == "amd64" else 1.15
    assert (installed / "usr/bin" / program).stat().st_size <= most * allowance


def test_python_has_a_package_of_its_own(tmp_path: Path) -> None:
    root = install(PYTHON_PACKAGE, tmp_path / "root")
    module = root / "usr/lib/python3/dist-packages/run_model.py"
    assert module.read_bytes() == (ROOT / "bindings/python/run_model.py").read_bytes()
    (library,) = root.glob("usr/lib/**/librun_model.so.0")
    needed = re.findall(r"Shared library: \[(lib(?:jpeg|z))\.so",
                        output_of("readelf", "--dynamic", "--wide", library))
    depends = field("Depends", PYTHON_PACKAGE)
    assert all({"libjpeg": "libjpeg62-turbo", "libz": "zlib1g"}[name] in depends for name in needed)
    assert "python3-numpy" in depends and field("Package", PYTHON_PACKAGE) == "python3-run-model"
    assert output_of("dpkg-deb", "--ctrl-tarfile", PYTHON_PACKAGE).count("ldconfig") == 1
    if not EMULATOR:  # whose Python is for this machine
        code = (f"import sys; sys.path.insert(0, {str(module.parent)!r})\n"
                "import run_model; print(run_model.__version__)")
        assert output_of(sys.executable, "-c", code) == f"{VERSION}\n"


@pytest.mark.skipif("rpc_server" not in PROGRAMS, reason="not built")
def test_the_proxy_runs_by_itself(installed: Path, tmp_path: Path) -> None:
    proxy = installed / "usr/bin/rpc_auth_proxy"
    assert proxy.stat().st_mode & 0o777 == 0o755
    assert "rpc_auth_proxy board.local:9090 --key-file board.key" in output_of(proxy, "--help")
    failed = subprocess.run([proxy, "127.0.0.1:1", "--key-file", tmp_path / "none"],
                            capture_output=True, text=True, check=False)
    assert failed.returncode == 3 and "cannot be read" in failed.stderr


@pytest.mark.skipif("rpc_server" not in PROGRAMS, reason="not built")
def test_the_unit_confines_the_server(installed: Path, tmp_path: Path) -> None:
    text = (installed / "usr/lib/systemd/system/rpc_server.service").read_text()
    lines = text.splitlines()
    assert {"DynamicUser=yes", "ProtectSystem=strict", "TasksMax=512", "MemoryMax=80%",
            "ExecStart=rpc_server $RPC_SERVER_FLAGS"} <= set(lines)
    if shutil.which("systemd-analyze") is None:
        return
    # systemd looks for programs in the system's own folders.
    unit = tmp_path / "rpc_server.service"
    unit.write_text(text.replace("ExecStart=", f"ExecStart={installed}/usr/bin/"))
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True,
                             text=True, check=False)
    assert [line for line in checked.stderr.splitlines() if "rpc_server" in line] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run(program: str, installed: Path, unpacked: Path) -> None:
    for prefix in (installed / "usr", unpacked):
        assert output_of(*EMULATOR, prefix / "bin" / program,
                         "--version") == f"{program} {VERSION}\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_man_pages_can_be_read(program: str, installed: Path) -> None:
    path = installed / f"usr/share/man/man1/{program}.1.gz"
    assert f".TH {program.upper()} 1" in gzip.decompress(path.read_bytes()).decode()
    if shutil.which("man") is None:
        return
    shown = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", path], check=True,
                           capture_output=True, text=True, env={**os.environ, "MANWIDTH": "80"})
    assert "EXIT STATUS" in shown.stdout
    assert shown.stderr == ""


@pytest.mark.skipif(bool(EMULATOR), reason="the artifact is for this machine")
def test_the_installed_program_classifies_a_picture(installed: Path, tmp_path: Path) -> None:
    golden = json.loads((ROOT / "artifacts/golden/squeezenet1_1/chelsea.json").read_text())
    for labels in ([], ["imagenet.txt"]):
        result = subprocess.run(
            [installed / "usr/bin/run_model", "squeezenet1_1", ROOT / "artifacts",
             ROOT / "images/chelsea.png", *labels, "--target", "native", "--json"],
            cwd=tmp_path, check=True, capture_output=True, text=True)
        best = json.loads(result.stdout)["top"][0]
        assert (best["index"], best["label"]) == (282, golden["top"][0]["label"])
