"""scripts/lint in a small repository, with stand-ins that write down how tools are called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from conftest import ROOT

TOOLS = ("clang-format", "clang-tidy", "mypy", "ruff", "shellcheck", "vermin")
FILES = {
    "ARCHITECTURE.md": "| room | holds | may include | libraries |\n|---|---|---|---|\n"
                       "| `base/` | all | – | – |\n",
    "base/a.cc": "#include <span>\n",
    "base/b.h": "",
    "tests/a_test.cc": "",
    "tool": "#!/usr/bin/env python3\n",
    "module.py": "",
    "scripts/run_model_tools/inside_tvm/run.py": "",
    "scripts/run_model_tools/inside_tvm/relax/run.py": "",
    "run.sh": "#!/bin/sh\n",
    "run": "#!/usr/bin/env bash\n",
    "text": "no program\n",
    ".gitignore": "build/\n__pycache__/\n",
}


class Repository:
    def __init__(self, folder):
        self.root = folder
        for name, text in FILES.items():
            self.write(name, text)
        for name in ("lint", "checks"):
            source = ROOT / "scripts" / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, self.path(f"scripts/{name}"))
        self.write("scripts/make_venv.sh", "#!/bin/sh\n").chmod(0o755)
        for tool in TOOLS:
            self.tool(f"lint/bin/{tool}", "")
        self.tool("programs/cmake", "")
        self.write("build/venv/bin/python", "")
        compiled = [{"file": str(self.path(name))} for name in FILES if name.endswith(".cc")]
        for preset in ("separate", "host"):
            self.write(f"build/{preset}/compile_commands.json", json.dumps(compiled))
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        subprocess.run(["git", "add", "--", *[name for name in FILES if name != "run"]], cwd=folder,
                       check=True)

    def path(self, name):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name, text):
        self.path(name).write_text(text)
        return self.path(name)

    def tool(self, path, body):
        """A program in build/ that notes how it is called, and then does what `body` says."""
        name = os.path.basename(path)
        script = f'#!/bin/sh\necho "{name} $*" >> {self.root}/build/calls\n{body}\n'
        self.write(f"build/{path}", script).chmod(0o755)

    def lint(self, *arguments):
        self.write("build/calls", "")
        path = f"{self.root}/build/programs:{os.environ['PATH']}"
        result = subprocess.run([self.root / "scripts/lint", *arguments], text=True, check=False,
                                capture_output=True, timeout=60, cwd=os.path.expanduser("~"),
                                env={**os.environ, "PATH": path})
        self.calls = sorted(self.path("build/calls").read_text().splitlines())
        return result


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def called(repository, tool):
    """The words after the tool's name, of all of its calls."""
    return {word for call in repository.calls if call.startswith(f"{tool} ")
            for word in call.split()[1:]}


def test_every_check_sees_its_files(repository):
    result = repository.lint()
    assert result.returncode == 0, result.stdout + result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        "includes", "names", "paths", "clang-format", "ruff", "shellcheck", "vermin", "mypy",
        "clang-tidy"]
    assert all(" ... ok (" in line for line in result.stdout.splitlines())
    assert {"base/a.cc", "base/b.h", "tests/a_test.cc"} <= called(repository, "clang-format")
    # One that Git has not been told of counts too.
    assert {"run.sh", "run"} <= called(repository, "shellcheck")
    assert not called(repository, "shellcheck") & {"tool", "text", "module.py"}
    assert {word for word in called(repository, "vermin") if word.endswith(".py")} == {
        "scripts/run_model_tools/inside_tvm/run.py"}
    assert "base/a.cc" in called(repository, "clang-tidy")
    assert not called(repository, "clang-tidy") & {"tests/a_test.cc", "base/b.h"}


def test_the_whole_tree_is_looked_at_as_it_is_compiled(repository):
    """That is, with several sources in one file; a file that is named is looked at alone."""
    units = [repository.write(f"build/host/{room}/Unity/unity_0_cxx.cxx",
                              f'#include "{repository.path(source)}"\n')
             for room, source in (("base", "base/a.cc"), ("tests", "tests/a_test.cc"))]
    repository.write("build/host/compile_commands.json",
                     json.dumps([{"file": str(unit)} for unit in units]))
    assert repository.lint("clang-tidy").returncode == 0
    assert "build/host/base/Unity/unity_0_cxx.cxx" in called(repository, "clang-tidy")
    assert not called(repository, "clang-tidy") & {"build/host/tests/Unity/unity_0_cxx.cxx"}
    named = repository.path("base/a.cc")
    assert repository.lint("clang-tidy", "--files", str(named)).returncode == 0
    assert "base/a.cc" in called(repository, "clang-tidy")


def test_a_finding_fails_and_the_others_still_run(repository):
    repository.tool("lint/bin/ruff", "echo 'module.py:1: bad'; exit 1")
    repository.write("base/a.cc", '#include "base/c.h"\n')
    result = repository.lint("--fast")
    assert result.returncode == 1
    assert "module.py:1: bad" in result.stdout and "ruff ... FAILED" in result.stdout
    assert 'base/a.cc:1: "base/c.h" is no file' in result.stdout
    assert "lint: includes, ruff found" in result.stderr
    assert "mypy ... ok" in result.stdout and not called(repository, "clang-tidy")


def test_a_tool_that_crashes_without_a_word_is_no_success(repository):
    repository.tool("lint/bin/mypy", "exit 2")
    result = repository.lint("mypy")
    assert result.returncode == 1 and "ended with 2" in result.stdout


def test_clang_tidy_with_nothing_to_look_at_is_no_success(repository):
    repository.write("build/host/compile_commands.json", "[]")
    result = repository.lint("clang-tidy")
    assert result.returncode == 1 and "no file of the preset 'host'" in result.stdout
    repository.tool("programs/cmake", "echo 'CMake Error: no compiler' >&2; exit 1")
    result = repository.lint("clang-tidy")
    assert result.returncode == 1 and "CMake Error: no compiler" in result.stdout


def test_only_named_checks_and_files(repository):
    result = repository.lint("ruff", "clang-format", "--files", str(repository.path("module.py")),
                             str(repository.path("tool")))
    assert result.returncode == 0, result.stdout
    assert {"module.py", "tool"} <= called(repository, "ruff")
    assert not called(repository, "clang-format") & {"module.py", "base/a.cc"}
    assert not called(repository, "mypy")


def test_fix(repository):
    assert repository.lint("--fix", "ruff", "clang-format").returncode == 0
    assert "--fix" in called(repository, "ruff") and "-i" in called(repository, "clang-format")


def test_a_check_that_is_not_there(repository):
    result = repository.lint("spelling")
    assert result.returncode == 2
    assert "there is no check 'spelling'; there are includes, names, paths" in result.stderr
