"""The package as pip installs it: everything that is in it, and commands that start there."""

import importlib
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.full  # each command starts a Python of its own
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder for PYTHONPATH with what a wheel has; nothing of the repository is on the path."""
    folder = tmp_path_factory.mktemp("installed")
    done = subprocess.run(
        [sys.executable, "-c", "import setuptools; setuptools.setup()", "-q",
         "egg_info", "--egg-base", str(folder), "build_py", "--build-lib", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def run(installed, function, *arguments, **variables):
    module, name = function.split(":")
    return subprocess.run(
        [sys.executable, "-c", f"from {module} import {name}; {name}()", *arguments], cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed), **variables}, capture_output=True,
        text=True, check=False)


def test_every_module_is_in_it(installed):
    source = ROOT / "scripts" / "run_model_tools"
    modules = {path.relative_to(source) for path in source.rglob("*.py")}
    there = {path.relative_to(installed / "run_model_tools")
             for path in (installed / "run_model_tools").rglob("*.py")}
    # Fixtures are made for the tests of the repository.
    assert {path for path in modules - there if path.parts[0] != "fixtures"} == set()
    assert there <= modules


@pytest.mark.parametrize("pattern", [
    "kernels/c/*", "kernels/choices/*.json", "kernels/records/*", "artifacts/targets.json",
    "artifacts/tolerances.json", "artifacts/zoo*.json", "scripts/requirements-tuning.txt"])
def test_the_data_is_in_it(installed, pattern):
    wanted = list(ROOT.glob(pattern))
    assert wanted
    for path in wanted:
        copy = installed / "run_model_tools" / "share" / path.relative_to(ROOT)
        assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name, function", re.findall(
    r'^(\w+) = "(run_model_tools\.[\w.]+:main)"$', PYPROJECT, re.MULTILINE))
def test_commands_start(installed, name, function):
    done = run(installed, function, "--help")
    assert done.returncode == 0, done.stderr
    # The program of the repository runs the same function.
    program = (ROOT / "scripts" / name).read_text(encoding="utf-8")
    assert f'launch("{function.removeprefix("run_model_tools.").removesuffix(":main")}"' in program


def test_its_compiler_is_found_where_it_is_named(installed, classifier):
    compile_model = "run_model_tools.compiling.compile_model:main"
    nowhere = run(installed, compile_model, str(classifier),
                  RUN_MODEL_TOOLS_BUILD=str(installed / "no"))
    assert nowhere.returncode == 3 and "RUN_MODEL_TOOLS_BUILD" in nowhere.stderr
    done = run(installed, compile_model, str(classifier), "--kernels", "stock",
               RUN_MODEL_TOOLS_BUILD=str(ROOT / "build"))
    assert done.returncode == 0, done.stderr
    assert (installed / "artifacts" / "tiny" / "native" / "model.so").is_file()


def test_the_environment_has_what_the_package_asks_for():
    """build/venv's pinned versions are within the ranges of pyproject.toml."""
    requirements = importlib.import_module("packaging.requirements")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", (
        ROOT / "scripts" / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE))
    dependencies = re.search(r"^dependencies = \[\n(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    asked = [requirements.Requirement(text) for text in re.findall(r'"([^"]+)"', dependencies[1])]
    assert asked
    for requirement in asked:
        assert requirement.specifier.contains(pinned[requirement.name]), requirement
