"""CPU features that compiled code may depend on, by LLVM's names.

LLVM's list for a CPU mixes three kinds of names: instructions that compiled code may contain,
instructions that only hand-written code contains, and hints about speed.  Only the first kind
decides whether code runs, and only that goes into metadata.json, where the runtime compares it with
what the CPU says of itself (runtime/cpu/features.h).

Left out on purpose: cryptography and checksums (aes, sha2, pclmul, crc ...).  Nothing in a network
becomes such an instruction, and LLVM's models of CPUs take for granted what vendors leave out: the
Raspberry Pi 4's cortex-a72 has no aes.
"""

from __future__ import annotations

from collections.abc import Iterable

# What the names stand for is in LLVM's X86.td, AArch64Features.td, ARMFeatures.td,
# RISCVFeatures.td.
_X86 = frozenset("""
    sse3 ssse3 sse4.1 sse4.2 sse4a popcnt lzcnt movbe cx16 sahf
    avx avx2 f16c fma fma4 xop tbm bmi bmi2 adx gfni
    avx512f avx512cd avx512bw avx512dq avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni
    avx512bitalg avx512vpopcntdq avx512bf16 avx512fp16 avx512vp2intersect
    avxvnni avxvnniint8 avxvnniint16 avxifma avxneconvert amx-tile amx-int8 amx-bf16
    """.split())
_AARCH64 = frozenset("""
    fp-armv8 neon fullfp16 dotprod fp16fml rdm lse rcpc jsconv complxnum
    i8mm bf16 sve sve2 sme
    """.split())
_ARM = frozenset("""
    vfp3 vfp4 neon hwdiv hwdiv-arm fp-armv8 fullfp16 fp16fml dotprod i8mm bf16
    """.split())
_RISCV = frozenset("""
    m a f d c v zvl256b zvl512b zvl1024b zfh zfhmin zvfh zba zbb zbc zbs zicond
    """.split())

_BY_MACHINE = {"x86_64": _X86, "aarch64": _AARCH64, "armv7l": _ARM, "riscv64": _RISCV}


def needed_features(llvm_features: Iterable[str] | None, machine: str) -> list[str] | None:
    """Of LLVM's features of a target, those without which its code does not run, sorted.

    machine: as `uname -m` says.  None where nothing is known: LLVM was not asked, or the machine is
    another one.
    """
    known = _BY_MACHINE.get(machine)
    if llvm_features is None or known is None:
        return None
    return sorted(known.intersection(llvm_features))
