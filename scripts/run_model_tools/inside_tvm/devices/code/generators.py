"""TVM's missing code generators, for Vulkan and CUDA: kernels -> text -> code -> the bytes of a
module as TVM's own generators make it."""

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.devices.code import blob, cuda_text, glsl, nvrtc, spirv
from run_model_tools.inside_tvm.devices.code.expressions import Unknown


class Made:
    """Of the network that was built last: the module that takes the empty one's place, and what
    it needs of a device, by Vulkan's names; `text` is CUDA's, of all kernels."""

    def __init__(self):
        self.module = b""
        self.text = ""
        self.features = []
        self.placement = None


def install(tvm, kind, libraries, placement):
    """Lets TVM compile for "vulkan" or "cuda" from now on; gives the Made of what it compiles.

    libraries: nvrtc.fat_binary()'s, for "cuda".  `placement` takes in what cannot be said.
    """
    made = Made()
    make = WRITERS[kind]

    def build(module, target):
        made.placement = placement
        make(tvm, made, module, target, libraries)
        return blob.place_holder(tvm)

    tvm.register_func("target.build." + kind, build, override=True)
    return made


def _kernels(tvm, made, module, write):
    """([(name, types of arguments, launch tags)], {name: what write() gives})."""
    described, texts = [], {}
    for function in module.functions.values():
        name = str(function.attrs["global_symbol"])
        try:
            texts[name] = write(function, name)
        except Unknown as error:
            made.placement.note_kernel(tvm, name, "the code for this GPU cannot say %s" % error)
            raise Refusal("generator", "the kernel %s has %s, which cannot be said in code for "
                          "this GPU" % (name, error)) from error
        tags = [str(tag) for tag in function.attrs["tir.kernel_launch_params"]]
        described.append((name, texts[name].argument_types, tags))
    return described, texts


def _vulkan(tvm, made, module, target, libraries):
    described, shaders = _kernels(
        tvm, made, module, lambda function, name: glsl.shader_of(tvm, function))
    code = spirv.assemble({name: shader.text for name, shader in shaders.items()})
    made.module = blob.vulkan_module([(*one, code[one[0]]) for one in described])
    made.features = sorted({f for shader in shaders.values() for f in shader.features})


def _cuda(tvm, made, module, target, libraries):
    described, kernels = _kernels(
        tvm, made, module, lambda function, name: cuda_text.kernel_of(tvm, function, name))
    text = "\n".join([cuda_text.PRELUDE, *(kernel.text for kernel in kernels.values())])
    made.text = text
    code = nvrtc.fat_binary(text, str(target.attrs["arch"]), libraries)
    made.module = blob.cuda_module(described, code)


WRITERS = {"vulkan": _vulkan, "cuda": _cuda}
