"""The shell scripts, in a copy of scripts/ with stand-ins for the programs that they call."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import ROOT


class Sandbox:
    """A repository holding scripts/ only, and a folder of programs that come first in PATH."""

    def __init__(self, folder):
        self.root = folder / "repository"
        self.programs = folder / "programs"
        self.programs.mkdir()
        shutil.copytree(ROOT / "scripts", self.root / "scripts")

    def program(self, name, body):
        path = self.programs / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run(self, script, *arguments, prefix=(), **env):
        return subprocess.run(
            [*prefix, str(self.root / "scripts" / script), *arguments], text=True, check=False,
            capture_output=True, timeout=60,
            env={"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.root), **env})

    def bash(self, body):
        """Runs lines of bash after sourcing lib/steps.sh."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"source {self.root}/scripts/lib/steps.sh\n{body}"],
            capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def sandbox(tmp_path):
    return Sandbox(tmp_path)


INSTALLED = 'shift 2; for p in "$@"; do echo "installed $p"; done'
NOTHING_BUT_CMAKE = 'echo "installed cmake"; echo "dpkg-query: no packages found" >&2; exit 1'


def test_steps_are_numbered_and_timed(sandbox):
    result = sandbox.bash("plan_steps 2; fresh() { [[ ${1:-} != --check ]]; }\n"
                          "run_step 'one' true; run_step 'two' fresh")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "[1/2] one ... already done"
    assert lines[1].startswith("[2/2] two ... done (") and lines[1].endswith(" s)")


def test_a_failing_step_shows_its_log_and_ends_the_script(sandbox):
    result = sandbox.bash("plan_steps 1; broken() { [[ ${1:-} != --check ]] || return 1; "
                          "echo 'no route to host' >&2; return 7; }\nrun_step 'fetch it' broken\n"
                          "echo reached")
    assert result.returncode == 7
    assert "[1/1] fetch it ... FAILED" in result.stdout and "reached" not in result.stdout
    assert "no route to host" in result.stderr
    assert (sandbox.root / "build/logs/fetch_it.log").read_text() == "no route to host\n"


def test_an_interrupt_ends_the_step_too(sandbox):
    process = subprocess.Popen(
        ["bash", "-c", f"source {sandbox.root}/scripts/lib/steps.sh; plan_steps 1\n"
         "slow() { bash -c 'echo $$ > " + str(sandbox.root) + "/pid; sleep 60; true'; }\n"
         "run_always slow slow"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    pid_file = sandbox.root / "pid"
    while not (pid_file.exists() and pid_file.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    step = int(pid_file.read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 130
    while os.path.exists(f"/proc/{step}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{step}")


def test_stamps_remember_their_inputs(sandbox):
    result = sandbox.bash("stamp_is x 1 && exit 9; write_stamp x 1; stamp_is x 1; "
                          "stamp_is x 2 && exit 9; echo fine")
    assert result.stdout == "fine\n", result.stderr


def test_packages_that_are_there_are_not_installed(sandbox):
    sandbox.program("dpkg-query", INSTALLED)
    sandbox.program("apt-get", "echo called >&2; exit 1")
    assert sandbox.run("install_packages.sh", "--check").returncode == 0
    result = sandbox.run("install_packages.sh")
    assert result.returncode == 0 and "called" not in result.stderr


def test_missing_packages_are_named(sandbox):
    sandbox.program("dpkg-query", NOTHING_BUT_CMAKE)
    assert sandbox.run("install_packages.sh", "--check").returncode == 1
    listed = sandbox.run("install_packages.sh", "--list").stdout.split()
    assert "ninja-build" in listed and "maven" in listed and "cmake" not in listed


@pytest.mark.parametrize("failing, says", [
    ("update", "could not be reached"), ("install", "could not be installed")])
def test_apt_failures_are_explained(sandbox, failing, says):
    sandbox.program("dpkg-query", NOTHING_BUT_CMAKE)
    sandbox.program("sudo", 'exec "$@"')
    sandbox.program("apt-get", f'[[ " $* " != *" {failing} "* ]]')
    result = sandbox.run("install_packages.sh")
    assert result.returncode == 1 and says in result.stderr, result.stderr


def as_nobody(folder):
    """What to put before a command so that it is not run by root; nobody gets to see `folder`."""
    if os.geteuid() != 0:
        return ()
    while folder.stat().st_mode & 0o5 != 0o5:
        folder.chmod(folder.stat().st_mode | 0o5)
        folder = folder.parent
    return ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def test_sudo_is_used_by_others_than_root(sandbox, tmp_path):
    sandbox.program("dpkg-query", NOTHING_BUT_CMAKE)
    sandbox.program("sudo", 'echo "$@"')
    result = sandbox.run("install_packages.sh", prefix=as_nobody(tmp_path))
    assert result.returncode == 0, result.stderr
    commands = [line for line in result.stdout.splitlines() if "apt-get" in line]
    assert len(commands) == 2
    assert commands[0].endswith(" update") and " install " in commands[1] and "maven" in commands[1]
    assert all("DEBIAN_FRONTEND=noninteractive" in line for line in commands)


def test_other_systems_are_told_what_to_do(sandbox):
    for name in ("bash", "dirname", "basename", "env"):
        (sandbox.programs / name).symlink_to(shutil.which(name))
    result = sandbox.run("install_packages.sh", PATH=str(sandbox.programs))
    assert result.returncode == 1
    assert "no dpkg" in result.stderr and "RUN_MODEL_SKIP_PACKAGES" in result.stderr
    assert sandbox.run("install_packages.sh", RUN_MODEL_SKIP_PACKAGES="1",
                       PATH=str(sandbox.programs)).returncode == 0


def test_maven_failures_are_explained_and_leave_nothing(sandbox):
    sandbox.program("mvn", "echo 'Unknown host' >&2; exit 1")
    assert sandbox.run("install_compiler.sh", "--check").returncode == 1
    result = sandbox.run("install_compiler.sh")
    assert result.returncode == 1
    assert "Unknown host" in result.stderr and "Maven Central" in result.stderr
    assert list((sandbox.root / "build").iterdir()) == []


def test_another_compiler_than_the_pinned_one_is_refused(sandbox):
    sandbox.program("mvn", '''
for argument; do [[ $argument == -Dunpack.dir=* ]] && to=${argument#*=}/unpacked/org/bytedeco; done
mkdir -p "$to"/tvm/linux-x86_64/python/tvm "$to"/{llvm,dnnl,openblas}/linux-x86_64
touch "$to"/tvm/linux-x86_64/python/tvm/libtvm.so "$to"/llvm/linux-x86_64/{clang,llvm-mca}
for p in llvm dnnl openblas; do touch "$to/$p/linux-x86_64/lib$p.so.1"; done''')
    result = sandbox.run("install_compiler.sh")
    assert result.returncode == 1 and "SHA256SUMS" in result.stderr
    assert not (sandbox.root / "build" / "tvm").exists()


def test_pip_failures_are_explained_and_tried_again(sandbox):
    result = sandbox.run("make_venv.sh", PIP_NO_INDEX="1")
    assert result.returncode == 1 and "Python package index" in result.stderr, result.stderr
    assert sandbox.run("make_venv.sh", "--check").returncode == 1


def test_an_unsuitable_python_is_named(sandbox):
    sandbox.program("python9", 'if [[ $1 == -V ]]; then echo "Python 9.9"; else exit 1; fi')
    result = sandbox.run("make_venv.sh", RUN_MODEL_PYTHON=str(sandbox.programs / "python9"))
    assert result.returncode == 1 and "Python 9.9" in result.stderr
    result = sandbox.run("make_venv.sh", RUN_MODEL_PYTHON="/no/python")
    assert result.returncode == 1 and "/no/python was not found" in result.stderr


def test_tools_say_what_to_do_where_nothing_is_set_up(sandbox):
    for name in ("compile_model", "make_golden", "fetch_zoo", "make_zoo"):
        result = sandbox.run(name, "--help")
        assert result.returncode == 3
        assert "scripts/setup.sh" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("script", ["install_packages.sh", "install_compiler.sh", "make_venv.sh",
                                    "prepare_squeezenet.sh"])
def test_unknown_arguments_are_refused(sandbox, script):
    result = sandbox.run(script, "--frobnicate")
    assert result.returncode == 1 and "--frobnicate" in result.stderr
