"""A compiled network -> the files that TVM itself writes of it."""

import itertools
import json
import os
import re

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.devices.code import blob


def export(module, path, request, whole=False):
    """Links a library with the request's compiler.

    whole: a function that is missing in it is an error now, and not only on the board.
    """
    options = {"cc": request["cc"]} if request.get("cc") else {}
    # Debug sections and local symbols are of no use on a board; the exported names stay.
    options["options"] = ["-Wl,--strip-all"]
    if whole:
        options["options"].append("-Wl,-z,defs")
    if "made" in request:
        blob.link(module, request["made"].module, path, request.get("cc"), options["options"])
        return
    if request.get("objects"):
        options["addons"] = list(request["objects"])
    try:
        module.export_library(path, **options)
    except (RuntimeError, OSError, ValueError) as error:
        raise Refusal("link", str(error).strip()) from error


def complete_c(tvm):
    """Lets C code call fabs(), for which TVM has no rule; more than once is the same."""
    if not hasattr(complete_c, "done"):
        complete_c.done = True
        tvm.ir.register_intrin_lowering("tir.fabs", target="c", f=lambda call: (
            tvm.tir.call_pure_extern(call.dtype, "fabsf" if call.dtype == "float32" else "fabs",
                                     call.args[0])))


def write_c_source(factory, directory):
    """Writes model.c, all of the model's functions."""
    library = factory.get_lib()
    modules = [library] + list(library.imported_modules)
    others = [m.type_key for m in modules if m.type_key != "c"]
    if others or len(modules) != 1:
        raise Refusal("model", "its C code comes in %d pieces (%s), and one was expected" % (
            len(modules), ", ".join(m.type_key for m in modules)))
    with open(os.path.join(directory, "model.c"), "w") as file:
        # TVM writes infinity as inff or inf and NaN alike, which C does not know.
        text = re.sub(r"\binff?\b", "INFINITY", library.get_source())
        file.write(re.sub(r"\bnanf?\b", "NAN", text))


def names_apart(factory, request):
    """(the graph as JSON, its constants by name).

    TVM calls constants p0, p1 ... whatever the inputs are called, which come first.  Which outputs
    count the rows of others is an attribute of the graph.
    """
    text, params = factory.get_graph_json(), dict(factory.get_params())
    graph = json.loads(text)
    if request.get("counted_outputs"):
        if request.get("forms") or request.get("single_file"):
            raise Refusal("model", "of some outputs only the run time knows how many rows they "
                                   "have, which only artifacts without other forms can say")
        graph["attrs"]["counted_outputs"] = ["list_int", request["counted_outputs"]]
        text = json.dumps(graph, indent=2)
    named = [node for node in graph["nodes"] if node["op"] == "null"]
    taken = {node["name"] for node in named}
    if len(taken) == len(named):
        return text, params
    if request.get("forms") or request.get("single_file"):
        raise Refusal("model", "inputs of it are called as TVM calls constants (p0, p1 ...), which "
                               "only artifacts without other forms can have")
    seen, free = set(), ("constant_%d" % number for number in itertools.count())
    for node in named:
        if node["name"] in seen:
            name = next(name for name in free if name not in taken)
            params[name] = params.pop(node["name"])
            node["name"] = name
        seen.add(node["name"])
    return json.dumps(graph, indent=2), params


def write_forms(factory, linked, request):
    """Adds the forms that only TVM itself can make; request["form_paths"] says where."""
    def path_of(form, index=0):
        path = os.path.join(request["directory"], request["form_paths"][form][index])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    wanted = request.get("forms", ())
    if "single" in wanted:
        export(factory, path_of("single"), request)
    if linked is not None:
        left = sorted(str(name) for name in linked.get_params())
        if left:
            raise Refusal("model", "parameters could not be linked: " + ", ".join(left))
        export(linked.get_lib(), path_of("linked"), request)
        with open(path_of("linked", 1), "w") as file:
            file.write(linked.get_graph_json())
    if "mlf" in wanted:
        from tvm.micro import export_model_library_format

        export_model_library_format(factory, path_of("mlf"))
