"""The cache of compiled kernels: what is found, what is not, what is dropped."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from run_model_tools.kernels import c_compiler, code_cache
from run_model_tools.kernels.isa import GENERIC

SOURCE = "int run_model_test(int task) { return task + %d; }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(code_cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    code_cache._bound.cache_clear()
    return tmp_path / "cache"


def compile_one(number: int, flags: tuple[str, ...] = ()) -> str:
    return c_compiler.compile_to_ir(SOURCE % number, list(flags), ["run_model_test"])


def test_what_was_compiled_is_not_compiled_again(folder, monkeypatch):
    first = compile_one(1)
    assert "define" in first and len(list(folder.iterdir())) == 1
    other = compile_one(2)
    assert other != first and compile_one(1, ("-DX",)) and len(list(folder.iterdir())) == 3

    def fail(*args, **options):
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(c_compiler.subprocess, "run", fail)
    assert compile_one(1) == first and compile_one(2) == other


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-1],
                                    lambda data: data[:40] + b"x" + data[41:]])
def test_a_damaged_entry_is_made_again(folder, damage):
    first = compile_one(1)
    entry, = folder.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    assert compile_one(1) == first
    assert code_cache.find(entry.name) == first.encode()


def test_the_entries_that_were_not_used_for_longest_are_dropped(folder, monkeypatch):
    for index in range(4):
        compile_one(index)
    entries = list(folder.iterdir())
    for age, entry in enumerate(entries):
        os.utime(entry, (1000 - age, 1000 - age))
    monkeypatch.setattr(code_cache, "MOST_BYTES", 2 * max(e.stat().st_size for e in entries) + 10)
    code_cache._bound.cache_clear()
    compile_one(9)
    left = set(folder.iterdir())
    assert entries[0] in left and not left & set(entries[1:])


def test_without_a_folder_that_can_be_written_it_compiles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for named in ("", "off", str(tmp_path / "file" / "below")):
        monkeypatch.setenv(code_cache.FOLDER_VARIABLE, named)
        assert "define" in compile_one(1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_several_at_once_do_not_disturb_each_other(folder):
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(compile_one(5))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6 and len(set(results)) == 1 and len(list(folder.iterdir())) == 1


def test_the_code_of_scalars_has_no_vectors_that_unrolled_them(folder, tmp_path):
    """For RISC-V Clang is told of vectors that the CPU has not."""
    source = "void run_model_test(float *x) { for (int i = 0; i < 64; i++) x[i] *= 2; }"
    scalars = {"mtriple": "riscv64-linux-gnu", "mcpu": "generic-rv64", "mabi": "lp64d",
               "mattr": ["+m", "+a", "+f", "+d", "+c"]}
    for target, of_isa, found in ((scalars, GENERIC.flags, False),
                                  (scalars | {"mattr": [*scalars["mattr"], "+v"]}, (), True)):
        c_compiler.c_to_object(source, c_compiler.target_flags(target), tmp_path / "made.o", of_isa)
        code = subprocess.run(["riscv64-linux-gnu-objdump", "-d", tmp_path / "made.o"],
                              capture_output=True, text=True, check=True).stdout
        assert "flw" in code or found
        assert ("vset" in code) == found
