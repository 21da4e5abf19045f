"""Files that people take for networks in ONNX: what they are, and how ONNX is made of them."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_EXPORT = "make ONNX of it in PyTorch: torch.onnx.export(model, (example_input,), 'net.onnx')"
_KERAS = "make ONNX of it in Keras: keras.models.load_model(file).export('net.onnx', format='onnx')"
_TENSORFLOW = "make ONNX of it: python3 -m tf2onnx.convert --saved-model FOLDER --output net.onnx"
_FROM_TEXT = ("make bytes of it in Python: onnx.save(onnx.load('file', format='{}'), 'net.onnx')")
_AS_TRAINED = "compile the ONNX file that it was made of"

# The first bytes of files, and what such a file is; what to do instead.  The first that fits holds.
_BEGINNINGS: tuple[tuple[bytes, str, str], ...] = (
    (rb"\x89HDF\r\n\x1a\n", "a file of HDF5, as Keras writes it", _KERAS),
    (rb".{4}\0{4}\{", "weights of safetensors, without the network",
     "load them into their network and " + _EXPORT),
    (rb"GGUF|GGML", "a language model for llama.cpp", "export the model that it was made of"),
    (rb".{4}ORTM", "in ONNX Runtime's own format, which is for one of its releases", _AS_TRAINED),
    (rb"\s*<\?xml|\s*<net\b", "XML, as OpenVINO describes networks", _AS_TRAINED),
    (rb"(?i)\s*<(!doctype )?html", "a page of the web, likely a server's answer that it has no "
     "such file", "look at it, and download the network once more"),
    (rb"version https://git-lfs", "Git's pointer to a large file, not the file",
     "get it: git lfs pull"),
    (rb"7767517\s", "the description of a network for ncnn", _AS_TRAINED),
    (rb"\x7fELF", "compiled already", "run it: run_model"),
    (rb"\s*\{\s*\"ir_?[vV]ersion", "ONNX written as JSON", _FROM_TEXT.format("json")),
    (rb"\s*ir_version:", "ONNX written as text of protobuf", _FROM_TEXT.format("textproto")),
    (rb"\s*<\s*ir_version", "ONNX in its textual syntax", _FROM_TEXT.format("onnxtxt")),
    (rb"\x1f\x8b|\xfd7zXZ|BZh|\x28\xb5\x2f\xfd|7z\xbc\xaf", "compressed", "unpack it first"),
    (rb"\x80[\x02-\x05]", "a pickle of Python's, as PyTorch and scikit-learn write them",
     _EXPORT + "; of scikit-learn: skl2onnx.to_onnx(model, example_input)"),
)
_LONGEST = 64

# The same for archives, by a member's name.
_MEMBERS: tuple[tuple[str, str, str], ...] = (
    (r"(.*/)?(archive_format|serialized_exported_program\.json)", "a program of torch.export",
     "make ONNX of it in PyTorch: torch.onnx.export(torch.export.load(file), f='net.onnx')"),
    (r"(.*/)?data\.pkl", "what PyTorch saves, weights or a whole module",
     "load it in PyTorch, and " + _EXPORT),
    (r"model\.weights\.h5", "a model of Keras", _KERAS),
    (r"(.*/)?saved_model\.pb", "a packed SavedModel of TensorFlow",
     "unpack it, and " + _TENSORFLOW),
    (r".*\.(onnx|tflite)", "an archive with a network in it", "unpack it first"),
)


def instead_of_network(path: Path) -> str:
    """What `path`, which is no network that can be compiled, is and what to do, as the end of a
    sentence: "it is …; …".  Of what is not known, what is expected."""
    found = _of_folder(path) if path.is_dir() else _of_file(path)
    if found is None:
        return ("it is neither ONNX (.onnx) nor TensorFlow Lite (.tflite), or is damaged; export "
                "the network as ONNX, or copy it once more.")
    return f"it is {found[0]}; {found[1]}."


def _of_folder(path: Path) -> tuple[str, str] | None:
    if (path / "saved_model.pb").is_file():
        return "a SavedModel of TensorFlow", _TENSORFLOW
    inside = sorted(file.name for file in path.iterdir() if file.suffix in (".onnx", ".tflite"))
    return "a folder", (f"name the file: {inside[0]}" if inside
                        else "name a file of ONNX or TensorFlow Lite")


def _of_file(path: Path) -> tuple[str, str] | None:
    with open(path, "rb") as file:
        start = file.read(_LONGEST)
    if not start:
        return "empty", "copy it once more"
    if path.name == "saved_model.pb":
        return "a part of a SavedModel of TensorFlow", _TENSORFLOW
    if start.startswith(b"PK"):
        return _first(_MEMBERS, _members(path), re.fullmatch) or (
            "an archive without a network", "export the network as ONNX")
    return _first(_BEGINNINGS, [start], lambda p, text: re.match(p, text, re.DOTALL))


def _first(known: Iterable[tuple[Any, str, str]], texts: list[Any],
           matches: Callable[[Any, Any], Any]) -> tuple[str, str] | None:
    return next(((what, instead) for pattern, what, instead in known
                 if any(matches(pattern, text) for text in texts)), None)


def _members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return []
