"""Where the tensors of a Relax executable lie in the library that is made of it."""

from __future__ import annotations

import struct

import pytest

from run_model_tools.inside_tvm.relax.aligned_constants import ALIGNMENT, UnknownForm, aligned

TENSOR_MAGIC = 0xDD5E40F096B4A13F
CALL, RETURN, CONSTANT = 1, 2, 2 << 56


def text(value):
    return struct.pack("<Q", len(value)) + value


def numbers(*values):
    return struct.pack(f"<Q{len(values)}q", len(values), *values)


def tensor(data):
    return (struct.pack("<iQQiiiBBH", 70, TENSOR_MAGIC, 0, 1, 0, 1, 1, 8, 1)
            + struct.pack("<qq", len(data), len(data)) + data)


def blob_of(constants, words, scopes=()):
    function = struct.pack("<i", 1) + text(b"main") + struct.pack("<4q", 0, 2, 1, 3) + numbers()
    content = (struct.pack("<Q", 0xD225DE2F4214151E) + text(b"0.14")
               + struct.pack("<Q", 1) + function
               + struct.pack("<Q", len(scopes))
               + b"".join(struct.pack("<q", at) + text(scope) for at, scope in scopes)
               + struct.pack("<Q", len(constants)) + b"".join(constants)
               + numbers(0, 4 + words[3]) + numbers(*words))
    modules = (numbers(0, 1, 1) + numbers(1) + text(b"_lib") + text(b"relax.VMExecutable")
               + text(content))
    return struct.pack("<Q", len(modules)) + modules


def test_large_tensors_are_aligned_and_calls_find_them():
    large, larger = bytes(range(256)) * 5, bytes(reversed(range(256))) * 7
    constants = [struct.pack("<i", 65) + text(b"context"), tensor(large),
                 tensor(b"small"), tensor(larger), struct.pack("<i", 69) + numbers(1, 3)]
    words = [CALL, 1, 0, 5, CONSTANT, CONSTANT | 1, CONSTANT | 3, CONSTANT | 4, 1 << 56 | 3,
             RETURN, 1]
    made = aligned(blob_of(constants, words, scopes=[(3, b"global")]))
    assert struct.unpack_from("<Q", made)[0] == len(made) - 8
    assert made.index(large) % ALIGNMENT == 0 and made.index(larger) % ALIGNMENT == 0
    assert made.count(b"context") == 1 and b"small" in made
    # Text was put before each of the two, so that what comes behind has a higher number.
    changed = [CALL, 1, 0, 5, CONSTANT, CONSTANT | 2, CONSTANT | 5, CONSTANT | 6, 1 << 56 | 3,
               RETURN, 1]
    assert made.endswith(numbers(*changed))
    assert struct.pack("<q", 5) + text(b"global") in made
    assert aligned(made) == made


@pytest.mark.parametrize("damage", [
    lambda blob: blob[:-9],
    lambda blob: blob + b"more",
    lambda blob: blob.replace(struct.pack("<Q", 0xD225DE2F4214151E), bytes(8)),
    lambda blob: blob.replace(struct.pack("<i", 65) + text(b"context"),
                              struct.pack("<i", 99) + text(b"context")),
])
def test_what_is_not_known_is_left_alone(damage):
    blob = blob_of([struct.pack("<i", 65) + text(b"context")], [CALL, 1, 0, 0, RETURN, 1])
    with pytest.raises(UnknownForm):
        aligned(damage(blob))
