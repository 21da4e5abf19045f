"""Times kernels of this project for one layer, side by side; runs inside TVM's process."""

import math
import os
from contextlib import contextmanager

import numpy as np

# Weights of a layer that lie in memory at most.
MOST_RUNS = 64

# A candidate so many times slower than the best is not run again after the first rounds.
HOPELESS = 1.15

ROUNDS = 9
WARM_UP_ROUNDS = 2

# Largest difference of two kernels' outputs, as a part of the largest number: Winograd's sums are
# rounded about three times as much as others' (kernels/winograd_error.md), still less than this.
TOLERANCE = 1e-3

# Priority among real-time threads; any is above all others' work.
PRIORITY = 50


class WrongResult(Exception):
    """A kernel that computes something else than another one."""


class Candidate:
    """A kernel with parameters, compiled for a layer.  seconds: the least of one run so far."""

    def __init__(self, kernel, parameters, layer):
        self.kernel = kernel
        self.parameters = parameters
        self.layer = layer
        self.seconds = math.inf
        self._evaluate = None
        self._arguments = None

    def describe(self):
        values = ", ".join("%s %s" % item for item in self.parameters.items())
        return "%s (%s)" % (self.kernel, values)

    def build(self, tvm, target, runs):
        """Compiles `runs` runs in a row, each with weights of its own as in a whole network, where
        the other layers' weights come between."""
        from tvm import te

        from run_model_tools.kernels.relay import operators

        self.runs = runs
        activations = [te.placeholder(shape, dtype, "input%d" % i)
                       for i, (shape, dtype) in enumerate(self.layer.inputs)]
        self.constants = [_copies(constant, runs) for constant in self.layer.constants]
        constants = [te.placeholder(c.shape, str(c.dtype), "constant%d" % i)
                     for i, c in enumerate(self.constants)]
        stage = operators.extern(self.layer, [*activations, *constants], target, runs)
        schedule = te.create_schedule(stage.op)
        self._module = tvm.build(schedule, [*activations, *constants, stage], target)

    def prepare(self, tvm, inputs):
        """Runs it once on `inputs` and gives its output."""
        device = tvm.cpu(0)
        output = tvm.nd.array(np.full(self.layer.output_shape, np.nan, self.layer.output_dtype))
        self._arguments = [*(tvm.nd.array(i) for i in inputs),
                           *(tvm.nd.array(c) for c in self.constants), output]
        self.constants = None
        self._module(*self._arguments)
        self._evaluate = self._module.time_evaluator(self._module.entry_name, device, number=1,
                                                     repeat=2)
        return output.numpy()

    def measure(self):
        """Seconds of one run, now."""
        seconds = min(self._evaluate(*self._arguments).results) / self.runs
        self.seconds = min(self.seconds, seconds)
        return seconds

    def forget(self):
        """Gives the memory back."""
        self._evaluate = self._arguments = self._module = None


def _copies(constant, runs):
    """(runs, numbers); each copy begins at a multiple of 128 bytes as in a file of parameters."""
    unit = 128 // constant.dtype.itemsize
    copies = np.zeros((runs, -(-constant.size // unit) * unit), constant.dtype)
    copies[:, :constant.size] = constant.ravel()
    return copies


class LayerTrials:
    """The candidates of one layer.  network_bytes: of all constants of its network."""

    def __init__(self, tvm, target, conv, network_bytes, real_time):
        self.tvm = tvm
        self.target = target
        self.conv = conv
        self.network_bytes = network_bytes
        self.real_time = real_time
        self.candidates = []
        self._inputs = None
        self._expected = None

    def add(self, kernel, parameters, layer):
        """Compiles a candidate and compares its output with the first's.  Raises WrongResult."""
        candidate = Candidate(kernel, parameters, layer)
        size = sum(c.nbytes for c in layer.constants) or 1
        candidate.build(self.tvm, self.target,
                        max(2, min(MOST_RUNS, math.ceil(self.network_bytes / size))))
        if self._inputs is None:
            random = np.random.default_rng(1)
            self._inputs = [random.standard_normal(shape).astype(dtype)
                            for shape, dtype in layer.inputs]
        output = candidate.prepare(self.tvm, self._inputs)
        output = output[:, written(self.conv, output_lanes(layer))]
        if self._expected is None:
            self._expected = output
        limit = TOLERANCE * np.abs(self._expected).max()
        worst = np.abs(output - self._expected).max()
        if not worst <= limit:
            first = self.candidates[0].describe() if self.candidates else "a finite result"
            raise WrongResult("%s departs by %g from %s where %g is allowed" % (
                candidate.describe(), worst, first, limit))
        self.candidates.append(candidate)
        return candidate

    def measure(self):
        """Times all candidates in turn, and those that may be the best more often."""
        with raised_priority(self.real_time):
            for round_ in range(ROUNDS):
                best = self.best().seconds
                for candidate in self.candidates:
                    if round_ < WARM_UP_ROUNDS or candidate.seconds <= HOPELESS * best:
                        candidate.measure()

    def best(self):
        return min(self.candidates, key=lambda c: c.seconds)

    def forget(self):
        for candidate in self.candidates:
            candidate.forget()


def output_lanes(layer):
    return layer.output_shape[-1]


def written(conv, lanes):
    """Which [block, row, column, lane] of an output are defined, as an index of its axes 1 to 4.

    conv: a Convolution, or layers that are computed together.
    """
    height, width = conv.output_size
    conv = getattr(conv, "convolutions", [conv])[-1]
    blocks = conv.output_shape(lanes)[1]
    mask = np.zeros((blocks, lanes), bool)
    if conv.depthwise and not conv.planar:
        for block, piece in enumerate(conv.input_lanes):
            mask[block, piece.first:piece.first + piece.count] = True
    else:
        mask.reshape(-1)[:conv.output_channels] = True
    return np.broadcast_to(mask[:, None, None, :], (blocks, height, width, lanes))


@contextmanager
def raised_priority(wanted):
    """While it is open, no other program gets this process's CPUs, where the user has the right to
    that."""
    if not wanted:
        yield
        return
    _schedule(os.SCHED_FIFO, PRIORITY)
    try:
        yield
    finally:
        _schedule(os.SCHED_OTHER, 0)


def _schedule(policy, priority):
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setscheduler(int(thread), policy, os.sched_param(priority))
        except ProcessLookupError:
            continue
