"""The device code that a library carries (`__tvm_dev_mblob`), with a module for Vulkan or CUDA in
the place of one that this TVM can make.

This TVM has no code generators for them, so the library is built with an empty WebGPU module, which
stands where the module belongs.
"""

import os
import struct
import subprocess

from run_model_tools.inside_tvm import Refusal

SYMBOL = "__tvm_dev_mblob"
_TYPE_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bool": 1}


def place_holder(tvm):
    """The empty module."""
    return tvm.get_global_func("target.build.webgpu")(tvm.IRModule({}),
                                                      tvm.target.Target("webgpu"))


def vulkan_module(kernels):
    """The bytes of a Vulkan module, its key and format first.

    kernels: (name, types of arguments, launch tags, SPIR-V) of each.
    """
    parts = [_string("vulkan"), _string("vulkan"), _functions(kernels),
             struct.pack("<Q", len(kernels))]
    for name, _, _, code in kernels:
        parts += [_string(name), struct.pack("<IQ", 0, len(code) // 4), code]
    return b"".join(parts)


def cuda_module(kernels, code):
    """The bytes of a CUDA module, its key and format first.

    kernels: (name, types of arguments, launch tags) of each; code: a binary of all of them.
    """
    # TVM calls all that is not PTX so.
    return b"".join([_string("cuda"), _string("cubin"), _functions(kernels),
                     struct.pack("<Q", len(code)), code])


def _functions(kernels):
    parts = [struct.pack("<Q", len(kernels))]
    for name, types, tags, *_ in kernels:
        parts += [_string(name), _string(""), struct.pack("<Q", len(types)),
                  *(_data_type(one) for one in types), struct.pack("<Q", len(tags)),
                  *(_string(tag) for tag in tags)]
    return b"".join(parts)


def with_module(blob, module):
    """The packed imports with a module in the place of the empty one."""
    empty = _string("webgpu") + struct.pack("<QQ", 0, 0)
    if blob.count(empty) != 1 or struct.unpack_from("<Q", blob)[0] != len(blob) - 8:
        raise Refusal("generator", "TVM packs its modules in a way that is not known")
    body = blob[8:].replace(empty, module)
    return struct.pack("<Q", len(body)) + body


def link(library, module, path, compiler, options):
    """What export_library() does, for a library whose device module is the empty one."""
    import tvm

    packed = tvm.get_global_func("runtime.ModulePackImportsToNDArray")(library).numpy().tobytes()
    stem = path + ".parts"
    files = [stem + end for end in (".o", ".S", ".blob")]
    try:
        library.save(files[0])
        with open(files[2], "wb") as file:
            file.write(with_module(packed, module))
        with open(files[1], "w") as file:
            file.write(_ASSEMBLY.format(symbol=SYMBOL, path=files[2]))
        done = subprocess.run([compiler or "g++", "-shared", "-fPIC", "-o", path, *files[:2],
                               *options], capture_output=True, text=True)
        if done.returncode != 0:
            raise Refusal("link", done.stderr.strip()[-2000:])
    finally:
        for name in files:
            if os.path.exists(name):
                os.remove(name)


# %object and %progbits where @ begins a comment, as on 32-bit Arm; all assemblers take them.
_ASSEMBLY = """\
.section .rodata,"a",%progbits
.globl {symbol}
.type {symbol}, %object
.balign 16
{symbol}:
.incbin "{path}"
.size {symbol}, . - {symbol}
.section .note.GNU-stack,"",%progbits
"""


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _data_type(text):
    word = text.rstrip("0123456789")
    if text == "handle":
        return struct.pack("<BBH", _TYPE_CODES["handle"], 64, 1)
    return struct.pack("<BBH", _TYPE_CODES[word], int(text[len(word):] or 1), 1)
