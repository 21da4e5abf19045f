"""C code of a layer -> LLVM IR or an object file, by the Clang that came with TVM's LLVM."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from run_model_tools.environment import DATA_ROOT, TVM_DIR
from run_model_tools.kernels import code_cache
from run_model_tools.kernels.layer import Layer

C_FOLDER = DATA_ROOT / "kernels" / "c"

# What the C code may assume, and how it is optimised.  Contracting lets a * b + c become one fused
# multiply-add.  No name of the C library is assumed to be there but memcpy and memset.
_FLAGS = ("-x", "c", "-std=gnu17", "-O3", "-ffp-contract=fast", "-fno-math-errno",
          "-fno-trapping-math", "-ffreestanding", "-fno-stack-protector", "-fno-unwind-tables",
          "-fno-asynchronous-unwind-tables", "-fPIC", "-Wall",
          "-Werror=implicit-function-declaration")


class CompileError(Exception):
    """What Clang said, or that there is no Clang."""


def find_clang() -> str:
    """The program: what RUN_MODEL_CLANG names, build/tvm's, or the PATH's of LLVM 19 or older."""
    named = os.environ.get("RUN_MODEL_CLANG")
    beside = TVM_DIR / "bin" / "clang"
    for program in (named, str(beside), shutil.which("clang-19"), shutil.which("clang")):
        if program and os.access(program, os.X_OK):
            return program
    raise CompileError("no Clang was found, which compiles the kernels: run scripts/setup.sh, or "
                       "name one of release 19 or older in RUN_MODEL_CLANG")


def target_flags(attributes: dict[str, Any]) -> list[str]:
    """Clang's flags for the attributes of a TVM target (mtriple, mcpu, mattr, mfloat-abi, mabi)."""
    triple = str(attributes.get("mtriple") or "x86_64-unknown-linux-gnu")
    flags = [f"--target={triple}"]
    cpu = attributes.get("mcpu")
    if cpu:
        flags.append(("-march=" if triple.startswith("x86_64") else "-mcpu=") + str(cpu))
    for feature in attributes.get("mattr") or ():
        flags += ["-Xclang", "-target-feature", "-Xclang", str(feature)]
    for name in ("mfloat-abi", "mabi"):
        if attributes.get(name):
            flags.append(f"-{name}={attributes[name]}")
    return flags


def compile_to_ir(source: str, flags: list[str], entries: list[str] | None) -> str:
    """LLVM IR as text, in which `entries` are the only functions with a body, if they are given.

    Any other function would become external in TVM's hands and could be taken for one of another
    layer.  Raises CompileError.
    """
    def for_tvm(code: bytes) -> bytes:
        bodies = re.findall(rb"^define [^@]*@([\w.$]+)\(", code, re.MULTILINE)
        found = sorted(body.decode() for body in bodies)
        if entries is not None and found != sorted(entries):
            raise CompileError(
                f"a kernel's code has the functions {', '.join(found)}, and "
                f"{', '.join(sorted(entries))} were expected: the others must be inlined")
        # Code generation for the CPU is TVM's: with other features here LLVM would not inline.
        return re.sub(rb' "(target-cpu|target-features|tune-cpu)"="[^"]*"', b"", code)

    arguments = [*_FLAGS, *flags, f"-I{C_FOLDER}", "-S", "-emit-llvm"]
    return _compiled(arguments, source, for_tvm).decode()


def layers_to_objects(layers: Iterable[Layer], of_cpu: list[str], of_isa: Iterable[str],
                      folder: Path, hidden: bool = True) -> list[str]:
    """Object files in `folder` of all layers of different code, as many made at a time as there are
    CPUs.  The flags and `hidden` are those of c_to_object()."""
    def made(layer: Layer) -> str:
        path = folder / f"{layer.symbol(0)}.o"
        c_to_object(layer.c_source(), of_cpu, path, tuple(of_isa), hidden)
        return str(path)

    different = {layer.symbol(0): layer for layer in layers}.values()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(made, different))


def c_to_object(source: str, flags: list[str], path: Path, of_isa: tuple[str, ...] = (),
                hidden: bool = True) -> None:
    """An object file of C code that calls kernels, or is some.  `flags` say the CPU alone
    (target_flags()); of_isa: Isa.flags, where features are for the way to LLVM's IR only: the CPU
    may lack them.  `hidden`: only the library that it becomes part of sees its functions.
    Raises CompileError."""
    visible = ["-fvisibility=hidden"] if hidden else []
    if "-target-feature" in of_isa:
        ir = compile_to_ir(source, [*visible, *flags, *of_isa], None)
        code = _compiled(["-x", "ir", "-O3", *flags, "-fPIC", "-c"], ir)
    else:
        code = _compiled([*_FLAGS, *visible, *flags, *of_isa, f"-I{C_FOLDER}", "-c"], source)
    path.write_bytes(code)


def _compiled(arguments: list[str], source: str,
              finish: Callable[[bytes], bytes] = bytes) -> bytes:
    """What `finish` makes of what Clang makes of a source, which is kept."""
    clang = find_clang()
    key = code_cache.key_of(clang, arguments, source, C_FOLDER)
    kept = code_cache.find(key)
    if kept is not None:
        return kept
    done = subprocess.run([clang, *arguments, "-o", "-", "-"], input=source.encode(),
                          capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-3000:]
        raise CompileError(f"{clang} could not compile a kernel:\n{said}")
    code = finish(done.stdout)
    code_cache.keep(key, code)
    return code
