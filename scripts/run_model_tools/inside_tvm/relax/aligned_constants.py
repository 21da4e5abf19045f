"""The modules that TVM packs into a library, with the executable's tensors on aligned addresses.

TVM writes tensors behind each other, wherever their names and shapes end, so that a runtime has to
copy them all before code that expects aligned memory reads them.  Here constants of text, which
nothing refers to, are put between them.  The format is the one that runtime/relax/executable.h and
runtime/relax/library_blob.cc read.
"""

import os
import struct
import subprocess

ALIGNMENT = 128  # kTensorAlignment in runtime/include/run_model/tensor.h

SYMBOL = "__tvm_ffi__library_bin"
_MAGIC_WITH_SCOPES, _MAGIC = 0xD225DE2F4214151E, 0xD225DE2F4214151D
_KINDS = ("relax.VMExecutable", "relax.Executable")
_INTEGER, _REAL, _TYPE, _TEXT, _SHAPE, _TENSOR = 1, 3, 5, 65, 69, 70
# A tensor's head: two magic words, its device, number of dimensions and element type.
_TENSOR_HEAD = 8 + 8 + 8 + 4 + 4
_LEAST_BYTES = 1024  # what is smaller is copied as fast as it is found
_CALL, _RETURN, _GOTO, _IF = 1, 2, 3, 4
_CONSTANT = 2  # an argument's kind, in the top byte of its word


class UnknownForm(Exception):
    """The bytes are not what this release of TVM was seen to write."""


class _Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        if count < 0 or self.at + count > len(self.data):
            raise UnknownForm("it ends early")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, form="<Q"):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self):
        return self.take(self.number())

    def numbers(self):
        count = self.number()
        return list(struct.unpack("<%dq" % count, self.take(8 * count)))


def write_object(blob, path, compiler, folder):
    """An object file of `blob`, a library's packed modules, with its tensors aligned."""
    data = os.path.join(folder, "modules.bin")
    with open(data, "wb") as file:
        file.write(aligned(blob))
    source = os.path.join(folder, "modules.S")
    with open(source, "w") as file:
        file.write('.section .rodata.modules,"a",%%progbits\n.globl %s\n.type %s,%%object\n'
                   '.balign %d\n%s:\n.incbin "modules.bin"\n.size %s,%d\n'
                   '.section .note.GNU-stack,"",%%progbits\n'
                   % (SYMBOL, SYMBOL, ALIGNMENT, SYMBOL, SYMBOL, os.path.getsize(data)))
    subprocess.run([compiler, "-c", "modules.S", "-o", os.path.abspath(path)], cwd=folder,
                   check=True, capture_output=True, text=True)


def aligned(blob):
    """A blob of the same modules, whose tensors are aligned where the blob is."""
    reader = _Reader(blob)
    if reader.number() != len(blob) - 8:
        raise UnknownForm("its length is another one")
    reader.numbers()  # which module is imported by which
    reader.numbers()
    made = bytearray(blob[:reader.at])
    while reader.at < len(blob):
        kind = reader.text()
        made += struct.pack("<Q", len(kind)) + kind
        if kind == b"_lib":
            continue
        content = reader.text()
        if kind.decode() in _KINDS:
            content = _aligned_executable(content, len(made) + 8)
        made += struct.pack("<Q", len(content)) + content
    made[:8] = struct.pack("<Q", len(made) - 8)
    return bytes(made)


def _aligned_executable(content, start):
    """The executable `content`, whose first byte will be at `start`."""
    reader = _Reader(content)
    magic = reader.number()
    if magic not in (_MAGIC, _MAGIC_WITH_SCOPES):
        raise UnknownForm("its executable is of another kind")
    reader.text()  # the version
    for _ in range(reader.number()):  # functions
        reader.take(4)
        reader.text()
        reader.take(32)
        for _ in range(reader.number()):
            reader.text()
    made = bytearray(content[:reader.at])
    scopes = []
    if magic == _MAGIC_WITH_SCOPES:
        scopes = [(reader.number(), reader.text()) for _ in range(reader.number())]
    # The numbers of scoped constants change, their bytes do not.
    scopes_bytes = 0 if magic == _MAGIC else 8 + sum(16 + len(text) for _, text in scopes)
    constants, places = bytearray(), []  # where each constant went
    count = reader.number()
    base = start + len(made) + scopes_bytes + 8
    written = 0
    for _ in range(count):
        constant, data_at = _constant(reader)
        if data_at is not None and (base + len(constants) + data_at) % ALIGNMENT:
            fill = -(base + len(constants) + 12 + data_at) % ALIGNMENT
            constants += struct.pack("<iQ", _TEXT, fill) + bytes(fill)
            written += 1
        places.append(written)
        constants += constant
        written += 1
    if magic == _MAGIC_WITH_SCOPES:
        made += struct.pack("<Q", len(scopes))
        for number, text in scopes:
            made += struct.pack("<QQ", places[number], len(text)) + text
    made += struct.pack("<Q", written) + constants
    offsets, words = reader.numbers(), reader.numbers()
    if reader.at != len(content):
        raise UnknownForm("something is behind its instructions")
    _renumber(words, offsets, places)
    for numbers in (offsets, words):
        made += struct.pack("<Q%dq" % len(numbers), len(numbers), *numbers)
    return bytes(made)


def _constant(reader):
    """A constant's bytes, and where in them a tensor's data begin that are to be aligned."""
    start = reader.at
    kind = reader.number("<i")
    data_at = None
    if kind == _TENSOR:
        head = reader.take(_TENSOR_HEAD)
        reader.take(8 * struct.unpack_from("<i", head, 24)[0])
        size = reader.number()
        data_at = reader.at - start if size >= _LEAST_BYTES else None
        reader.take(size)
    elif kind == _SHAPE:
        reader.numbers()
    elif kind == _TEXT:
        reader.text()
    elif kind in (_INTEGER, _REAL):
        reader.take(8)
    elif kind == _TYPE:
        reader.take(4)
    else:
        raise UnknownForm("a constant is of the kind %d" % kind)
    return reader.data[start:reader.at], data_at


def _renumber(words, offsets, places):
    """Puts the new numbers of constants into the calls."""
    for at in offsets:
        if words[at] not in (_CALL, _RETURN, _GOTO, _IF):
            raise UnknownForm("an instruction is of the kind %d" % words[at])
        if words[at] != _CALL:
            continue
        for i in range(at + 4, at + 4 + words[at + 3]):
            if words[i] >> 56 == _CONSTANT:
                words[i] = _CONSTANT << 56 | places[words[i] & ((1 << 56) - 1)]
