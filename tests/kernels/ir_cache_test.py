"""The cache of compiled kernels: what is found, what is not, what is dropped."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from run_model_tools.kernels import c_compiler, ir_cache

SOURCE = "int run_model_test(int task) { return task + %d; }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ir_cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    ir_cache._bound.cache_clear()
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
    assert ir_cache.find(entry.name) == first


def test_the_entries_that_were_not_used_for_longest_are_dropped(folder, monkeypatch):
    for index in range(4):
        compile_one(index)
    entries = list(folder.iterdir())
    for age, entry in enumerate(entries):
        os.utime(entry, (1000 - age, 1000 - age))
    monkeypatch.setattr(ir_cache, "MOST_BYTES", 2 * max(e.stat().st_size for e in entries) + 10)
    ir_cache._bound.cache_clear()
    compile_one(9)
    left = set(folder.iterdir())
    assert entries[0] in left and not left & set(entries[1:])


def test_without_a_folder_that_can_be_written_it_compiles(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for named in ("", str(tmp_path / "file" / "below")):
        monkeypatch.setenv(ir_cache.FOLDER_VARIABLE, named)
        assert "define" in compile_one(1)


def test_several_at_once_do_not_disturb_each_other(folder):
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(compile_one(5))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6 and len(set(results)) == 1 and len(list(folder.iterdir())) == 1
