"""bench/instructions: reading what the QEMU plugin writes."""

from __future__ import annotations

import shutil

import pytest

from instructions import counting

COUNTS = """elsewhere 7
block 1a0 10 3
ldp q0, q1, [x1], #0x20
fmla v2.4s, v0.4s, v3.s[1]
b.ne #0x5500001a0
block 2b0 4 1
vst1.32 {d0, d1}, [r2]!
"""


def test_blocks_count_as_often_as_they_ran() -> None:
    counts = counting.parse(COUNTS)
    assert counts.elsewhere == 7
    assert counts.total == 34
    assert counts.kinds() == {"multiply_adds": 10, "loads": 10, "stores": 4, "other": 10}


def test_the_hottest_block_is_that_of_the_most_instructions() -> None:
    assert [block.offset for block in counting.parse(COUNTS).hottest(1)] == [0x1A0]


def test_instructions_of_half_precision_get_their_names() -> None:
    objdump = "aarch64-linux-gnu-objdump"
    if not shutil.which(objdump):
        pytest.skip(f"{objdump} is not there")
    counts = counting.parse("""elsewhere 0
block 1a0 10 3
.byte 0xb9, 0x12, 0x39, 0x4f
ldp q21, q28, [x24, #0x80]
.byte 0x00, 0x1c, 0x40, 0x4e
""")
    assert counts.kinds()["multiply_adds"] == 0
    named = counting.named(counts, objdump)
    # The second one of them is no multiplication: mul has another encoding.
    assert named.blocks[0].text[0].split() == ["fmla", "v25.8h,", "v21.8h,", "v9.h[3]"]
    assert named.blocks[0].text[1] == "ldp q21, q28, [x24, #0x80]"
    assert named.kinds()["multiply_adds"] == 10


def test_kinds_of_all_machines() -> None:
    lines = {"vmla.f32 q0, q5, d8[0]": "multiply_adds", "fmadd.s fa0,fa1,fa2,fa0": "multiply_adds",
             "vld1.32 {d10, d11}, [r12]!": "loads", "flw fa0,0(a1)": "loads",
             "stp x0, x1, [sp]": "stores",
             "fsw fa0,0(a1)": "stores", "fmaxnm v0.4s, v1.4s, v2.4s": "other", "": "other"}
    assert {line: counting.kind_of(line) for line in lines} == lines
