"""CPU features: what of LLVM's names reaches metadata.json."""

import json
import subprocess
import sys

import pytest

from run_model_tools import environment
from run_model_tools.compiling.cpu_features import needed_features
from run_model_tools.targets import named_targets

LLVM_TARGETS = [target for target in named_targets().values() if target.tvm.startswith("llvm")]


def test_hints_and_cryptography_are_left_out():
    listed = ["v8.2a", "neon", "a76", "aes", "sha2", "crc", "fuse-aes", "dotprod",
              "enable-select-opt"]
    assert needed_features(listed, "aarch64") == ["dotprod", "neon"]
    assert needed_features(["64bit", "avx2", "pclmul", "vzeroupper", "sse4.1"], "x86_64") \
        == ["avx2", "sse4.1"]
    assert needed_features([], "riscv64") == []


def test_what_nobody_knows():
    assert needed_features(None, "x86_64") is None
    assert needed_features(["avx2"], "s390x") is None


@pytest.fixture(scope="module")
def llvm_features():
    """LLVM's features of each named target, from TVM as the compile side asks it."""
    script = """
import json, sys
from run_model_tools.inside_tvm import cpu, quiet_stderr
with quiet_stderr():
    import tvm
print(json.dumps([cpu.llvm_features(tvm, tvm.target.Target(t)) for t in sys.argv[1:]]))
"""
    result = subprocess.run(
        [sys.executable, "-c", script, *(target.tvm for target in LLVM_TARGETS), "c"],
        env=environment.tvm_environment(), capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_the_list_of_targets_agrees_with_llvm(llvm_features):
    *listed, of_c = llvm_features
    assert of_c is None
    for target, features in zip(LLVM_TARGETS, listed, strict=True):
        assert needed_features(features, target.machine) == list(target.features), target.name
