"""Parameters files: the aligned writing, and reading that trusts nothing."""

import struct
import subprocess
import sys

import numpy as np
import pytest

from run_model_tools import environment, params_file
from run_model_tools.errors import ToolError
from run_model_tools.params_file import Tensor, aligned, plain, read_params

FLOAT32 = (2, 32, 1)


def file_of(tensors) -> bytes:
    tensors = dict(tensors)
    return b"".join(aligned(list(tensors), tensors.__getitem__))


def floats(*shape):
    values = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return Tensor(FLOAT32, shape, values.tobytes())


def data_offset(file: bytes, tensor: Tensor) -> int:
    offset = file.find(bytes(tensor.data))
    assert offset >= 0
    return offset


def plain_file(name=b"w", shape=(2,), data=bytes(range(8)), dtype=FLOAT32, count=1, magic=None):
    """A file with one tensor, put together by hand from the format's description."""
    return (struct.pack("<QQQ", magic or 0xF7E58D4F05049CB7, 0, count)
            + struct.pack("<Q", len(name)) + name + struct.pack("<Q", count)
            + struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, len(shape), *dtype)
            + struct.pack(f"<{len(shape)}qq", *shape, len(data)) + data)


def test_reads_a_file_put_together_by_hand():
    tensors = read_params(plain_file())
    assert list(tensors) == ["w"]
    assert tensors["w"].shape == (2,)
    assert tensors["w"].dtype_name == "float32"
    assert bytes(tensors["w"].data) == bytes(range(8))


@pytest.mark.parametrize("dtype, name", [
    ((0, 8, 1), "int8"), ((1, 8, 1), "uint8"), ((1, 1, 1), "bool"), ((2, 16, 1), "float16"),
    ((2, 32, 4), "float32x4"), ((4, 16, 1), "bfloat16")])
def test_type_names_are_tvms(dtype, name):
    assert Tensor(dtype, (), b"").dtype_name == name


# Names and sizes of every remainder modulo the alignment.
@pytest.mark.parametrize("length", range(1, 130, 7))
def test_data_of_every_real_tensor_are_aligned(length):
    # Distinct bytes, so that each can be found.
    random = np.random.default_rng(length)
    tensors = [(f"{'n' * length}{i}", Tensor((0, 8, 1), (size,), random.bytes(size)))
               for i, size in enumerate((37, 128, 4096, 99 + length))]
    file = file_of(tensors)
    for _, tensor in tensors:
        assert data_offset(file, tensor) % 128 == 0


def test_order_and_content_survive_and_padding_is_told_apart():
    tensors = [("z", floats(3, 5)), ("a", floats(1)), ("scalar", floats())]
    back = read_params(file_of(tensors))
    real = [name for name in back if not params_file.is_padding(name)]
    assert real == ["z", "a", "scalar"]
    for name, tensor in tensors:
        assert back[name].shape == tensor.shape
        assert bytes(back[name].data) == tensor.data
    for name in set(back) - set(real):
        assert name.startswith("__align")
        assert back[name].dtype_name == "uint8" and len(back[name].shape) == 1
        assert 1 <= back[name].shape[0] <= 128


def test_no_parameters_make_an_empty_list():
    assert file_of([]) == struct.pack("<QQQQ", params_file.LIST_MAGIC, 0, 0, 0)
    assert read_params(file_of([])) == {}


def test_a_real_tensor_may_not_look_like_padding():
    with pytest.raises(ValueError):
        file_of([("__align0", floats(1))])


def test_every_truncation_is_refused():
    file = file_of([("w", floats(3, 2)), ("b", floats(2))])
    for length in range(len(file)):
        with pytest.raises(ToolError) as caught:
            read_params(file[:length], "x.params")
        assert caught.value.code == 4
        assert "x.params" in str(caught.value)


# Called by number: pytest would otherwise name the cases after the bytes.
@pytest.mark.parametrize("file, found", [
    (plain_file() + b"\0", "left over"),
    (plain_file(magic=0x1234), "magic"),
    (plain_file(count=2), "not a parameters file"),
    (plain_file(count=1 << 60), "not a parameters file"),
    (plain_file(shape=(3,)), "has 8 bytes"),
    (plain_file(shape=(-2,)), "has 8 bytes"),
    (plain_file(shape=(1 << 62, 1 << 62)), "has 8 bytes"),
    (b"", "magic"),
], ids=range(8))
def test_contradictions_are_refused(file, found):
    with pytest.raises(ToolError, match=found):
        read_params(file)


def test_tvm_loads_what_we_write(tmp_path):
    """TVM itself reads the aligned file, and we read what TVM writes: same names, same values."""
    random = np.random.default_rng(3)
    arrays = {"conv.weight": random.standard_normal((8, 3, 3, 3)).astype(np.float32),
              "half": random.standard_normal((5,)).astype(np.float16),
              "bytes": random.integers(-128, 128, (7, 2), np.int8),
              "scalar": np.array(2.5, np.float64)}
    np.savez(tmp_path / "arrays.npz", **arrays)
    tensors = {name: Tensor.of(array) for name, array in arrays.items()}
    ours = file_of(tensors)
    (tmp_path / "ours.params").write_bytes(ours)
    script = """
import sys, numpy as np, tvm
folder = sys.argv[1]
arrays = dict(np.load(folder + "/arrays.npz"))
loaded = tvm.runtime.load_param_dict(bytearray(open(folder + "/ours.params", "rb").read()))
real = {str(k): v.numpy() for k, v in loaded.items() if not str(k).startswith("__align")}
assert set(real) == set(arrays), real
for name, array in arrays.items():
    assert real[name].dtype == array.dtype and np.array_equal(real[name], array), name
open(folder + "/tvm.params", "wb").write(
    tvm.runtime.save_param_dict({k: tvm.nd.array(v) for k, v in arrays.items()}))
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True,
                   env=environment.tvm_environment(), stderr=subprocess.DEVNULL)
    written = (tmp_path / "tvm.params").read_bytes()
    theirs = read_params(written)
    assert b"".join(plain(list(theirs), tensors.__getitem__)) == written
    assert set(theirs) == set(arrays)
    for name, array in arrays.items():
        assert theirs[name].shape == array.shape
        assert bytes(theirs[name].data) == array.tobytes()
