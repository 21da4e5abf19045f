"""Runs a Relax executable in TVM's own virtual machine: the actions "run_relax" and
"run_many_relax"."""

import os


def run_model(tvm, request):
    """Runs `library` for each file of `inputs`: npz of arguments in order -> npz of outputs."""
    import numpy as np
    from tvm import relax

    machine = relax.VirtualMachine(tvm.runtime.load_module(request["library"]), tvm.cpu())
    for index, path in enumerate(request["inputs"]):
        with np.load(path) as file:
            given = [tvm.runtime.tensor(file["arr_%d" % i]) for i in range(len(file.files))]
        outputs = flat(machine["main"](*given))
        np.savez(os.path.join(request["outputs"], "%d.npz" % index), *outputs)
    return {}


def run_many(tvm, request):
    """run_model for each of request["requests"]."""
    return {"results": [run_model(tvm, one) for one in request["requests"]]}


def flat(value):
    """The tensors of nested tuples, in order."""
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [one for part in value for one in flat(part)]
