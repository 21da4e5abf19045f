"""Times a whole network with several choices of kernels side by side; runs inside TVM's process."""

import time

import numpy as np

from run_model_tools.inside_tvm import Refusal, faster_folding
from run_model_tools.inside_tvm.tuning import kernel_trials

# Where its buffers happen to lie makes a network a few percent faster or slower: the best of so
# many places counts.
PLACES = 3


class NetworkRace:
    """Runs the whole network under tables of choices, in turn."""

    def __init__(self, tvm, session, mod):
        self._tvm, self._session, self._mod = tvm, session, mod
        random = np.random.default_rng(1)
        self._inputs = {
            var.name_hint: random.standard_normal([int(d) for d in var.checked_type.shape]).astype(
                str(var.checked_type.dtype)) for var in mod["main"].params}
        self._expected = None
        self._built = []

    def run(self, tables):
        """{name: seconds of each run} of {name: table}.  Raises Refusal where results depart."""
        modules = [self._modules(table) for table in tables.values()]
        self._built = [entry for entry in self._built if entry[0] in tables.values()]
        times = [[] for _ in modules]
        end = time.monotonic() + self._session.request["seconds"]
        while time.monotonic() < end or len(times[0]) < 9:
            with kernel_trials.raised_priority(self._session.request.get("real_time", False)):
                for places, samples in zip(modules, times):
                    samples.append(min(map(_seconds, places)))
        return dict(zip(tables, times))

    def _modules(self, table):
        """The network in several places of memory; the last tables' are kept."""
        from tvm.contrib import graph_executor

        from run_model_tools.kernels import choices
        from run_model_tools.kernels.relay import rewriting

        for known, modules in self._built:
            if known == table:
                return modules
        tvm, target = self._tvm, self._session.target
        with choices.replaced_by(table), tvm.transform.PassContext(opt_level=3):
            factory = faster_folding.build(tvm, rewriting.rewrite(self._mod, target).module, target)
        modules = []
        for _ in range(PLACES):
            module = graph_executor.GraphModule(factory["default"](tvm.cpu(0)))
            module.set_input(**self._inputs)
            module.run()
            modules.append(module)
        outputs = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
        self._expected = self._expected or outputs
        for ours, other in zip(outputs, self._expected):
            worst, limit = np.abs(ours - other).max(), kernel_trials.TOLERANCE * np.abs(other).max()
            if not worst <= limit:
                raise Refusal(
                    "wrong", "with other kernels the network's output departs by %g where %g is "
                             "allowed" % (worst, limit))
        self._built.append((table, modules))
        return modules


def _seconds(module):
    # The first run after another module's brings the caches back.
    module.run()
    start = time.perf_counter()
    module.run()
    return time.perf_counter() - start
