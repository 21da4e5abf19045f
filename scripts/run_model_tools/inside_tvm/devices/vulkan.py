"""TVM's missing code generator for Vulkan: kernels -> GLSL -> SPIR-V -> a module as TVM's own."""

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.devices import blob, glsl, spirv

_GENERATOR = "target.build.vulkan"


class Shaders:
    """Of the networks that were built last: what takes the empty module's place."""

    def __init__(self):
        self.kernels = []
        self.features = set()


def install(tvm):
    """Lets TVM compile for Vulkan from now on; gives the Shaders of what it compiles."""
    shaders = Shaders()

    def build(module, target):
        texts, described = {}, []
        shaders.features.clear()
        for variable, function in module.functions.items():
            name = str(function.attrs["global_symbol"])
            try:
                shader = glsl.shader_of(tvm, function)
            except glsl.Unknown as error:
                raise Refusal("generator", "the kernel %s has %s, which its shaders cannot say" % (
                    name, error)) from error
            texts[name] = shader.text
            shaders.features.update(shader.features)
            tags = [str(tag) for tag in function.attrs["tir.kernel_launch_params"]]
            described.append((name, shader.argument_types, tags))
        code = spirv.assemble(texts)
        shaders.kernels[:] = [(*one, code[one[0]]) for one in described]
        return blob.place_holder(tvm)

    tvm.register_func("target.build.vulkan", build, override=True)
    return shaders
