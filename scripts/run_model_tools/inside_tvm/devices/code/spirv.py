"""GLSL -> SPIR-V by Debian's glslang-tools, each shader checked by spirv-tools."""

import os
import shutil
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from run_model_tools.inside_tvm import Refusal

_ENTRY_POINT = 15
_HEADER_WORDS = 5
_PROGRAMS = (("glslangValidator", "glslang-tools"), ("spirv-val", "spirv-tools"))


def require_programs():
    for program, package in _PROGRAMS:
        if shutil.which(program) is None:
            raise Refusal("generator", "%s, which makes and checks its shaders, was not found: "
                          "install it (Debian: apt-get install %s)" % (program, package))


def assemble(shaders):
    """{name: GLSL} -> {name: SPIR-V 1.0 whose entry point has that name}."""
    require_programs()
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder, \
            ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        made = pool.map(lambda item: _assemble(folder, *item), enumerate(shaders.items()))
        return dict(zip(shaders, made))


def _assemble(folder, index, item):
    name, text = item
    source, result = (os.path.join(folder, "%d%s" % (index, end)) for end in (".comp", ".spv"))
    with open(source, "w") as file:
        file.write(text)
    _run(name, ["glslangValidator", "--quiet", "-V", "--target-env", "vulkan1.0", "-g0", "-S",
                "comp", "-o", result, source])
    with open(result, "rb") as file:
        code = with_entry_point(file.read(), name)
    with open(result, "wb") as file:
        file.write(code)
    _run(name, ["spirv-val", "--target-env", "vulkan1.0", result])
    return code


def _run(name, command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["it said nothing"]
        said = next((line for line in lines if "ERROR" in line or "error" in line), lines[0])
        raise Refusal("generator", "%s refuses the shader of the kernel %s: %s" % (
            command[0], name, said[-500:]))


def with_entry_point(code, name):
    """The SPIR-V with its entry point called so, as TVM's modules have it: GLSL knows only
    main."""
    words = list(struct.unpack("<%dI" % (len(code) // 4), code))
    at = _HEADER_WORDS
    while at < len(words):
        length, operation = words[at] >> 16, words[at] & 0xffff
        if operation == _ENTRY_POINT:
            text = name.encode() + b"\0"
            text += b"\0" * (-len(text) % 4)
            main_words = 2  # "main" and what ends it
            new = [words[at + 1], words[at + 2], *struct.unpack("<%dI" % (len(text) // 4), text),
                   *words[at + 3 + main_words:at + length]]
            words[at:at + length] = [(len(new) + 1) << 16 | _ENTRY_POINT, *new]
            return struct.pack("<%dI" % len(words), *words)
        at += max(length, 1)
    raise Refusal("generator", "the shader of the kernel %s has no entry point" % name)
