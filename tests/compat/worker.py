"""Makes the artifacts of one release: `build/compat/<version>/python worker.py FOLDER`.

Runs inside TVM 0.7 to 0.18.  Every case becomes FOLDER/<case>/, holding inputs.npz, expected.npz
(what this release's own runtime answered, the same for every form) and a file or folder for each
form; FOLDER/cases.json describes them.
"""

import json
import os
import sys
import tarfile
import tempfile

import numpy as np
import tvm
from tvm import relay

import networks

# Without section padding and local symbols, which the loader does not need, libraries are a third
# smaller.
LINK_OPTIONS = ["-Wl,--strip-all", "-Wl,-z,noseparate-code", "-Wl,--build-id=none"]

# One that all forms are made of; the other cases are graph, library and parameters.
ALL_FORMS_CASE = "cnn"

# machine as in uname -m -> (TVM target, compiler that links)
CROSS = {
    "aarch64": ("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon",
                "aarch64-linux-gnu-g++"),
    "armv7l": ("llvm -device=arm_cpu -mtriple=armv7l-linux-gnueabihf -mfloat-abi=hard -mattr=+neon",
               "arm-linux-gnueabihf-g++"),
    "riscv64": ("llvm -mtriple=riscv64-linux-gnu -mcpu=generic-rv64 -mattr=+m,+a,+f,+d,+c "
                "-mabi=lp64d", "riscv64-linux-gnu-g++"),
}

# What results of other vector instructions and another C library may differ by.
CROSS_TOLERANCE = 1e-5
LIBM_TOLERANCE = 1e-6

try:
    from tvm.contrib import graph_executor
except ImportError:
    from tvm.contrib import graph_runtime as graph_executor  # 0.7


def version():
    return str(tvm.__version__)


def at_least(*wanted):
    return tuple(int(part) for part in version().split(".")[:2]) >= wanted


def build(case, target, linked=False):
    options = {}
    if linked and at_least(0, 9):
        options["executor"] = relay.backend.Executor("graph", {"link-params": True})
    elif linked:
        target += " -link-params=1"
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(case.module, target=target, params=case.params, **options)


def graph_json(factory):
    return factory.get_graph_json() if hasattr(factory, "get_graph_json") else factory.get_json()


def params_bytes(factory):
    save = getattr(tvm.runtime, "save_param_dict", None) or relay.save_param_dict
    return save(factory.get_params())


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, (bytes, bytearray)) else data.encode())


def run(module, case):
    """The outputs of a graph executor for the case's inputs."""
    for name, value in case.inputs.items():
        module.set_input(name, tvm.nd.array(value))
    module.run()
    outputs = []
    for index in range(module.get_num_outputs()):
        array = module.get_output(index)
        outputs.append(array.numpy() if hasattr(array, "numpy") else array.asnumpy())
    return outputs


def run_triple(folder, stem, case):
    with open(os.path.join(folder, stem + ".json")) as file:
        graph = file.read()
    library = tvm.runtime.load_module(os.path.join(folder, stem + ".so"))
    module = graph_executor.create(graph, library, tvm.cpu(0))
    params = os.path.join(folder, stem + ".params")
    if os.path.exists(params):
        with open(params, "rb") as file:
            module.load_params(bytearray(file.read()))
    return run(module, case)


def write_triple(factory, folder, cc=None):
    os.makedirs(folder, exist_ok=True)
    options = {"cc": cc} if cc else {}
    factory.get_lib().export_library(os.path.join(folder, "model.so"), options=LINK_OPTIONS,
                                     **options)
    write(os.path.join(folder, "model.json"), graph_json(factory))
    write(os.path.join(folder, "model.params"), params_bytes(factory))


def make_triple(case, folder):
    write_triple(build(case, case.target), folder)
    return run_triple(folder, "model", case)


def make_single(case, folder):
    """Graph, parameters and code in one library."""
    path = os.path.join(folder, "single.so")
    build(case, case.target).export_library(path, options=LINK_OPTIONS)
    library = tvm.runtime.load_module(path)
    return run(graph_executor.GraphModule(library["default"](tvm.cpu(0))), case)


def make_tar(case, folder):
    """The package of the tvmc program."""
    path = os.path.join(folder, "tvmc.tar")
    if at_least(0, 8):
        from tvm.driver.tvmc.compiler import compile_model
        from tvm.driver.tvmc.model import TVMCModel
        module = TVMCModel(case.module, {k: v.numpy() for k, v in case.params.items()})
        compile_model(module, target=case.target, package_path=path)
    else:
        from tvm.driver.tvmc.compiler import save_module
        factory = build(case, case.target)
        save_module(path, graph_json(factory), factory.get_lib(), factory.get_params())
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(path) as archive:
            archive.extractall(scratch)
        return run_triple(scratch, "mod", case)


def make_linked(case, folder):
    """Weights as data of the library; there is no parameters file."""
    folder = os.path.join(folder, "linked")
    factory = build(case, case.target, linked=True)
    write_triple(factory, folder)
    os.remove(os.path.join(folder, "model.params"))
    return run_triple(folder, "model", case)


def make_mlf(case, folder):
    """The Model Library Format: object files, graph and parameters in a tar.

    TVM runs these on microcontrollers only, so the triple's answer is what is expected.
    """
    from tvm import micro
    factory = build(case, case.target)
    micro.export_model_library_format(factory, os.path.join(folder, "mlf.tar"))
    return


FORMS = {"triple": make_triple, "single": make_single, "tar": make_tar, "linked": make_linked,
         "mlf": make_mlf}


def list_files(folder, names):
    found = []
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            found += [name + "/" + inner for inner in sorted(os.listdir(path))]
        elif os.path.exists(path):
            found.append(name)
    return found


FORM_FILES = {"triple": ["model.so", "model.json", "model.params"], "single": ["single.so"],
              "tar": ["tvmc.tar"], "linked": ["linked"], "mlf": ["mlf.tar"]}


def reason(error):
    """The point of TVM's message, without the list of what else there is."""
    return str(error).strip().splitlines()[-1].split(". Candidates are")[0]


def entry(name, form, machine, target, folder, files, tolerances):
    return {"release": version(), "case": name, "form": form, "machine": machine,
            "target": target, "files": list_files(folder, files), "tolerances": tolerances}


def make_case(name, root):
    case = networks.CASES[name]()
    folder = os.path.join(root, name)
    os.makedirs(folder)
    np.savez_compressed(os.path.join(folder, "inputs.npz"), **case.inputs)
    tolerances = [0.0 if exact else LIBM_TOLERANCE for exact in case.exact]
    entries, left_out, expected = [], {}, None
    for form, make in FORMS.items():
        if form != "triple" and name != ALL_FORMS_CASE:
            continue
        try:
            outputs = make(case, folder)
        except Exception as error:  # whatever the release says, it lacks the form
            if form == "triple":
                raise
            left_out[form] = reason(error)
            continue
        if expected is None:
            expected = outputs
        elif outputs is not None:
            for one, other in zip(expected, outputs):
                if one.tobytes() != other.tobytes():
                    raise RuntimeError("%s as %s differs from the triple" % (name, form))
        entries.append(entry(name, form, "x86_64", case.target, folder, FORM_FILES[form],
                             tolerances))
    np.savez_compressed(os.path.join(folder, "expected.npz"),
                        **{"output_%d" % i: value for i, value in enumerate(expected)})
    if name == ALL_FORMS_CASE:
        for machine, (target, compiler) in CROSS.items():
            try:
                write_triple(build(case, target), os.path.join(folder, machine), compiler)
            except Exception as error:
                left_out[machine] = reason(error)
                continue
            entries.append(entry(name, "triple", machine, target, folder, [machine],
                                 [CROSS_TOLERANCE] * len(case.exact)))
    return entries, left_out


def main():
    root = sys.argv[1]
    made = {"release": version(), "entries": [], "left_out": {}}
    for name in sys.argv[2:] or networks.CASES:
        entries, left_out = make_case(name, root)
        made["entries"] += entries
        made["left_out"].update(left_out)
        print("%s %s: %s" % (version(), name, ", ".join(
            e["form"] if e["machine"] == "x86_64" else e["machine"] for e in entries)), flush=True)
    with open(os.path.join(root, "cases.json"), "w") as file:
        json.dump(made, file, indent=1)


if __name__ == "__main__":
    main()
