"""Whether a Relax module is compiled with the project's own kernels (run_model_tools.kernels)."""

from run_model_tools.inside_tvm.own_kernels import Unusable, usable_isa


def rewrite(tvm, module, target, request, folder):
    """(module, objects, report): the module on our kernels, the object files with their code in
    `folder`, and metadata.json's "kernels".  Raises Unusable."""
    wanted = request.get("kernels", "stock")
    if wanted == "stock":
        raise Unusable("not asked for")
    if wanted == "auto" and request["opt_level"] < 3:
        raise Unusable("the optimisation level is below 3")
    if "unrepaired" in request:
        raise Unusable("they are for networks of fixed shapes and for batches of samples that are "
                       "computed apart: %s" % request["unrepaired"])
    from run_model_tools.kernels import winograd_bytes
    from run_model_tools.kernels.fusion import fuse
    from run_model_tools.kernels.layers_of_plan import report
    from run_model_tools.kernels.relax.emission import objects_of, write_module
    from run_model_tools.kernels.relax.importing import read_function
    from run_model_tools.kernels.relay.reading import NotForUs, expect_own_layer, read_plan

    usable_isa(wanted, target)
    with winograd_bytes.goal(request.get("optimize_for", winograd_bytes.SPEED)):
        try:
            isa, plan = read_plan({"main": read_function(module["main"])}, target)
            expect_own_layer(plan)
        except NotForUs as error:
            raise Unusable(str(error)) from error
        fuse(plan, isa)
        made, layers = write_module(plan, isa, module)
    objects = objects_of(layers, target, isa, folder)
    functions = {name: layer.note for name, layer in layers.items()}
    return made, objects, dict(report(plan, isa), method="ours", functions=functions)
