"""Chooses this project's kernels layer by layer: the action "tune_kernels".

What was measured is kept in request["log"], by layer with a hash of the code that was measured, so
that the next call measures only what is new.  Events are those of session.py.
"""

import hashlib
import json
import re
import statistics
from pathlib import Path

from run_model_tools.files import write_atomically
from run_model_tools.inside_tvm import Refusal, own_kernels
from run_model_tools.inside_tvm.importing import read_onnx
from run_model_tools.inside_tvm.tuning import kernel_trials
from run_model_tools.inside_tvm.tuning.network_race import NetworkRace
from run_model_tools.inside_tvm.tuning.session import Session, require_release
from run_model_tools.tuners.neighbours import Neighbours

# A choice has to be so much faster than the guess: less is not told from noise.
LEAST_GAIN = 0.02

# An artifact runs on more threads than these were measured on: work is not divided among fewer than
# this where the guess divides it further.
THREADS = 4


def tune_kernels(tvm, request):
    """Measures every distinct layer, and the whole network with and without what was found.

    Gives {"layers": {key: ...}, "instruction_set": ...,
    "seconds": {"guess": [...], "chosen": [...], "committed": [...]}}; the last where there are any.
    """
    from run_model_tools.kernels import choices

    session, isa, mod, groups, network_bytes = read_layers(tvm, request)
    session.emit("tasks", network=None, tasks=[
        {"index": i, "name": name, "flops": 2 * next(iter(convs.values()))[0].multiply_adds,
         "occurrences": sum(map(len, convs.values())), "weight": 1}
        for i, (name, convs) in enumerate(groups.items())])
    log = _Log(request)
    found = {}
    for index, (name, convs) in enumerate(groups.items()):
        session.emit("task", index=index)
        session.emit("stage", text="layer %d of %d: %s" % (index + 1, len(groups), name))
        conv = next(iter(convs.values()))[0]
        code = _code_of(conv, isa)
        layer = log.get(name, code)
        if layer is None:
            trials = kernel_trials.LayerTrials(tvm, session.target, conv, network_bytes,
                                               request.get("real_time", False))
            try:
                layer = search_layer(trials, isa, request["options"],
                                     lambda candidate, index=index: (
                    session.emit("trial", index=index, seconds=candidate.seconds)))
            except kernel_trials.WrongResult as error:
                raise Refusal("wrong", "%s: %s" % (name, error)) from error
            trials.forget()
            log.put(name, code, layer)
        for key, occurrences in convs.items():
            found[key] = dict(layer, occurrences=len(occurrences))

    session.emit("stage", text="comparing the whole network")
    race = NetworkRace(tvm, session, mod)
    chosen = choose_in_network(race, found, groups, session)
    tables = {"guess": {}, "chosen": chosen}
    committed = {key: kernel for key, kernel in choices.committed().items() if key in found}
    if committed not in tables.values():
        tables["committed"] = committed
    for key, layer in found.items():
        layer["kept"] = key in chosen
    return {"layers": found, "seconds": race.run(tables), "instruction_set": isa.name,
            "target": str(session.target)}


def read_layers(tvm, request):
    """(session, instruction set, simplified module, what is measured once: {name: {key: layers}},
    the bytes of all weights) of the network that a request names."""
    import onnx

    require_release(tvm)
    from run_model_tools.kernels.fusion import fuse
    from run_model_tools.kernels.relay.reading import NotForUs, read_plan

    session = Session(tvm, request)
    with tvm.transform.PassContext(opt_level=3):
        mod = own_kernels.simplify(
            tvm, read_onnx(onnx.load(request["onnx"]), request), session.target)
    try:
        isa, plan = read_plan(mod, session.target)
    except NotForUs as error:
        raise Refusal("kernels", str(error)) from error
    fuse(plan, isa)
    return (session, isa, mod, *_layers(plan, isa))


def choose_in_network(race, found, groups, session):
    """Of the kernels that alone are faster than the guesses, those that make the network faster.

    A layer that is measured by itself finds its input where it was before; in a network another one
    has just written it, and a thread that reads what another thread wrote waits for it.  So layers
    are changed one after the other, those that promise most first.
    """
    def promise(convs):
        key = next(iter(convs))
        gain = found[key]["guess_microseconds"] - found[key]["microseconds"]
        return gain * sum(map(len, convs.values()))

    table = {}
    hopeful = [(name, convs) for name, convs in groups.items() if promise(convs) > 0]
    for name, convs in sorted(hopeful, key=lambda item: -promise(item[1])):
        session.emit("stage", text="the whole network with another " + name)
        more = dict(table, **{key: (found[key]["kernel"], found[key]["parameters"])
                              for key in convs})
        seconds = race.run({"before": table, "after": more})
        if statistics.median(a / b for a, b in zip(seconds["after"], seconds["before"])) < 1:
            table = more
    return table


def _layers(plan, isa):
    """({what is measured once: {key: layers}}, the bytes of the weights).

    What is added to a sum, how it is clamped and which lanes the channels are in does not change
    what of a few parameters is best.
    """
    from run_model_tools.kernels.choices import key_of
    from run_model_tools.kernels.plan import ConvolutionStep, FusedStep

    groups, size = {}, 0
    for step in plan.steps:
        if isinstance(step, ConvolutionStep):
            layer, parts = step.convolution, [step.convolution]
        elif isinstance(step, FusedStep):
            layer, parts = step.block, step.block.convolutions
        else:
            continue
        key = key_of(layer, isa)
        name = re.sub(r" residual| clamp \S+|(?<= lanes) \w+", "", key)
        groups.setdefault(name, {}).setdefault(key, []).append(layer)
        size += sum(part.weight.nbytes for part in parts)
    return groups, size


def search_layer(trials, isa, limit, on_trial=lambda candidate: None):
    """The best kernel of a layer, of at most `limit` that are tried in the order of Neighbours,
    which no other search was measurably better than (bench/tuners)."""
    from run_model_tools.kernels import registry

    offered = registry.options(trials.conv, isa)
    search = Neighbours(offered)
    by_place = {}
    while len(by_place) < limit:
        places = [search.indices.index(i) for i in search.propose(limit - len(by_place))]
        if not places:
            break
        for place in places:
            kernel, parameters = offered[place]
            layer = registry.KERNELS[kernel].make(trials.conv, isa, **parameters)
            if by_place and tasks_of(layer) < min(THREADS, tasks_of(by_place[0].layer)):
                continue
            by_place[place] = trials.add(kernel, parameters, layer)
        trials.measure()
        search.learn((search.indices[place], 1 / by_place[place].seconds
                      if place in by_place else 0.0) for place in places)
        # Those from before were measured once more.
        search.learn((search.indices[place], 1 / candidate.seconds)
                     for place, candidate in by_place.items())
        for place in places:
            if place in by_place:
                on_trial(by_place[place])
    guess = by_place[0]
    best = trials.best()
    if best.seconds > (1 - LEAST_GAIN) * guess.seconds:
        best = guess
    return {"kernel": best.kernel, "parameters": best.parameters,
            "microseconds": round(1e6 * best.seconds, 2),
            "guess_microseconds": round(1e6 * guess.seconds, 2), "tried": len(by_place),
            "offered": len(offered)}


def tasks_of(layer):
    return max(phase.tasks for phase in layer.phases)


def _code_of(conv, isa):
    """A hash of what would be compiled for a layer."""
    from run_model_tools.kernels import registry
    from run_model_tools.kernels.c_compiler import C_FOLDER

    offered = registry.options(conv, isa)
    digest = hashlib.sha256(repr(offered).encode())
    for kernel, parameters in dict(reversed(offered)).items():
        source = registry.KERNELS[kernel].make(conv, isa, **parameters).c_source()
        digest.update(source.encode())
        for header in _headers(source, C_FOLDER):
            digest.update((C_FOLDER / header).read_bytes())
    return digest.hexdigest()


def _headers(source, folder):
    """The headers that C code includes, and those that they include."""
    found, waiting = set(), [source]
    while waiting:
        for header in re.findall(r'^#include "([^"]+)"', waiting.pop(), re.MULTILINE):
            if header not in found:
                found.add(header)
                waiting.append((folder / header).read_text())
    return sorted(found)


class _Log:
    """Layers that were measured, in a file of JSON; those of another machine do not count."""

    def __init__(self, request):
        self._path = Path(request["log"])
        self._machine = {name: request[name] for name in ("threads", "measured_on", "options")}
        self._layers = {}
        try:
            content = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return
        if content.get("machine") == self._machine:
            self._layers = content["layers"]

    def get(self, key, code):
        entry = self._layers.get(key)
        return entry["found"] if entry and entry["code"] == code else None

    def put(self, key, code, found):
        self._layers[key] = {"code": code, "found": found}
        text = json.dumps({"machine": self._machine, "layers": self._layers}, indent=1)
        write_atomically(self._path, text.encode())
