"""Runs artifacts in TVM's own executor: the actions "run", "run_many", "run_on_device" and
"race"."""

import hashlib
import os
import time

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import Refusal

# Where its buffers happen to lie makes a network a few percent faster or slower: the best of so
# many places counts.
PLACES = 3
# Of fewer, nothing could be said with a confidence of 97.5 %.
FEWEST_ROUNDS = 6


def load(tvm, directory, device=None):
    """TVM's executor of the artifact in a folder, on a device or on the CPU."""
    from tvm.contrib import graph_executor

    with open(os.path.join(directory, "model.json")) as file:
        graph = file.read()
    with open(os.path.join(directory, "model.params"), "rb") as file:
        params = file.read()
    library = tvm.runtime.load_module(os.path.join(directory, "model.so"))
    module = graph_executor.create(graph, library, device or tvm.cpu(0))
    module.load_params(bytearray(params))
    return module


def _board(tvm, address, key):
    """A session with a board behind an RPC tracker."""
    host, port = address.rsplit(":", 1)
    try:
        return tvm.rpc.connect_tracker(host, int(port)).request(key, session_timeout=600)
    except Exception as error:
        raise Refusal("device", "%s gives no device '%s': %s" % (
            address, key, last_line(error))) from error


def find_device(tvm, request):
    """{"name"} of the first GPU of a kind ("opencl"), of this machine or of the board of `tracker`,
    [HOST:PORT, key], which may be this machine too (`here`).  Raises Refusal where there is
    none."""
    board = request.get("tracker") and _board(tvm, *request["tracker"])
    try:
        device = (board.device if board else tvm.device)(request["device"], 0)
        name = str(device.device_name) if device.exist else None
    except Exception as error:
        raise Refusal("gpu", "%s: %s" % (
            request["device"], last_line(error))) from error
    if name is None:
        raise Refusal("gpu", "no GPU with a driver for %s was found %s" % (
            request["device"], "on this machine" if request["here"] else "on the board"))
    return {"name": name}


def load_on(board, directory, devices=None):
    """TVM's executor of the artifact in a folder, on a board's CPU or on its `devices`."""
    from tvm.contrib import graph_executor

    # Every file has a name of its own there: libraries of several are loaded at a time, and folders
    # of several artifacts for one target have equal names.
    name = hashlib.sha256(os.path.abspath(directory).encode()).hexdigest()[:16] + ".so"
    board.upload(os.path.join(directory, "model.so"), name)
    with open(os.path.join(directory, "model.json")) as file:
        module = graph_executor.create(file.read(), board.load_module(name),
                                        devices or board.cpu(0))
    with open(os.path.join(directory, "model.params"), "rb") as file:
        module.load_params(bytearray(file.read()))
    return module


def run_model(tvm, request):
    """Runs the files in `directory` in TVM's own executor: npz of inputs -> npz of outputs."""
    import numpy as np

    module = load(tvm, request["directory"])
    with np.load(request["inputs"]) as inputs:
        for name in inputs.files:
            module.set_input(name, inputs[name])
    module.run()
    outputs = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    np.savez(request["outputs"], *outputs)
    return {"outputs": len(outputs)}


def run_many(tvm, request):
    """run_model for each of request["requests"]."""
    return {"results": [run_model(tvm, one) for one in request["requests"]]}


def run_on_device(tvm, request):
    """Runs the files in `directory` on the first GPU of a kind ("opencl"): a list of npz of inputs
    -> npz of outputs, and the device's name; {"absent": why} where there is none.

    No further inputs are taken when `enough` seconds have gone.
    """
    import numpy as np

    try:
        device = tvm.device(request["device"], 0)
        there = device.exist
    except Exception as error:
        return {"absent": last_line(error)}
    if not there:
        return {"absent": "TVM's runtime finds no device of %s" % request["device"]}
    devices = [device, tvm.cpu(0)] if request["with_cpu"] else device
    module = load(tvm, request["directory"], devices)
    start, done = time.monotonic(), 0
    for given, results in zip(request["inputs"], request["outputs"]):
        with np.load(given) as inputs:
            for name in inputs.files:
                module.set_input(name, inputs[name])
        module.run()
        np.savez(results, *[module.get_output(i).numpy() for i in range(module.get_num_outputs())])
        done += 1
        if time.monotonic() - start > request["enough"]:
            break
    return {"name": str(device.device_name), "done": done}


def race(tvm, request):
    """Runs several artifacts in turn and gives each one's milliseconds a run.

    Interleaved, so that what disturbs the machine hits all of them alike.  tracker: [HOST:PORT,
    key] of a board that runs them in the place of this machine.  device: the kind of GPU that they
    are for, or None.
    """
    import numpy as np

    board = request.get("tracker") and _board(tvm, *request["tracker"])
    make, cpu = (board.device, board.cpu(0)) if board else (tvm.device, tvm.cpu(0))
    device = make(request["device"], 0) if request.get("device") else None
    modules = []
    for directory in request["directories"]:
        # What its graph leaves to the CPU has to have one.
        devices = device and [device, cpu]
        # A board and a GPU have not the memory to spare.
        places = [load_on(board, directory, devices) if board else load(tvm, directory, devices)
                  for _ in range(1 if board or device else PLACES)]
        for module in places:
            random = np.random.default_rng(1)
            for name, (shape, dtype) in request["inputs"].items():
                kind = np.dtype(dtype).kind
                value = random.standard_normal(shape) if kind == "f" else np.zeros(shape)
                module.set_input(name, value.astype(dtype))
        modules.append(places)
    times = [[] for _ in modules]
    end = time.monotonic() + request["seconds"]
    rounds = 0
    while rounds < FEWEST_ROUNDS or (time.monotonic() < end and rounds < 100000):
        for places, samples in zip(modules, times):
            samples.append(min(_milliseconds(module, device or (board and cpu))
                               for module in places))
        rounds += 1
    return {"milliseconds": times}


def _milliseconds(module, device):
    """Of a run after one that is not counted, which brings the caches and threads back.

    device: where it has to be timed and waited for; None for this machine's CPU.
    """
    if device:
        timer = module.module.time_evaluator("run", device, number=1, repeat=1)
        return 1000 * timer().results[0]
    module.run()
    start = time.perf_counter()
    module.run()
    return 1000 * (time.perf_counter() - start)
