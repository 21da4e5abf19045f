"""The unpickler runs nothing that a pickle names."""

import io
import os
import pickle

import numpy as np
import pytest

from run_model_tools.errors import ToolError
from run_model_tools.zoo.ndf_weights import load_arrays


class Evil:
    """Unpickling this freely makes the folder that it was given."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_come_back(protocol):
    value = {"conv1": [np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(3, np.float32)],
             "n": 3, "name": "x", "t": (1.5, None)}
    back = load_arrays(pickle.dumps(value, protocol), "w.pkl")
    assert np.array_equal(back["conv1"][0], value["conv1"][0])
    assert back["conv1"][0].dtype == np.float32
    assert back["n"] == 3 and back["t"] == (1.5, None)


def test_a_call_is_refused_and_not_made(tmp_path):
    target = tmp_path / "made"
    evil = pickle.dumps({"conv1": Evil(target)}, 3)
    with pytest.raises(ToolError) as caught:
        load_arrays(evil, "w.pkl")
    assert caught.value.code == 4
    assert "w.pkl" in str(caught.value) and "mkdir" in str(caught.value)
    assert not target.exists()
    # The pickle does what it is feared for: otherwise this test proves nothing.
    pickle.loads(evil)
    assert target.exists()


@pytest.mark.parametrize("line", [
    b"cos\nsystem\n(S'true'\ntR.", b"cbuiltins\neval\n(S'1'\ntR.",
    b"cnumpy\nload\n(S'/etc/passwd'\ntR.", b"cnumpy.core.multiarray\nscalar\n.",
    b"csubprocess\nPopen\n.", b"cnumpy\nf2py.os.system\n."])
def test_other_names_are_refused(line):
    with pytest.raises(ToolError, match="it asks for"):
        load_arrays(line, "w.pkl")


def test_object_arrays_are_refused():
    with pytest.raises(ToolError, match="object"):
        load_arrays(pickle.dumps(np.array([{}, "x"], object), 3), "w.pkl")


def test_persistent_ids_are_refused():
    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return "id" if obj == "external" else None

    buffer = io.BytesIO()
    Pickler(buffer, 3).dump(["external"])
    with pytest.raises(ToolError, match="persistent"):
        load_arrays(buffer.getvalue(), "w.pkl")


def test_damage_is_refused():
    whole = pickle.dumps([np.arange(4)], 3)
    for length in range(len(whole)):
        with pytest.raises(ToolError) as caught:
            load_arrays(whole[:length], "w.pkl")
        assert caught.value.code == 4
