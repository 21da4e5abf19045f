"""Compiling many models for many targets, with a stand-in for compile_model."""

import json
import subprocess
import sys

import pytest

from run_model_tools.errors import ToolError
from run_model_tools.zoo import build
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.build import Builder, Cell
from run_model_tools.zoo.manifest import choose, read_manifest

COMPILE_MODEL = """
import pathlib, sys
a = sys.argv
target, out = a[a.index("--target") + 1], pathlib.Path(a[a.index("--out") + 1])
artifact = out / a[a.index("--name") + 1] / target
with open(out / "calls", "a") as calls:
    calls.write(" ".join(a[1:]) + "\\n")
if target == "riscv64":
    sys.exit(1 if "--check" in a else print("compile_model: no compiler.", file=sys.stderr) or 2)
if "--check" in a:
    sys.exit(0 if artifact.exists() else 1)
artifact.mkdir(parents=True)
"""
MAKE_GOLDEN = """
import sys
print("make_golden: no model", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def builder(tmp_path, monkeypatch):
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "compile_model").write_text(COMPILE_MODEL)
    (scripts / "make_golden").write_text(MAKE_GOLDEN)
    monkeypatch.setattr(build, "SCRIPTS", scripts)
    monkeypatch.setattr(zoo, "ZOO_DIR", tmp_path / "zoo")
    (tmp_path / "out").mkdir()
    return Builder(tmp_path / "out", "tar,mlf", 3, verified=False, quiet=True)


def test_each_pair_is_made_once(builder, tmp_path):
    models = choose(read_manifest(), ["squeezenet1_1", "resnet18"])
    targets = ["native", "c"]
    assert not builder.check(models, targets)
    cells = builder.compile(models, targets)
    assert cells == [Cell(m.name, t, "made") for m in models for t in targets]
    assert [c.state for c in builder.compile(models, targets)] == ["up to date"] * 4
    assert builder.check(models, targets)
    calls = (tmp_path / "out" / "calls").read_text().splitlines()
    assert all("--forms tar,mlf --no-verify" in call for call in calls)
    assert sum("--check" not in call for call in calls) == 4


def test_a_failure_leaves_the_others(builder):
    models = choose(read_manifest(), ["squeezenet1_1"])
    cells = builder.compile(models, ["riscv64", "native"])
    assert cells == [Cell("squeezenet1_1", "riscv64", "failed", 2, "compile_model: no compiler."),
                     Cell("squeezenet1_1", "native", "made")]


def test_committed_results_are_not_made_again(builder):
    builder.make_golden(choose(read_manifest(), ["squeezenet1_1"]))
    with pytest.raises(ToolError, match="no model") as caught:
        builder.make_golden(choose(read_manifest(), ["seeded_resnet18"]))
    assert caught.value.code == 3


def test_one_waits_for_another(tmp_path):
    """Two processes at the same lock: the second goes on when the first is done."""
    program = ("import sys, time, pathlib\n"
               "from run_model_tools.files import locked\n"
               "folder = pathlib.Path(sys.argv[1])\n"
               "with locked(folder / 'lock'):\n"
               "    assert not (folder / 'busy').exists()\n"
               "    (folder / 'busy').touch(); time.sleep(0.3); (folder / 'busy').unlink()\n")
    scripts = str(build.SCRIPTS)
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)],
                                env={"PYTHONPATH": scripts}) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]


def test_unknown_names_are_refused(command):
    result = command("make_zoo", "--models", "squeezenet1_1", "--targets", "z80", code=2)
    assert "no target 'z80'" in result.stderr
    result = command("make_zoo", "--models", "nothing", code=2)
    assert "no model 'nothing'" in result.stderr


def test_a_model_that_was_named_must_be_had(command, tmp_path):
    env = {"PATH": "/usr/bin:/bin", "http_proxy": "http://127.0.0.1:9",
           "https_proxy": "http://127.0.0.1:9"}
    if zoo.is_up_to_date(choose(read_manifest(), ["resnet18_torchvision"])[0]):
        pytest.skip("resnet18_torchvision is here already")
    arguments = ("make_zoo", "--models", "resnet18_torchvision", "--targets", "native", "--out",
                 tmp_path, "--json")
    result = command(*arguments, env=env, code=3)
    assert "resnet18_torchvision cannot be had" in result.stderr
    assert result.stdout == ""
    result = command(*arguments, "--allow-missing", env=env)
    report = json.loads(result.stdout)
    assert report["artifacts"] == []
    assert report["left_out"][0]["model"] == "resnet18_torchvision"
