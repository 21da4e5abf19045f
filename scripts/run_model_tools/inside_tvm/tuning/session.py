"""Tuning of TVM's schedules: the actions "tuning_tasks", "layers" and "tune".

What happens meanwhile goes to the file descriptor request["events"], one JSON object a line:
{"event": "tasks", "tasks": [...]}, {"event": "task", "index": ...} and {"event": "trial", ...}.
Trials are kept in request["log"], from which the next call goes on.
"""

import json
import os
import time

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import Refusal, faster_folding, is_supported, pad_channels
from run_model_tools.inside_tvm.building import convert_layout
from run_model_tools.inside_tvm.cpu import llvm_features, native_target
from run_model_tools.inside_tvm.devices.kernels import KINDS
from run_model_tools.inside_tvm.importing import read_onnx
from run_model_tools.inside_tvm.tuning import tunable_layers


class Session:
    """What every method needs of a request: the network, the target, the clock, the log.

    deadline: in time.monotonic() seconds.  trials: how many there may be at most, or None.
    """

    def __init__(self, tvm, request):
        self.tvm = tvm
        self.request = request
        self.target = self._find_target(request["target"], request.get("host"))
        self.is_gpu = self.target.kind.name in KINDS
        self.log = request.get("log")
        self.tuner = request.get("tuner", "xgb")
        self.seed = request.get("seed")
        self.trials = request.get("trials")
        self.threads = request.get("threads", 1)
        self.tracker = request.get("tracker")
        self.measure = request.get("measure", {})
        self.only = set(request.get("tasks") or ())
        self._events = request.get("events")
        self._network = None
        self.start_clock()

    def start_clock(self):
        """Reading the network does not count; its time is not the tuner's to divide."""
        self.deadline = time.monotonic() + 60 * self.request.get("minutes", 0)

    def time_left(self):
        return self.deadline - time.monotonic()

    def emit(self, event, **details):
        if self._events is not None:
            line = json.dumps(dict(details, event=event)) + "\n"
            try:
                os.write(self._events, line.encode())
            except OSError:
                # Whoever listened is gone.  The log has every trial.
                os._exit(1)

    def network(self):
        """The ONNX file as a Relay module, in the layout that the method works on."""
        import onnx

        if self._network is None:
            model = onnx.load(self.request["onnx"])
            if not self.is_gpu:
                pad_channels.pad_channels(model, pad_channels.lanes_of(
                    self.target, llvm_features(self.tvm, self.target)))
            self._network = convert_layout(
                self.tvm, read_onnx(model, self.request), self.request.get("layout"))
        return self._network

    def simplified(self, config=None):
        """The network as it is right before layouts are chosen."""
        with self.tvm.transform.PassContext(opt_level=3, config=config or {}):
            return faster_folding.simplify(self.tvm, self.network(), self.target)

    def wanted(self, index):
        """Whether the user asked for this task."""
        return not self.only or index in self.only

    def vector_lanes(self):
        """Floats in one vector register of the target."""
        features = set(llvm_features(self.tvm, self.target) or ())
        return 16 if "avx512f" in features else 8 if "avx2" in features or "avx" in features else 4

    def host_and_port(self):
        host, port = self.tracker["address"].rsplit(":", 1)
        return host, int(port)

    def _find_target(self, text, host):
        if text == "native":
            text = native_target(self.tvm)
        try:
            return self.tvm.target.Target(text, host) if host else self.tvm.target.Target(text)
        except Exception as error:
            raise Refusal("target", last_line(error)) from error


def require_release(tvm):
    if not is_supported(tvm):
        raise Refusal("import", "its TVM is %s, and tuning is for 0.18: leave "
                      "--tvm-python out" % tvm.__version__)


def list_tasks(tvm, request):
    """The tasks of one method, without measuring anything."""
    require_release(tvm)
    session = Session(tvm, request)
    method = _method(request["method"])
    tasks, signature = method.tasks(session)
    return {"tasks": [task.describe() for task in tasks], "network": signature,
            "target": str(session.target)}


def list_layers(tvm, request):
    """The layers of a network by their templates, for several targets: {target: [[key, ...]]}."""
    require_release(tvm)
    session = Session(tvm, dict(request, target=request["targets"][0]))
    # What comes before the choice of layouts does not depend on the target.
    mod = session.simplified()
    found = {}
    for text in request["targets"]:
        layers, _ = tunable_layers.find(tvm, mod, tvm.target.Target(text))
        found[text] = [layer.keys() for layer in layers]
    return {"layers": found}


def tune(tvm, request):
    """Tunes by one method until its time or its trials are used up."""
    require_release(tvm)
    session = Session(tvm, request)
    method = _method(request["method"])
    tasks, signature = method.tasks(session)
    unknown = sorted(session.only - {task.index for task in tasks})
    if unknown:
        raise Refusal("tasks", "there %s no task %s: tune_model --list lists those from 0 to %d" % (
            "is" if len(unknown) == 1 else "are", ", ".join(map(str, unknown)), len(tasks) - 1))
    session.emit("tasks", tasks=[task.describe() for task in tasks], network=signature)
    if session.tracker:
        check_device(tvm, session)
    session.start_clock()
    result = method.tune(session, tasks) if tasks else {}
    return dict(result or {}, tasks=[task.describe() for task in tasks], network=signature,
                target=str(session.target))


def check_device(tvm, session):
    """Refuses a tracker without such a device, for which TVM would wait for hours."""
    host, port = session.host_and_port()
    key = session.tracker["key"]
    # A server that has just been started takes a moment to register.
    end = time.monotonic() + 10
    while True:
        try:
            known = tvm.rpc.connect_tracker(host, port).summary()["queue_info"]
        except Exception as error:
            raise Refusal("device", "%s does not answer as a tracker: %s" % (
                session.tracker["address"], last_line(error))) from error
        if key in known:
            return
        if time.monotonic() < end:
            time.sleep(0.5)
            continue
        raise Refusal("device", "the tracker %s has no device '%s', but %s" % (
            session.tracker["address"], key, ", ".join(sorted(known)) or "none"))


def _method(name):
    from run_model_tools.inside_tvm.tuning import auto_scheduler, autotvm, metaschedule
    from run_model_tools.inside_tvm.tuning import graph as tune_graph

    return {"autotvm": autotvm, "graph": tune_graph, "auto_scheduler": auto_scheduler,
            "metaschedule": metaschedule}[name]


class Task:
    """One thing to tune, with what decides how much time it gets.

    flops, bytes: of one call, the least that has to be computed and moved.  space: how many
    configurations there are, or None.  keys: of its records (tuning_records).  untuned: (index,
    blocks) of what TVM takes where nothing is tuned (untuned.find), or None.
    """

    # Floating-point operations in the time that one byte takes from memory; a CPU has 5 to 20.
    FLOPS_PER_BYTE = 10

    def __init__(self, index, name, flops, occurrences, size=0, space=None, keys=(),
                 untuned=None):
        self.index = index
        self.name = name
        self.flops = flops
        self.occurrences = occurrences
        self.bytes = size
        self.space = space
        self.keys = keys
        self.untuned = untuned

    def weight(self):
        """The task's share of the network's time, in any unit: what better code could save of."""
        return self.occurrences * max(self.flops, self.FLOPS_PER_BYTE * self.bytes, 1.0)

    def describe(self):
        return {"index": self.index, "name": self.name, "flops": self.flops, "bytes": self.bytes,
                "occurrences": self.occurrences, "weight": self.weight(), "space": self.space,
                "keys": list(self.keys),
                "untuned": dict(zip(("index", "blocks"), self.untuned)) if self.untuned else None}


def share(total, weights, index):
    """What of `total` the first of the remaining weights gets: unused time goes to the others."""
    rest = sum(weights[index:])
    return total * weights[index] / rest if rest else 0.0


def signature_of(session):
    """Identifies networks of the same layers (tunable_layers.signature), in the model's layout."""
    request = dict(session.request, layout=None, events=None)
    plain = session if not session.request.get("layout") else Session(session.tvm, request)
    layers, sequence = tunable_layers.find(session.tvm, plain.simplified(), session.target)
    return tunable_layers.signature(layers, sequence)
