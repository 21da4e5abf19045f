"""Measures every kernel that this project offers for a network's layers, for searches among them to
be replayed: the action "record_kernels"."""

import random

from run_model_tools.inside_tvm import tell
from run_model_tools.inside_tvm.tuning import kernel_search, kernel_trials
from run_model_tools.tuners.kernel_space import description_of

# A candidate is dropped, and its memory with it, when it is so many times slower than the best
# after two measurements; those nearer to the best are measured more often.
DROPPED = 1.6
PASSES = ((1.6, 3), (1.3, 4), (1.1, 10))


def record_kernels(tvm, request):
    """{"layers": [{"layer", "description", "flops", "options": [[kernel, parameters]],
    "seconds"}]}: seconds has None for what leaves too little work to divide.

    request["layers"]: the numbers of the layers, all where it is empty; request["list"]: only
    count what there is.
    """
    from run_model_tools.kernels import registry

    session, isa, _, groups, network_bytes = kernel_search.read_layers(tvm, request)
    found = []
    for number, (name, convs) in enumerate(groups.items()):
        conv = next(iter(convs.values()))[0]
        if request["layers"] and number not in request["layers"]:
            continue
        offered = registry.options(conv, isa)
        one = {"number": number, "layer": name, "description": description_of(conv),
               "flops": 2 * conv.multiply_adds, "instruction_set": isa.name, "options": offered}
        if not request["list"]:
            trials = kernel_trials.LayerTrials(tvm, session.target, conv, network_bytes,
                                               request["real_time"])
            one["seconds"] = _measure(trials, isa, offered, lambda done, one=one: tell(
                request, "progress", layer=one["layer"], done=done, count=len(one["options"])))
        found.append(one)
    return {"layers": found}


def _measure(trials, isa, offered, progress):
    from run_model_tools.kernels import registry

    seconds, least = [None] * len(offered), None
    for place, (kernel, parameters) in enumerate(offered):
        layer = registry.KERNELS[kernel].make(trials.conv, isa, **parameters)
        least = least or min(kernel_search.THREADS, kernel_search.tasks_of(layer))
        if kernel_search.tasks_of(layer) < least:
            continue
        candidate = trials.add(kernel, parameters, layer)
        candidate.place = place
        with kernel_trials.raised_priority(trials.real_time):
            candidate.measure()
            candidate.measure()
        _drop(trials, seconds)
        progress(place + 1)
    for factor, passes in PASSES:
        near = [c for c in trials.candidates if c.seconds <= factor * trials.best().seconds]
        for number in range(passes):
            random.Random(number).shuffle(near)
            with kernel_trials.raised_priority(trials.real_time):
                for candidate in near:
                    candidate.measure()
    for candidate in trials.candidates:
        seconds[candidate.place] = candidate.seconds
    trials.forget()
    return seconds


def _drop(trials, seconds):
    """Forgets what is far behind, but for the first, which the others are compared with."""
    limit = DROPPED * trials.best().seconds
    for candidate in trials.candidates[1:]:
        if candidate.seconds > limit:
            seconds[candidate.place] = candidate.seconds
            candidate.forget()
    trials.candidates[1:] = [c for c in trials.candidates[1:] if c.seconds <= limit]
