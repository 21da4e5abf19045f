"""Compiled functions refuse arguments that they were not compiled for, by one sentence each."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import run_command

from small_networks import save_network, weights

OTHER_DEVICE, TENSOR, INTEGER = 2, 7, 0


class Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Function:
    """A function of a library, and arguments that it was compiled for."""

    def __init__(self, library: ctypes.CDLL, name: str, tensors: list[tuple[str, list[int]]]):
        self.call = library[name]
        self.name = name
        self.count = len(tensors)
        self.codes = [TENSOR] * self.count
        self.extents = [(ctypes.c_int64 * len(shape))(*shape) for _, shape in tensors]
        self.numbers = [ctypes.create_string_buffer(4096) for _ in tensors]
        self.tensors = [
            Tensor(ctypes.addressof(numbers), 1, 0, len(extents), *TYPES[type_], 1, extents)
            for (type_, _), extents, numbers in zip(tensors, self.extents, self.numbers)]
        self.pointers = [ctypes.addressof(tensor) for tensor in self.tensors]

    def run(self) -> int:
        values = (ctypes.c_uint64 * len(self.pointers))(*[p or 0 for p in self.pointers])
        codes = (ctypes.c_int32 * len(self.codes))(*self.codes)
        ignored = ctypes.c_uint64(), ctypes.c_int32()
        return self.call(values, codes, ctypes.c_int32(self.count), ctypes.byref(ignored[0]),
                         ctypes.byref(ignored[1]), None)


TYPES = {"float32": (2, 32), "int32": (0, 32), "uint1": (1, 1), "bool": (1, 1)}


def one_more_axis(function: Function) -> None:
    shape = [*function.extents[0], 1]
    function.tensors[0].shape = (ctypes.c_int64 * len(shape))(*shape)
    function.tensors[0].ndim = len(shape)


def columns_first(function: Function) -> None:
    function.tensors[0].strides = (ctypes.c_int64 * 2)(1, 3)


def set_of(index: int, **fields: int | None) -> Callable[[Function], None]:
    def change(function: Function) -> None:
        for name, value in fields.items():
            setattr(function.tensors[index], name, value)
    return change


def set_argument(name: str, value: int | None) -> Callable[[Function], None]:
    def change(function: Function) -> None:
        getattr(function, name)[0] = value
    return change


def longer(axis: int) -> Callable[[Function], None]:
    def change(function: Function) -> None:
        function.tensors[0].shape[axis] += 1 << 32  # as 32 bits it is the same
    return change


def fewer(function: Function) -> None:
    function.count -= 1


CHANGES = {
    "fewer arguments": fewer,
    "no tensor": set_argument("codes", INTEGER),
    "nothing": set_argument("pointers", None),
    "another type": set_of(0, bits=64),
    "another kind of type": set_of(0, code=1),
    "vectors": set_of(0, lanes=4),
    "more axes": one_more_axis,
    "another number of rows": longer(0),
    "another number of columns": longer(1),
    "columns first": columns_first,
    "an offset": set_of(0, byte_offset=64),
    "another kind of device": set_of(0, device_type=OTHER_DEVICE),
    "another device": set_of(1, device_id=1),
    "no numbers": set_of(0, data=None),
}


@pytest.fixture(scope="module", params=["auto", "stock"])
def functions(request, tmp_path_factory):
    """(how to make each Function of a library, the errors that it told of)"""
    folder: Path = tmp_path_factory.mktemp("checks")
    save_network(folder / "small.onnx", """(float[2,3] x) => (bool[2,3] more, int32[2,3] whole) {
        s = Add(x, w)
        t = Softmax(s)
        more = Greater(t, x)
        whole = Cast<to=6>(x)
    }""", weights(1, w=(2, 3)))
    done = run_command("compile_model", "small.onnx", "--target", "native", "--kernels",
                       request.param, cwd=folder)
    assert done.returncode == 0, done.stderr
    artifact = folder / "artifacts/small/native"
    assert b"unsatisfied constraint" not in (artifact / "model.so").read_bytes()
    library = ctypes.CDLL(str(artifact / "model.so"))
    errors: list[str] = []
    told = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda text: errors.append(text.decode()))
    # What is computed does not matter, and nothing is where no thread starts.
    launch = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
    for name, function in (("__TVMAPISetLastError", told), ("__TVMBackendParallelLaunch", launch)):
        try:
            ctypes.c_void_p.in_dll(library, name).value = ctypes.cast(
                function, ctypes.c_void_p).value
        except ValueError:
            assert name == "__TVMBackendParallelLaunch"
    graph = json.loads((artifact / "model.json").read_text())
    types, shapes = (graph["attrs"][name][1] for name in ("dltype", "shape"))
    rows = graph["node_row_ptr"]
    made = []
    for index, node in enumerate(graph["nodes"]):
        if node["op"] == "tvm_op" and node["attrs"]["func_name"] != "__nop":
            entries = [rows[i] + out for i, out, _ in node["inputs"]] + [rows[index]]
            arguments = [(types[entry], shapes[entry]) for entry in entries]
            made.append(lambda name=node["attrs"]["func_name"], arguments=arguments: Function(
                library, name, arguments))
    assert len(made) > 1
    yield made, errors
    del told, launch


def test_right_arguments_are_taken(functions):
    made, errors = functions
    errors.clear()
    assert [make().run() for make in made] == [0] * len(made) and not errors
    function = made[0]()
    function.tensors[0].strides = (ctypes.c_int64 * 2)(3, 1)
    assert function.run() == 0


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_others_are_refused(functions, change):
    made, errors = functions
    for make in made:
        errors.clear()
        function = make()
        change(function)
        assert function.run() != 0
        error, = errors
        assert error.endswith("and was called with something else")
        assert f"{function.name} takes float32 [2, 3], " in error
