"""Compiled models from Python, with NumPy and librun_model.so alone: no TVM, no compiler.

    import run_model

    model = run_model.Model("artifacts", "resnet18")
    for found in model.see("cat.png"):      # as `run_model --json` has it under "results"
        print(found["top"][0])
    scores, = model(numpy_array)            # tensors in, tensors out

The library is looked for where RUN_MODEL_LIBRARY says, beside this file, where the installation has
it that this file is part of, and where the system looks.
"""

from __future__ import annotations

import ctypes
import json
import operator
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLPack's codes, by NumPy's kinds
_BFLOAT16 = 4
_CPU = 1
_ALIGNMENT = 128  # what compiled code may rely on


class Error(Exception):
    """What went wrong, in a sentence; `code` is the exit code that the programs have for it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class TensorInfo(NamedTuple):
    """What an input or output is; -1 in `shape` is a dimension that may be any number, and `dtype`
    is uint16 for the bits of bfloat16."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int), ("device_id", ctypes.c_int)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int),
                ("dtype", _DataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class _Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("ndim", ctypes.c_int), ("dtype", _DataType)]


class _Options(ctypes.Structure):
    _fields_ = [("target", ctypes.c_char_p), ("device", ctypes.c_char_p),
                ("labels", ctypes.c_char_p), ("tasks", ctypes.c_char_p),
                ("score_threshold", ctypes.c_double), ("threads", ctypes.c_int),
                ("skip_checksums", ctypes.c_int)]


class _Region(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("x", "y", "width", "height", "angle")]


def _load() -> ctypes.CDLL:
    here = Path(__file__).resolve().parent
    places = [here]
    if here.parts[-3:] == ("share", "run_model", "python"):
        places += [here.parents[2] / "lib", *(here.parents[2] / "lib").glob("*-linux-*")]
    beside = (str(folder / name) for folder in places
              for name in ("librun_model.so", "librun_model.so.0") if (folder / name).is_file())
    found = os.environ.get("RUN_MODEL_LIBRARY") or next(beside, "librun_model.so.0")
    try:
        # Global, since some compiled libraries refer to functions of it by name.
        library = ctypes.CDLL(found, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"{error}; put librun_model.so beside {__file__}, or its path into "
                          "RUN_MODEL_LIBRARY") from error
    library.run_model_version.restype = library.run_model_last_error.restype = ctypes.c_char_p
    model, size, place = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER
    text, whole, pixels = ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_uint8)
    for name, arguments in {
            "open": [text, text, place(_Options), place(model)], "close": [model],
            "input_count": [model, place(size)], "output_count": [model, place(size)],
            "input_info": [model, size, place(_Info)], "output_info": [model, size, place(_Info)],
            "set_input": [model, size, place(_Tensor)], "share_input": [model, size, model],
            "share_output": [model, size, place(place(_Managed))],
            "load_pixels": [text, place(pixels), place(whole), place(whole)],
            "free_pixels": [pixels], "set_region": [model, place(_Region)],
            "regions": [model, model, place(text)],
            "set_picture": [model, size, text, whole, whole],
            "set_pixels": [model, size, ctypes.c_void_p, whole, whole, whole, whole],
            "run": [model], "output": [model, size, place(_Tensor)],
            "results": [model, size, place(text)]}.items():
        _FUNCTIONS[name] = getattr(library, f"run_model_{name}")
        _FUNCTIONS[name].argtypes = arguments
    return library


_FUNCTIONS: dict[str, Any] = {}
_LIBRARY = _load()
__version__ = _LIBRARY.run_model_version().decode()


def _call(name: str, *arguments: Any) -> None:
    code = _FUNCTIONS[name](*arguments)
    if code:
        raise Error(_LIBRARY.run_model_last_error().decode(errors="replace"), code)


def _text(text: str | os.PathLike[str] | None) -> bytes | None:
    """A name or path for C, where it would end at a zero."""
    encoded = None if text is None else os.fsencode(text)
    if encoded is not None and b"\0" in encoded:
        raise Error(f"{text!r} holds a character of number 0", 2)
    return encoded


def _number(value: Any, what: str) -> int:
    """A whole number for C, which would cut off what is too large for it."""
    number = operator.index(value)
    if not 0 <= number < 2 ** 31:
        raise Error(f"{what} is {number}, expected 0 or more and less than 2^31", 2)
    return number


def _dtype(given: _DataType) -> np.dtype:
    if given.code == _BFLOAT16:
        return np.dtype(np.uint16)
    if given.code == _KINDS["b"] or given.bits == 1:  # of which TVM before 0.20 says uint1
        return np.dtype(np.bool_)
    kind = next((kind for kind, code in _KINDS.items() if code == given.code), None)
    if kind is None or given.lanes != 1 or given.bits % 8:
        raise Error(f"NumPy has no type {given.code} of {given.bits} bits", 6)
    return np.dtype(f"{kind}{given.bits // 8}")


class _Shared:
    """Memory of a model, which NumPy looks at and nobody is to write to."""

    def __init__(self, managed: Any) -> None:
        self._managed = managed
        tensor = managed.contents.tensor
        self.__array_interface__ = {
            "version": 3, "shape": tuple(tensor.shape[:tensor.ndim]),
            "typestr": _dtype(tensor.dtype).str,
            "data": ((tensor.data or 0) + tensor.byte_offset, True)}

    def __del__(self) -> None:
        self._managed.contents.deleter(ctypes.addressof(self._managed.contents))


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = (ctypes.py_object, ctypes.c_char_p), \
    ctypes.c_void_p
_rename_capsule = ctypes.pythonapi.PyCapsule_SetName
_rename_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)
_USED = b"used_dltensor"  # which a capsule goes by whose tensor was taken; has to stay


def empty(shape: int | tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """np.empty() where a model can read the array itself: set_input(copy=False)."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    memory = np.empty(count * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start:start + count * dtype.itemsize].view(dtype).reshape(shape)


def load_picture(path: str | os.PathLike[str]) -> np.ndarray:
    """The pixels of a picture file as the program run_model sees them, turned as its EXIF data say:
    uint8 (height, width, 3), R, G, B."""
    pixels = ctypes.POINTER(ctypes.c_uint8)()
    width, height = ctypes.c_int(), ctypes.c_int()
    _call("load_pixels", _text(path), *map(ctypes.byref, (pixels, width, height)))
    try:
        return np.ctypeslib.as_array(pixels, (height.value, width.value, 3)).copy()
    finally:
        _FUNCTIONS["free_pixels"](pixels)


class Model:
    """A compiled model.  Threads may share it: it works for one at a time."""

    def __init__(self, artifacts: str | os.PathLike[str], name: str | None = None, *,
                 target: str | None = None, device: str | None = None, threads: int = 0,
                 labels: str | os.PathLike[str] | None = None,
                 tasks: str | os.PathLike[str] | None = None,
                 score_threshold: float | None = None, verify: bool = True) -> None:
        """`artifacts`: a folder, a library or an archive, as the program run_model takes; `name` of
        the model, where the folder may have several.  `target`: one of a folder's; `device`: "cpu",
        "opencl", "vulkan:1" …, else what it was compiled for; `threads`: 0 for as many as the
        machine has cores; `labels`: a file with the names of classes, where the tasks have none;
        `tasks`: a file that says what the outputs mean (postprocess/README.md); `score_threshold`:
        of detections, in place of the tasks' own; `verify`: whether checksums are compared.
        """
        if score_threshold is not None and not 0 < score_threshold <= 1:
            raise Error(f"score_threshold is {score_threshold}, and not above 0 and up to 1", 2)
        self._handle = ctypes.c_void_p()
        self._lock = threading.RLock()
        options = _Options(*map(_text, (target, device, labels, tasks)), score_threshold or 0.0,
                           _number(threads, "threads"), not verify)
        _call("open", _text(name), _text(artifacts), ctypes.byref(options),
              ctypes.byref(self._handle))
        self.inputs: list[TensorInfo] = self._infos("input")
        self._types = [self._info("input", i).dtype for i in range(len(self.inputs))]

    @property
    def outputs(self) -> list[TensorInfo]:
        """In their order; shapes that depend on inputs are those of the last run."""
        return self._infos("output")

    def set_input(self, key: int | str, value: Any, copy: bool | None = True) -> None:
        """Copies an array into an input, by its name or number.  Another type of the same kind is
        converted: whole numbers have to fit, floats are rounded.

        `copy=False`: runs read the array itself, which is kept, and later changes of its numbers
        are seen.  It has to be writable, dense, of the input's type, and aligned as
        run_model.empty() makes it; tensors of other frameworks are taken through DLPack.
        `copy=None`: where that is so, else a copy."""
        index = self._index(key)
        if not copy:
            misfit = self._share_input(index, value)
            if not misfit:
                return
            if copy is not None:
                raise Error(f"'{self.inputs[index].name}' needs a copy: {misfit}", 6)
        dtype = self.inputs[index].dtype
        only_dlpack = hasattr(value, "__dlpack__") and not hasattr(value, "__array__")
        array = np.from_dlpack(value) if only_dlpack else np.asarray(value)
        if array.dtype != dtype:
            with np.errstate(over="ignore"):
                converted = array.astype(dtype, casting="same_kind")
            changed = np.isinf(converted) & np.isfinite(array) if dtype.kind == "f" else \
                converted != array
            if changed.any():
                raise Error(f"'{self.inputs[index].name}' is {dtype}, and numbers of {array.dtype} "
                            "beyond its range were given", 6)
            array = converted
        if not array.flags.c_contiguous:
            array = array.copy()
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        tensor = _Tensor(array.ctypes.data, _Device(_CPU, 0), array.ndim,
                         self._types[index], shape, None, 0)
        with self._lock:
            _call("set_input", self._open(), index, ctypes.byref(tensor))

    def set_picture(self, picture: Any, key: int | str | None = None,
                    size: tuple[int, int] = (0, 0), region: dict[str, float] | None = None
                    ) -> None:
        """Writes a picture to an input (the model's only one, if `key` is None) as the artifact
        says that the model was trained.  `picture`: a file, or uint8 (height, width, 3), R, G, B.
        `size`: width and height of what the model sees, where it leaves them open.  `region`: the
        part of the picture that it sees, as regions() gives it."""
        if key is None and len(self.inputs) != 1:
            raise Error(f"the model has {len(self.inputs)} inputs: say which the picture is for", 2)
        index = 0 if key is None else self._index(key)
        sides = [_number(side, "a side of the size") for side in size]
        if len(sides) != 2:
            raise Error(f"the size is {size}, expected width and height", 2)
        part = None if region is None else ctypes.byref(_Region(
            *(region[name] for name in ("x", "y", "width", "height")), region.get("angle", 0.0)))
        if isinstance(picture, (str, bytes, os.PathLike)):
            with self._lock:
                _call("set_region", self._open(), part)
                _call("set_picture", self._open(), index, _text(picture), *sides)
            return
        pixels = np.ascontiguousarray(picture)
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            raise Error(f"a picture is a file or uint8 (height, width, 3), and this is "
                        f"{pixels.dtype} {pixels.shape}", 2)
        with self._lock:
            _call("set_region", self._open(), part)
            _call("set_pixels", self._open(), index, pixels.ctypes.data, pixels.shape[1],
                  pixels.shape[0], *sides)

    def run(self) -> None:
        """Runs the model on what was set."""
        with self._lock:
            _call("run", self._open())

    def get_output(self, index: int, copy: bool = True) -> np.ndarray:
        """A copy of an output of the last run.  `copy=False`: an array to be read only that is the
        model's own memory (of a model on a GPU a copy all the same).  It has these numbers until
        the next run or another value for an input, and may be kept longer than the model."""
        number = _number(index, "the output")
        with self._lock:
            if not copy:
                managed = ctypes.POINTER(_Managed)()
                _call("share_output", self._open(), number, ctypes.byref(managed))
                return np.asarray(_Shared(managed))
            view = _Tensor()
            _call("output", self._open(), number, ctypes.byref(view))
            array = np.empty(tuple(view.shape[:view.ndim]), _dtype(view.dtype))
            if array.nbytes:
                ctypes.memmove(array.ctypes.data, view.data + view.byte_offset, array.nbytes)
            return array

    def results(self, classes: int = 5) -> list[dict[str, Any]]:
        """What the last run found in the picture that was set: a dictionary for each task, with
        the members that run_model/README.md documents; coordinates are pixels of the picture."""
        found = ctypes.c_char_p()
        with self._lock:
            _call("results", self._open(), _number(classes, "classes"), ctypes.byref(found))
            return json.loads(found.value or b"[]")

    def regions(self, detector: Model) -> list[dict[str, Any]]:
        """Where this model is to look at what `detector` found in its last run, the best first: x,
        y, width, height and angle in the picture, by the rule that the artifact's tasks have for
        it, and class, label and score of what was found."""
        found = ctypes.c_char_p()
        first, second = sorted((self, detector), key=id)  # as all threads take them
        with first._lock, second._lock:
            _call("regions", self._open(), detector._open(), ctypes.byref(found))
            return json.loads(found.value or b"[]")

    def see(self, picture: Any, classes: int = 5, size: tuple[int, int] = (0, 0),
            region: dict[str, float] | None = None) -> list[dict[str, Any]]:
        """set_picture(), run() and results()."""
        with self._lock:
            self.set_picture(picture, size=size, region=region)
            self.run()
            return self.results(classes)

    def __call__(self, *arrays: Any, **named: Any) -> list[np.ndarray]:
        """Sets the inputs, by their order or names, runs, and gives all outputs."""
        with self._lock:
            given = {self._index(key): value for key, value in (*enumerate(arrays), *named.items())}
            if len(given) < len(arrays) + len(named):
                raise Error("an input was given by its order and by its name", 2)
            for index, value in given.items():
                self.set_input(index, value)
            self.run()
            return [self.get_output(i) for i in range(self._count("output"))]

    def close(self) -> None:
        """Frees the model; nothing else of it works afterwards."""
        with self._lock:
            handle, self._handle = self._handle, ctypes.c_void_p()
            _LIBRARY.run_model_close(handle)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _LIBRARY.run_model_close(self._handle)

    def __reduce__(self) -> Any:
        raise TypeError("a model cannot be copied or pickled: open it where it is needed")

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise Error("the model was closed", 2)
        return self._handle

    def _info(self, kind: str, index: int) -> _Info:
        info = _Info()
        _call(f"{kind}_info", self._open(), index, ctypes.byref(info))
        return info

    def _count(self, kind: str) -> int:
        count = ctypes.c_size_t()
        _call(f"{kind}_count", self._open(), ctypes.byref(count))
        return count.value

    def _infos(self, kind: str) -> list[TensorInfo]:
        with self._lock:
            infos = [self._info(kind, i) for i in range(self._count(kind))]
            return [TensorInfo(info.name.decode(), tuple(info.shape[:info.ndim]),
                               _dtype(info.dtype)) for info in infos]

    def _share_input(self, index: int, value: Any) -> str:
        """Lets the model read a tensor where it is; else why it cannot."""
        self._open()
        try:
            if value.__dlpack_device__()[0] != _CPU:
                return "it is not in the CPU's memory"
            capsule = value.__dlpack__()
            managed = _capsule_pointer(capsule, b"dltensor")
            tensor = _Managed.from_address(managed).tensor
            if ((tensor.data or 0) + tensor.byte_offset) % _ALIGNMENT:
                return f"it is not aligned to {_ALIGNMENT} bytes, as run_model.empty() makes arrays"
        except AttributeError:
            return f"{type(value).__name__} has no __dlpack__"
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            return str(error)
        try:
            with self._lock:
                _call("share_input", self._open(), index, managed)
        except Error as error:
            if error.code not in (2, 6):
                raise
            return str(error)
        _rename_capsule(capsule, _USED)
        return ""

    def _index(self, key: int | str) -> int:
        if not isinstance(key, str):
            index = _number(key, "the input")
            if index >= len(self.inputs):
                raise Error(f"there is no input {index}: the model has {len(self.inputs)}", 2)
            return index
        names = [info.name for info in self.inputs]
        if key not in names:
            raise Error(f"the model has no input '{key}', but {', '.join(names)}", 6)
        return names.index(key)
