"""What the kernels need to know of an instruction set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from run_model_tools.inside_tvm.cpu import llvm_features


@dataclass(frozen=True)
class Isa:
    """A vector instruction set, as the kernels use it."""

    name: str
    lanes: int
    """float32 numbers in a vector, which is also how many channels an activation's block has."""
    registers: int
    tile: tuple[int, int]
    """(pixels, vectors of output channels) of the largest register tile."""
    flags: tuple[str, ...]
    """What Clang needs to be told."""
    dot: str | None = None
    """Instructions that multiply int8 by four: "vnni", "dotprod" or None."""
    tiles: tuple[tuple[int, int], ...] = ()
    """The register tiles, if not all that fit (tiles.register_tiles())."""
    amx: bool = False
    """Whether instructions multiply whole tiles of bytes (c/amx.h)."""
    bfloat16: bool = False
    """Whether products of tiles are of numbers that are rounded to bfloat16 (c/bfloat16.h)."""
    half: bool = False
    """Whether activations and weights are float16, and products of them are summed up in float16
    (c/half_tile.h): `lanes` numbers of float16 fill a vector then."""

    @property
    def number(self) -> str:
        """The type of blocked activations and of weights."""
        return "float16" if self.half else "float32"

    @property
    def number_bytes(self) -> int:
        return 2 if self.half else 4

    @property
    def by_lane(self) -> bool:
        """Whether it multiplies by a lane of a register, so that inputs are loaded as vectors."""
        return self.lanes == 4 or self.half

    @property
    def multiplies_pairs(self) -> bool:
        """Whether an instruction multiplies twice as many numbers of int16 as of float32 and adds
        neighbours up in 32 bits (vpmaddwd): NEON takes as many steps as with float32."""
        return self.name in ("avx2", "avx512")

    @property
    def widens_bytes(self) -> bool:
        """Whether bytes are best multiplied as int16: where no instruction takes four at once."""
        widening = ("avx2", "avx512", "neon64", "neon32", "generic")
        return self.dot is None and (self.name in widening or self.is_riscv_vector)

    @property
    def is_riscv_vector(self) -> bool:
        return self.name in ("rvv", "rvv256")

    @property
    def multiplies_lanes(self) -> bool:
        """Whether an instruction multiplies a vector's int16 numbers each with one of another."""
        return self.lanes == 4 or self.is_riscv_vector

    @property
    def word_numbers(self) -> int:
        """How many numbers a word of c/words.h has in layers of bytes."""
        return 2 if self.widens_bytes else 4

    @property
    def dot_offset(self) -> int:
        """What dot() takes from every byte that it multiplies with a weight (words.h: DOT_OFFSET):
        NEON multiplies signed by signed only."""
        return 128 if self.dot == "dotprod" else 0

    def variant(self, *tile: int) -> str:
        """What ends the names of C functions for it with such a register tile: "14x2_avx512"."""
        return "_".join(filter(None, ["x".join(map(str, tile)), self.name]))

    def variant_of_bytes(self, *tile: int) -> str:
        """What ends the names of C functions of layers of bytes: "14x2_avx512vnni"."""
        return self.variant(*tile) + (self.dot or "")

    def defines(self) -> dict[str, object]:
        """The macros that every layer's C code has."""
        return {"LANES": self.lanes, "HALF": 1} if self.half else {"LANES": self.lanes}

    def dot_defines(self) -> dict[str, object]:
        """Those of layers that multiply bytes."""
        return self.defines() | ({"SIGNED_DOT": 1} if self.dot_offset else {})


AVX512 = Isa("avx512", 16, 32, (14, 2), ("-mprefer-vector-width=512",))
AVX512_VNNI = Isa("avx512", 16, 32, (14, 2), ("-mprefer-vector-width=512",), dot="vnni")
AVX512_AMX = replace(AVX512_VNNI, amx=True)
AVX512_BFLOAT16 = replace(AVX512_AMX, bfloat16=True)
AVX2 = Isa("avx2", 8, 16, (6, 2), ())
AVX2_VNNI = replace(AVX2, dot="vnni")
NEON64 = Isa("neon64", 4, 32, (7, 3), ())
NEON64_DOT = Isa("neon64", 4, 32, (7, 3), (), dot="dotprod")
# Of float16 a NEON register holds eight numbers, of float32 two do: what stays float32 in a network
# of float16 has the same blocks.
NEON64_HALF = Isa("neon64fp16", 8, 32, (7, 3), (), half=True)
NEON64_PAIRS = Isa("neon64pairs", 8, 16, (6, 2), ())
NEON32 = Isa("neon32", 4, 16, (4, 2), (), tiles=((7, 1), (4, 2)))
# RISC-V's vectors, of which code that runs on all of them knows 128 bits: a vector of eight has two
# registers then, and one where there are 256.
RVV = Isa("rvv", 8, 16, (6, 2), ())
RVV256 = Isa("rvv256", 8, 32, (14, 2), ())
# Without them four scalars at a time keep registers busy: 6 x 4 sums + 4 weights + an input of 32,
# which are 8 of four.  Clang unrolls no loop over vectors of four unless it takes the CPU to have
# vectors; the code that TVM makes of its IR has scalars all the same (c_compiler.py).
GENERIC = Isa("generic", 4, 8, (6, 1), tiles=((6, 1),), flags=(
    "-Xclang", "-target-feature", "-Xclang", "+v", "-fno-vectorize", "-fno-slp-vectorize"))

# Of any other machine: how a plan for four lanes is tried where it was compiled.
PLAIN = Isa("generic", 4, 32, (6, 1), flags=("-fno-vectorize", "-fno-slp-vectorize"),
            tiles=((6, 1),))


def cpu_of(target: Any) -> str:
    """What a TVM target calls its CPU, for sentences."""
    return str(target.attrs.get("mcpu") or target.attrs.get("mtriple") or target.kind.name)


def has_bfloat16(target: Any) -> bool:
    """Whether the CPU of a TVM target multiplies whole tiles of bfloat16."""
    import tvm

    isa = isa_of(target)
    return isa is not None and isa.amx and "amx-bf16" in llvm_features(tvm, target)


def isa_of(target: Any) -> Isa | None:
    """The instruction set of a TVM target; None where the kernels are of no use (C source, SSE).

    Asks LLVM, in TVM, what the target's CPU has.
    """
    import tvm

    if target.kind.name != "llvm":
        return None
    if "run_model_plain" in target.keys:
        return PLAIN
    triple = str(target.attrs.get("mtriple", "") or "x86_64")
    features = set(llvm_features(tvm, target))
    if triple.startswith("x86_64"):
        if "avx512f" in features:
            if "avx512vnni" not in features:
                return AVX512
            return AVX512_AMX if "amx-int8" in features else AVX512_VNNI
        if not {"avx2", "fma"} <= features:
            return None
        return AVX2_VNNI if "avxvnni" in features else AVX2
    if triple.startswith("aarch64"):
        return NEON64_DOT if "dotprod" in features else NEON64
    if triple.startswith("arm"):
        return NEON32 if "neon" in features else None
    if triple.startswith("riscv64"):
        if "v" not in features:
            return GENERIC
        return RVV256 if "zvl256b" in features else RVV
    return None
