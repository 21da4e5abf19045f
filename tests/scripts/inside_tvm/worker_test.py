"""What the worker finds out by itself, without TVM."""

import ast
import os
import signal
import subprocess
import sys

import onnx
import psutil
import pytest
from conftest import ROOT

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.building import record_kind
from run_model_tools.inside_tvm.cpu import cpu_flags, x86_level
from run_model_tools.inside_tvm.importing import know_element_types

V2 = {"sse4_2", "popcnt", "ssse3", "cx16"}
V3 = V2 | {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@pytest.mark.parametrize("flags, level", [
    (set(), "x86-64"), (V2, "x86-64-v2"), (V3, "x86-64-v3"), (V4, "x86-64-v4"),
    (V4 - {"avx512bw"}, "x86-64-v3"), (V4 - {"fma"}, "x86-64-v2"), (V4 - V2, "x86-64")])
def test_levels_need_all_their_flags(flags, level):
    assert x86_level(flags) == level


def test_this_machines_flags_are_read():
    assert cpu_flags() & {"sse2", "asimd", "fp", "neon"}


def test_element_types_are_known_where_onnx_has_no_table_of_them_any_more(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx.mapping", None)
    monkeypatch.delattr(onnx, "mapping", raising=False)
    know_element_types()
    from onnx.mapping import TENSOR_TYPE_TO_NP_TYPE

    types = {"FLOAT": "float32", "UINT8": "uint8", "INT8": "int8", "UINT16": "uint16",
             "INT16": "int16", "INT32": "int32", "INT64": "int64", "STRING": "object",
             "BOOL": "bool", "FLOAT16": "float16", "DOUBLE": "float64", "UINT32": "uint32",
             "UINT64": "uint64"}
    assert {name: str(TENSOR_TYPE_TO_NP_TYPE[onnx.TensorProto.DataType.Value(name)])
            for name in types} == types


AUTOTVM = ('{"input": ["llvm", "dense_nopack.x86", [], {}], "config": {"index": 1}, '
           '"result": [[0.1], 0, 1, 1], "version": 0.2, "tvm_version": "0.18.0"}')
AUTO_SCHEDULER = '{"i": [["[\\"hash\\"]", "llvm"], [[], []]], "r": [[0.1], 0, 1, 1], "v": "v0.6"}'


@pytest.mark.parametrize("text, kind", [
    (AUTOTVM, "autotvm"), (f"# TopHub\n\n{AUTOTVM}\n", "autotvm"),
    (AUTO_SCHEDULER, "auto_scheduler")])
def test_records_are_told_apart(tmp_path, text, kind):
    (tmp_path / "r.log").write_text(text)
    assert record_kind(tmp_path / "r.log") == kind


@pytest.mark.parametrize("text", ["", "# nothing\n", "garbage", "[]", '{"i": 1}'])
def test_other_files_hold_no_records(tmp_path, text):
    (tmp_path / "r.log").write_text(text)
    with pytest.raises(Refusal) as caught:
        record_kind(tmp_path / "r.log")
    assert caught.value.kind == "records"


# What the worker needs of the package beside its own folder, before a request asks for more.
SHARED = ["params_file", "errors"]


def files_for_any_python():
    tools = ROOT / "scripts" / "run_model_tools"
    return [tools / "__init__.py", tools / "tuning" / "__init__.py",
            tools / "tuning" / "records.py", *(tools / f"{name}.py" for name in SHARED),
            *sorted((tools / "inside_tvm").rglob("*.py"))]


@pytest.mark.parametrize("path", files_for_any_python(), ids=lambda path: path.name)
def test_python_3_7_understands_it(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 7))
    never_evaluated = any(isinstance(node, ast.ImportFrom) and node.module == "__future__"
                          and node.names[0].name == "annotations" for node in tree.body)
    for node in () if never_evaluated else ast.walk(tree):
        # Types as newer releases write them would be evaluated.
        assert not isinstance(node, ast.AnnAssign)
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.args, *node.args.kwonlyargs]
            assert node.returns is None and not any(a.annotation for a in arguments), node.name


def test_it_imports_nothing_else_of_ours_before_a_request_asks_for_it():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, run_model_tools.inside_tvm.worker, "
         "run_model_tools.inside_tvm.compile, run_model_tools.inside_tvm.run; "
         "print(*(n for n in sys.modules if n.startswith('run_model_tools.')))"],
        env={"PYTHONPATH": str(ROOT / "scripts")}, capture_output=True, text=True, check=True)
    others = {name for name in done.stdout.split()
              if not name.startswith("run_model_tools.inside_tvm")}
    assert "run_model_tools.inside_tvm" in done.stdout
    assert others == {f"run_model_tools.{name}" for name in SHARED}


WORKER = r"""
import json, os, subprocess, sys, time
from run_model_tools.inside_tvm import worker

request = json.load(open(sys.argv[1]))
worker.end_with(request["lifeline"], request["events"])
child = subprocess.Popen(["sleep", "600"])
os.write(request["events"], b'{"event": "work"}\n')
time.sleep(600)
"""
STARTER = """
import os, sys
from pathlib import Path
from run_model_tools import tvm_process

folder = Path(sys.argv[1])
tvm_process._run_with_events(
    [sys.executable, folder / "worker.py", folder / "request.json"], dict(os.environ), {},
    folder / "request.json", folder / "result.json", lambda event: print("at work", flush=True))
"""


def test_it_ends_with_who_started_it(tmp_path):
    (tmp_path / "worker.py").write_text(WORKER)
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path)],
                               env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
                               stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None and starter.stdout.readline() == "at work\n"
    workers = psutil.Process(starter.pid).children(recursive=True)
    assert len(workers) == 3  # The worker, who waits for our end, and a child of the worker.
    os.kill(starter.pid, signal.SIGKILL)
    starter.communicate()
    _, alive = psutil.wait_procs(workers, 20)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]
