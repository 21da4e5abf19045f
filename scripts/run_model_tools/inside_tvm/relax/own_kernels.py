"""Whether a Relax module is compiled with the project's own kernels (run_model_tools.kernels)."""

from run_model_tools.inside_tvm.own_kernels import Unusable, usable_isa


class Code:
    """What a library has besides TVM's code; all modules of one library add to it."""

    def __init__(self):
        self.layers = {}
        """By the names of their functions."""
        self.kernels = []
        """Layers that functions of other objects call."""
        self.objects = []
        """Paths of object files."""

    def add_c(self, text, name, target, folder):
        """Functions in C, as an object file in `folder`."""
        from run_model_tools.kernels.c_compiler import c_to_object, target_flags

        path = folder / (name + ".o")
        c_to_object(text, target_flags(dict(target.attrs)), path, ())
        self.objects.append(str(path))

    def files(self, target, folder):
        """The paths of all object files, those of layers in `folder`."""
        if not self.layers and not self.kernels:
            return self.objects
        from run_model_tools.kernels.isa import isa_of
        from run_model_tools.kernels.relax.emission import objects_of

        return self.objects + objects_of(self.layers, self.kernels, target, isa_of(target), folder)


def wanted_isa(request, target):
    """The instruction set of kernels that the request asks for.  Raises Unusable."""
    wanted = request.get("kernels", "stock")
    if wanted == "stock":
        raise Unusable("not asked for")
    if wanted == "auto" and request["opt_level"] < 3:
        raise Unusable("the optimisation level is below 3")
    return usable_isa(target)


def rewrite(module, target, request, code):
    """(module on our kernels, metadata.json's "kernels"); its layers are added to `code`.  Raises
    Unusable."""
    wanted_isa(request, target)
    from run_model_tools.kernels.convolutions import winograd_bytes
    from run_model_tools.kernels.fusion import fuse
    from run_model_tools.kernels.layers_of_plan import report
    from run_model_tools.kernels.pictures import layouts
    from run_model_tools.kernels.relax.emission import write_module
    from run_model_tools.kernels.relax.importing import read_function
    from run_model_tools.kernels.relay.reading import NotForUs, expect_own_layer, read_plan

    with winograd_bytes.goal(request.get("optimize_for", winograd_bytes.SPEED)):
        try:
            isa, plan = read_plan({"main": read_function(module["main"])}, target)
            expect_own_layer(plan)
        except NotForUs as error:
            raise Unusable(str(error)) from error
        fuse(plan, isa)
        layouts.use_layers(plan, isa)
        made, called = write_module(plan, isa, module, code.layers)
    functions = {name: code.layers[name].note for name in called}
    return made, dict(report(plan, isa), method="ours", functions=functions)
