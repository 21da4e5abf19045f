"""Makes the Relax artifacts of one release: `PYTHON relax_worker.py FOLDER [CASE...]`.

Runs inside TVM 0.25 to 0.27.  Every case becomes FOLDER/<case>/, holding inputs.npz, expected.npz
(what this release's own virtual machine answered, the same in every mode) and a folder for each
form; FOLDER/cases.json describes them.
"""

import json
import os
import sys

import numpy as np
import relax_networks
import tvm
from tvm import relax

# Without section padding and local symbols, which the loader does not need, libraries are a third
# smaller.
LINK_OPTIONS = ["-Wl,--strip-all", "-Wl,-z,noseparate-code", "-Wl,--build-id=none"]

HOST = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "x86-64-v2"}

# machine as in uname -m -> (TVM target, compiler that links)
CROSS = {
    "aarch64": ({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]},
                "aarch64-linux-gnu-g++"),
    "armv7l": ({"kind": "llvm", "mtriple": "armv7l-linux-gnueabihf", "mfloat-abi": "hard",
                "mattr": ["+neon"]}, "arm-linux-gnueabihf-g++"),
    "riscv64": ({"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mcpu": "generic-rv64",
                 "mattr": ["+m", "+a", "+f", "+d", "+c"], "mabi": "lp64d"},
                "riscv64-linux-gnu-g++"),
}
CROSS_CASES = ("cnn", "mlp_dynamic", "transformer_dynamic", "topk", "several", "branch")
LATEST = "0.27"  # for which every case is made for every machine

# What results of other vector instructions and another C library may differ by.
CROSS_TOLERANCE = 1e-5
LIBM_TOLERANCE = 1e-6


def build(case, target, mode, path, cc="g++"):
    """Writes the library `path`, and the parameters beside it where they are kept apart."""
    executable = relax.build(case.module, tvm.target.Target(target), exec_mode=mode)
    os.makedirs(os.path.dirname(path))
    executable.export_library(path, cc=cc, options=LINK_OPTIONS)
    if case.params:
        np.savez(path[:-3] + "_params.npz", **{"p_%d" % i: p for i, p in enumerate(case.params)})


def flat(value):
    """The tensors of nested tuples, in order."""
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [one for part in value for one in flat(part)]


def run(path, case):
    machine = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
    given = [tvm.runtime.tensor(v) for v in (*case.inputs.values(), *case.params)]
    return flat(machine[case.function](*given))


def make_case(name, root):
    case = relax_networks.CASES[name]()
    folder = os.path.join(root, name)
    os.makedirs(folder)
    np.savez_compressed(os.path.join(folder, "inputs.npz"), **case.inputs)
    tolerances = [0.0 if exact else LIBM_TOLERANCE for exact in case.exact]
    entries, left_out, expected = [], {}, None

    def add(form, machine, target, where, allowed):
        files = sorted(os.listdir(os.path.join(folder, where)))
        entries.append({"release": str(tvm.__version__), "case": name, "form": form,
                        "machine": machine, "target": json.dumps(target),
                        "function": case.function, "files": ["%s/%s" % (where, f) for f in files],
                        "tolerances": allowed})
    for mode in case.modes:
        path = os.path.join(folder, mode, "model.so")
        build(case, HOST, mode, path)
        outputs = run(path, case)
        if expected is None:
            expected = outputs
        elif any(a.tobytes() != b.tobytes() for a, b in zip(expected, outputs)):
            raise RuntimeError("%s differs between the modes" % name)
        add(mode, "x86_64", HOST, mode, tolerances)
    np.savez_compressed(os.path.join(folder, "expected.npz"),
                        **{"output_%d" % i: value for i, value in enumerate(expected)})
    crossed = name in CROSS_CASES or str(tvm.__version__).startswith(LATEST)
    for machine, (target, compiler) in CROSS.items() if crossed else ():
        try:
            build(case, target, "bytecode", os.path.join(folder, machine, "model.so"), compiler)
        except Exception as error:  # whatever the release says, it lacks the machine
            left_out["%s for %s" % (name, machine)] = str(error).strip().splitlines()[-1]
            continue
        add("bytecode", machine, target, machine, [CROSS_TOLERANCE] * len(case.exact))
    return entries, left_out


def main():
    root = sys.argv[1]
    made = {"release": str(tvm.__version__), "entries": [], "left_out": {}}
    for name in sys.argv[2:] or relax_networks.CASES:
        try:
            entries, left_out = make_case(name, root)
        except Exception as error:
            if os.environ.get("RUN_MODEL_TRACE"):
                raise
            made["left_out"][name] = (str(error).strip() or type(error).__name__).splitlines()[-1]
            print("%s %s: %s" % (tvm.__version__, name, made["left_out"][name]), flush=True)
            continue
        made["entries"] += entries
        made["left_out"].update(left_out)
        print("%s %s: %s" % (tvm.__version__, name, ", ".join(
            e["form"] if e["machine"] == "x86_64" else e["machine"] for e in entries)), flush=True)
    with open(os.path.join(root, "cases.json"), "w") as file:
        json.dump(made, file, indent=1)


if __name__ == "__main__":
    main()
