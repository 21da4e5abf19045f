"""PyTorch checkpoints are read in both of their forms, and nothing that they name is run."""

import io
import pickle
import struct
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

from run_model_tools.errors import ToolError
from run_model_tools.zoo.torch_file import load_tensors


class Call:
    """Pickled, a call of a function by its name, as PyTorch writes tensors."""

    def __init__(self, module, name, *arguments):
        self.module, self.name, self.arguments = module, name, arguments


class Global:
    def __init__(self, module, name):
        self.module, self.name = module, name


class Storage:
    def __init__(self, kind, key, array, *view):
        self.kind, self.key, self.array, self.view = kind, key, array, view


class Writer(pickle._Pickler):  # The Python one, whose dispatch can be extended.
    """Writes what PyTorch's own pickler does, without PyTorch."""

    def save(self, obj, *rest, **options):
        if isinstance(obj, Global):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, Call):
            self.save(Global(obj.module, obj.name))
            self.save(obj.arguments)
            self.write(pickle.REDUCE)
        elif isinstance(obj, Storage):
            self.save(("storage", Global("torch", obj.kind), obj.key, "cpu", obj.array.size,
                       *obj.view))
            self.write(pickle.BINPERSID)
        else:
            super().save(obj, *rest, **options)


def dump(value):
    buffer = io.BytesIO()
    Writer(buffer, 2).dump(value)
    return buffer.getvalue()


def tensor(storage, shape, strides, offset=0):
    return Call("torch._utils", "_rebuild_tensor_v2", storage, offset, shape, strides, False,
                OrderedDict())


A = np.arange(24, dtype="<f4")
N = np.array([7], "<i8")


def tensors(a_shape=(2, 3, 4), a_strides=(12, 4, 1), a_offset=0):
    return {"conv.weight": tensor(Storage("FloatStorage", "10", A), a_shape, a_strides, a_offset),
            "bn.num_batches_tracked": tensor(Storage("LongStorage", "11", N), (), ())}


def zipped(value, storages=((("10"), A), ("11", N))):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("net/data.pkl", dump(value))
        for key, array in storages:
            archive.writestr(f"net/data/{key}", array.tobytes())
    return buffer.getvalue()


def streamed(value, storages=(("10", A), ("11", N))):
    data = dump(0x1950A86A20F9469CFC6C) + dump(1001) + dump(
        {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}})
    data += dump(value) + dump([key for key, _ in storages])
    for _, array in storages:
        data += struct.pack("<q", array.size) + array.tobytes()
    return data


FORMS = pytest.mark.parametrize("form", [zipped, streamed])


@FORMS
def test_tensors_come_back(form):
    back = load_tensors(form(tensors()), "net.pth")
    assert np.array_equal(back["conv.weight"], A.reshape(2, 3, 4))
    assert back["conv.weight"].dtype == np.float32
    assert back["bn.num_batches_tracked"] == 7


@FORMS
def test_views_are_followed(form):
    """A transposed part of a storage: rows and columns by their strides, from an offset on."""
    back = load_tensors(form(tensors((4, 2), (1, 4), 12)), "net.pth")
    assert np.array_equal(back["conv.weight"], A[12:20].reshape(2, 4).T)


@FORMS
def test_a_training_checkpoint_has_its_state_dict(form):
    back = load_tensors(form({"epoch": 3, "state_dict": tensors()}), "net.pth")
    assert set(back) == {"conv.weight", "bn.num_batches_tracked"}


@FORMS
def test_a_call_is_refused_and_not_made(form, tmp_path):
    made = tmp_path / "made"
    with pytest.raises(ToolError, match="net.pth.*os.mkdir") as caught:
        load_tensors(form({"w": Call("os", "mkdir", str(made))}), "net.pth")
    assert caught.value.code == 4
    assert not made.exists()


@FORMS
@pytest.mark.parametrize("shape,strides,offset", [
    ((2, 3, 4), (12, 4, 1), 1), ((25,), (1,), 0), ((2, 2), (1,), 0), ((2,), (-1,), 5),
    ((1 << 40,), (0,), -1), ((2,), ("1",), 0)])
def test_tensors_outside_of_their_storage_are_refused(form, shape, strides, offset):
    with pytest.raises(ToolError) as caught:
        load_tensors(form(tensors(shape, strides, offset)), "net.pth")
    assert caught.value.code == 4


def test_a_part_of_a_storage_is_refused():
    """PyTorch's old form has a sixth field, which is None unless the storage is such a part."""
    for view, fine in ((None, True), (("12", 0, 24), False)):
        value = {"w": tensor(Storage("FloatStorage", "10", A, view), (24,), (1,))}
        if fine:
            assert np.array_equal(load_tensors(streamed(value, (("10", A),)), "net.pth")["w"], A)
        else:
            with pytest.raises(ToolError, match="no storage"):
                load_tensors(streamed(value, (("10", A),)), "net.pth")


def test_short_files_are_refused():
    whole = streamed(tensors())
    for length in (0, 1, 20, 100, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ToolError) as caught:
            load_tensors(whole[:length], "net.pth")
        assert caught.value.code == 4
    archive = zipped(tensors())
    with pytest.raises(ToolError):
        load_tensors(archive[:len(archive) // 2], "net.pth")
    with pytest.raises(ToolError, match="not 96 bytes"):
        load_tensors(zipped(tensors(), (("10", A[:5]), ("11", N))), "net.pth")


@pytest.mark.parametrize("value", [[], {}, {"w": 1}, {1: 2}, "text"])
def test_other_contents_are_refused(value):
    with pytest.raises(ToolError, match="net.pth"):
        load_tensors(zipped(value), "net.pth")
