"""Which committed records a target gets, and what stands for them in a build key."""

import pytest
from records_test import line

from run_model_tools.errors import ToolError
from run_model_tools.targets import find_target
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning import selection as tuning_selection

V3 = {"sse4_2", "popcnt", "ssse3", "cx16", "avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@pytest.fixture
def folder(tmp_path):
    for name in ("resnet18.x86_64_v4.autotvm", "resnet18.x86_64_v4.graph",
                 "squeezenet1_1.x86_64_v4.autotvm", "resnet18.x86_64_v3.autotvm",
                 "resnet18.pynq_z1.autotvm", "README.md", "resnet18.x86_64_v4.unknown", "notes"):
        (tmp_path / name).write_text("# {}\n" + line([0.1]) + "\n")
    return tmp_path


def names(selection):
    return [file.name for file in selection.files]


@pytest.mark.parametrize("target, expected", [
    ("x86_64_v4", ["resnet18.x86_64_v4.autotvm", "resnet18.x86_64_v4.graph",
                   "squeezenet1_1.x86_64_v4.autotvm"]),
    ("x86-64-v3", ["resnet18.x86_64_v3.autotvm"]),
    ("llvm -mcpu=x86-64-v3", ["resnet18.x86_64_v3.autotvm"]),
    ("pynq_z1", ["resnet18.pynq_z1.autotvm"]),
    ("raspi_armv7", []), ("x86_64_v2", []), ("llvm -mcpu=skylake", []), ("llvm", []), ("c", []),
])
def test_files_go_by_the_targets_name(folder, target, expected):
    selection = tuning_selection.choose("auto", None, find_target(target), folder)
    assert names(selection) == expected and not selection.explicit
    assert names(tuning_selection.choose("none", None, find_target(target), folder)) == []
    assert names(tuning_selection.choose("auto", None, find_target(target), folder / "no")) == []


@pytest.mark.parametrize("flags, expected", [
    (V4, "x86_64_v4"), (V4 - {"avx512vl"}, "x86_64_v3"), (V3, "x86_64_v3"),
    (V3 - {"fma"}, None), (set(), None),
])
def test_native_goes_by_the_cpus_instructions(monkeypatch, flags, expected):
    monkeypatch.setattr(tuning_selection.platform, "machine", lambda: "x86_64")
    assert tuning_selection.record_target(find_target("native"), flags) == expected
    monkeypatch.setattr(tuning_selection.platform, "machine", lambda: "aarch64")
    assert tuning_selection.record_target(find_target("native"), flags) is None


def test_native_leaves_out_what_was_measured_on_another_cpu(folder, monkeypatch):
    monkeypatch.setattr(tuning_selection, "record_target", lambda target: "x86_64_v4")
    monkeypatch.setattr(tuning_selection.cpu, "cpu_model", lambda: "GenuineIntel 6/143")
    for name, cpu in (("resnet18.x86_64_v4.autotvm", "AuthenticAMD 25/17"),
                      ("squeezenet1_1.x86_64_v4.autotvm", "GenuineIntel 6/143")):
        (folder / name).write_text(f'# {{"cpu": "{cpu}"}}\n' + line([0.1]) + "\n")
    unsaid = "resnet18.x86_64_v4.graph"
    assert names(tuning_selection.choose("auto", None, find_target("native"), folder)) == [
        unsaid, "squeezenet1_1.x86_64_v4.autotvm"]
    assert len(names(tuning_selection.choose("auto", None, find_target("x86_64_v4"), folder))) == 3


def test_the_key_depends_on_the_records(folder):
    target = find_target("x86_64_v4")
    first = tuning_selection.choose("auto", None, target, folder).key()
    assert first == tuning_selection.choose("auto", None, target, folder).key()
    (folder / "resnet18.x86_64_v3.autotvm").write_text("# {}\n")
    assert first == tuning_selection.choose("auto", None, target, folder).key()
    (folder / "resnet18.x86_64_v4.autotvm").write_text("# {}\n" + line([0.2]) + "\n")
    second = tuning_selection.choose("auto", None, target, folder).key()
    assert second != first
    (folder / "other.x86_64_v4.autotvm").write_text("# {}\n")
    assert tuning_selection.choose("auto", None, target, folder).key() not in (first, second)
    assert tuning_selection.choose("none", None, target, folder).key() is None
    assert tuning_selection.choose("auto", None, find_target("riscv64"), folder).key() is None


def test_a_users_file_leaves_the_committed_ones_out(folder, tmp_path):
    path = tmp_path / "mine.log"
    path.write_text(line([0.1]) + "\ncut")
    chosen = tuning_selection.choose("auto", path, find_target("raspi_armv7"), folder)
    assert names(chosen) == ["mine.log"] and chosen.explicit
    assert chosen.request()["boards"] == ["bcm2837", "rasp3b"]
    renamed = tmp_path / "renamed.log"
    path.rename(renamed)
    assert tuning_selection.choose("auto", renamed, find_target("raspi_armv7"),
                                   folder).key() == chosen.__class__(
        (tuning_selection.RecordFile(renamed, None, None, None),), True).key()


@pytest.mark.parametrize("content, code", [(None, 3), ("", 4), ("hello\n", 4), ("# {}\n", 4)])
def test_a_users_file_without_records_is_named(tmp_path, content, code):
    path = tmp_path / "mine.log"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ToolError) as caught:
        tuning_selection.choose("auto", path, find_target("native"))
    assert caught.value.code == code and str(path) in str(caught.value)


def test_the_committed_files_are_whole():
    """Each name is of the form, each line a record of its kind, each key there once."""
    for path in tuning_selection.COMMITTED.glob("*.*"):
        named = tuning_selection.parse_name(path)
        assert named is not None, path
        header, records, unreadable = tuning_records.read(path)
        assert not unreadable and records, path
        assert header["schema_version"] == 1
        assert (header["family"], header["target"], header["kind"]) == (
            named.family, named.target, named.kind), path
        assert header["measured_on"], path
        assert {r.kind for r in records} == {
            "autotvm" if named.kind == "graph" else named.kind}, path
        if named.kind == "graph":
            assert len(header["network"]) == 64
        else:
            assert len({r.key for r in records}) == len(records), path
