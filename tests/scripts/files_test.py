"""Files and folders that are whole or not there."""

import pytest

from run_model_tools.files import copy_atomically, directory_in_the_making, write_atomically


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_write_replaces_and_leaves_nothing_behind(tmp_path):
    write_atomically(tmp_path / "new" / "a", b"1")
    write_atomically(tmp_path / "new" / "a", b"22")
    assert (tmp_path / "new" / "a").read_bytes() == b"22"
    assert names(tmp_path / "new") == ["a"]


def test_a_write_that_fails_keeps_the_old_file(tmp_path):
    write_atomically(tmp_path / "a", b"old")
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "a", "text is not bytes")
    assert (tmp_path / "a").read_bytes() == b"old" and names(tmp_path) == ["a"]


def test_copy_keeps_the_mode(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "a").chmod(0o755)
    copy_atomically(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o755
    with pytest.raises(FileNotFoundError):
        copy_atomically(tmp_path / "missing", tmp_path / "b")
    assert names(tmp_path) == ["a", "b"] and (tmp_path / "b").read_bytes() == b"x"


def test_a_folder_appears_when_it_is_finished(tmp_path):
    target = tmp_path / "deep" / "folder"
    with directory_in_the_making(target, {"a"}) as folder:
        (folder / "a").write_text("1")
        assert not target.exists()
    assert names(target) == ["a"] and names(target.parent) == ["folder"]


def test_a_folder_takes_the_place_of_the_old_one(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    for name in ("a", "b", "notes.txt"):
        (target / name).write_text("old")
    with directory_in_the_making(target, {"a", "b"}) as folder:
        (folder / "a").write_text("new")
        assert (target / "a").read_text() == "old"
    # b belongs to what was replaced; notes.txt is somebody else's.
    assert names(target) == ["a", "notes.txt"]
    assert (target / "a").read_text() == "new" and names(tmp_path) == ["folder"]


def test_a_failure_leaves_the_old_folder(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "a").write_text("old")
    with pytest.raises(RuntimeError), directory_in_the_making(target, {"a"}) as folder:
        (folder / "a").write_text("new")
        raise RuntimeError
    assert (target / "a").read_text() == "old" and names(tmp_path) == ["folder"]
