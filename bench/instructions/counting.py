"""Instructions that QEMU's user-mode emulators execute of a compiled network."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from run_model_tools.errors import MISSING_FILE, ToolError
from run_model_tools.targets import NamedTarget

ROOT = Path(__file__).resolve().parents[2]

# By how mnemonics of AArch64, A32 and RISC-V begin, the first that fits.
_KINDS = (
    ("multiply_adds", ("fmla", "fmls", "vmla", "vmls", "vfma", "vfms", "vfnma", "vfnms", "fmadd",
                       "fmsub", "fnmadd", "fnmsub", "smlal", "umlal", "sdot", "udot")),
    ("loads", ("ld", "vld", "flw", "fld", "lw", "lb", "lh", "c.ld", "c.lw", "c.fld", "pop")),
    ("stores", ("st", "vst", "fsw", "fsd", "sw", "sb", "sh", "sd", "c.sd", "c.sw", "c.fsd",
                "push")),
)


@dataclass(frozen=True)
class Block:
    """Instructions that are executed one after the other, and how often."""

    offset: int
    times: int
    text: tuple[str, ...]

    @property
    def executed(self) -> int:
        return self.times * len(self.text)


@dataclass(frozen=True)
class Counts:
    """Of one inference: the library's blocks, and the instructions of all other code, which include
    those of loading."""

    blocks: tuple[Block, ...]
    elsewhere: int

    @property
    def total(self) -> int:
        return sum(block.executed for block in self.blocks)

    def kinds(self) -> dict[str, int]:
        """How many are vector or scalar multiply-adds, loads, stores, and others."""
        found: Counter[str] = Counter()
        for block in self.blocks:
            for line in block.text:
                found[kind_of(line)] += block.times
        return {name: found[name] for name in ("multiply_adds", "loads", "stores", "other")}

    def hottest(self, count: int) -> list[Block]:
        """The blocks that the most instructions are executed of."""
        return sorted(self.blocks, key=lambda block: -block.executed)[:count]


def kind_of(line: str) -> str:
    """multiply_adds, loads, stores or other, of a line of disassembly."""
    mnemonic = line.split()[0] if line.strip() else ""
    return next((kind for kind, starts in _KINDS if mnemonic.startswith(starts)), "other")


def parse(text: str) -> Counts:
    """What count_library.c writes."""
    first, *lines = text.splitlines()
    blocks, at = [], 0
    while at < len(lines):
        _, offset, times, length = lines[at].split()
        end = at + 1 + int(length)
        text = tuple(line.strip() for line in lines[at + 1:end])
        blocks.append(Block(int(offset, 16), int(times), text))
        at = end
    return Counts(tuple(blocks), int(first.split()[1]))


def named(counts: Counts, objdump: str) -> Counts:
    """The same with names for the instructions that QEMU's disassembler does not know: of those of
    half precision it writes the bytes."""
    unknown = sorted({line for block in counts.blocks for line in block.text
                      if line.startswith(".byte")})
    if not unknown:
        return counts
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(bytes(int(number, 16) for number in line.split(None, 1)[1].split(","))
                            for line in unknown))
        file.flush()
        done = subprocess.run([objdump, "-D", "-b", "binary", "-m", "aarch64", "-z", file.name],
                              capture_output=True, text=True, check=True)
    texts = [" ".join(line.split("\t")[2:]).strip() for line in done.stdout.splitlines()
             if re.match(r"\s*[0-9a-f]+:\t", line)]
    found = dict(zip(unknown, texts, strict=True))
    return replace(counts, blocks=tuple(
        replace(block, text=tuple(found.get(line, line) for line in block.text))
        for block in counts.blocks))


def build_plugin(folder: Path) -> Path:
    """count_library.so, made in `folder`."""
    plugin = folder / "count_library.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(plugin),
                    str(Path(__file__).with_name("count_library.c"))], check=True)
    return plugin


def build_trial(target: NamedTarget, folder: Path) -> Path:
    """bench/trial_run_model.cc for the target's preset, made in `folder`."""
    libraries = [ROOT / "build" / target.preset / room / f"librun_model_{room}.a"
                 for room in ("runtime", "base")]
    for library in libraries:
        if not library.exists():
            raise ToolError(MISSING_FILE, (
                f"{library} is not there: cmake --preset {target.preset} and cmake --build "
                f"--preset {target.preset} make it."))
    program = folder / f"trial_{target.preset}"
    if not program.exists():
        sysroot = ROOT / "build" / "sysroot" / target.preset / "usr" / "include"
        includes = [f"-I{path}" for path in (
            ROOT, ROOT / "base" / "include", ROOT / "runtime" / "include", sysroot)
            if path.exists()]
        flags = shlex.split(os.environ.get("CXXFLAGS", ""))
        subprocess.run([target.compiler, "-std=c++20", "-O2", *flags, *includes, "-o", str(program),
                        str(ROOT / "bench" / "trial_run_model.cc"), *map(str, libraries), "-ldl",
                        "-pthread"], check=True)
    return program


def count(target: NamedTarget, program: Path, plugin: Path, artifact: Path,
          input_name: str) -> Counts:
    """One inference of an artifact, on one thread."""
    out = plugin.with_name("counts.txt")
    emulator, *options = target.emulator
    done = subprocess.run([emulator, "-plugin", f"{plugin},out={out},library=/model.so", *options,
                           str(program), "0", "0", str(artifact), input_name],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "TVM_NUM_THREADS": "1"})
    if done.returncode:
        raise ToolError(MISSING_FILE,
                        f"{artifact} did not run under {emulator}: {done.stderr.strip()}")
    counts = parse(out.read_text(encoding="utf-8"))
    if target.machine != "aarch64":
        return counts
    return named(counts, target.compiler.replace("g++", "objdump"))
