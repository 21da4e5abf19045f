"""CUDA C++ -> machine code of one architecture, and PTX for later ones, in one fat binary; by
NVIDIA's libraries, which need no GPU and no driver."""

import ctypes

from run_model_tools.inside_tvm import Refusal


def fat_binary(text, architecture, libraries):
    """architecture: "sm_87".  libraries: {"builtins": path, "nvrtc": path, "nvfatbin": path}."""
    number = architecture.partition("_")[2]
    # NVRTC looks for it by its name, wherever it is itself.
    _load(libraries["builtins"])
    compiler = _load(libraries["nvrtc"])
    cubin = _compile(compiler, text, "sm_" + number, "CUBIN")
    ptx = _compile(compiler, text, "compute_" + number, "PTX")
    linker = _load(libraries["nvfatbin"])
    handle = ctypes.c_void_p()
    options = (ctypes.c_char_p * 1)(b"-64")
    _check(linker.nvFatbinCreate(ctypes.byref(handle), options, ctypes.c_size_t(1)), "nvFatbin")
    try:
        for add, code, more in ((linker.nvFatbinAddCubin, cubin, ()),
                                (linker.nvFatbinAddPTX, ptx, (None,))):
            _check(add(handle, code, ctypes.c_size_t(len(code)), number.encode(), b"kernels",
                       *more), "nvFatbin")
        size = ctypes.c_size_t()
        _check(linker.nvFatbinSize(handle, ctypes.byref(size)), "nvFatbin")
        made = ctypes.create_string_buffer(size.value)
        _check(linker.nvFatbinGet(handle, made), "nvFatbin")
    finally:
        linker.nvFatbinDestroy(ctypes.byref(handle))
    return made.raw


def _load(path):
    try:
        return ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise Refusal("generator", "%s cannot be loaded (%s)" % (path, error)) from error


def _compile(compiler, text, architecture, kind):
    program = ctypes.c_void_p()
    _check(compiler.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0,
                                       None, None), "NVRTC")
    try:
        options = [b"--gpu-architecture=" + architecture.encode(), b"-default-device",
                   b"--std=c++17"]
        status = compiler.nvrtcCompileProgram(program, len(options),
                                              (ctypes.c_char_p * len(options))(*options))
        if status:
            raise Refusal("generator", "NVRTC refuses its kernels for %s: %s" % (
                architecture, _log(compiler, program)))
        size = ctypes.c_size_t()
        _check(getattr(compiler, "nvrtcGet%sSize" % kind)(program, ctypes.byref(size)), "NVRTC")
        made = ctypes.create_string_buffer(size.value)
        _check(getattr(compiler, "nvrtcGet" + kind)(program, made), "NVRTC")
        return made.raw
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


def _log(compiler, program):
    size = ctypes.c_size_t()
    compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    compiler.nvrtcGetProgramLog(program, text)
    lines = text.value.decode(errors="replace").splitlines()
    return next((line for line in lines if "error" in line), "it does not say why")


def _check(status, who):
    if status:
        raise Refusal("generator", "%s fails with status %d" % (who, status))
