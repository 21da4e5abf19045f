"""Times a whole network with several choices of kernels side by side; runs inside TVM's process."""

import time

import numpy as np

from run_model_tools.inside_tvm import Refusal, faster_folding
from run_model_tools.inside_tvm.run import PLACES
from run_model_tools.inside_tvm.tuning import compared_values, kernel_trials


class NetworkRace:
    """Runs the whole network under tables of choices, in turn."""

    def __init__(self, tvm, session, mod):
        self._tvm, self._session, self._mod = tvm, session, mod
        random = np.random.default_rng(1)
        self._inputs = {
            var.name_hint: random.standard_normal([int(d) for d in var.checked_type.shape]).astype(
                str(var.checked_type.dtype)) for var in mod["main"].params}
        self._compared = compared_values.with_values(tvm, mod)
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
        for known, modules in self._built:
            if known == table:
                return modules
        factory = self._build(self._mod, table)
        modules = [self._ran(factory) for _ in range(PLACES)]
        compared = modules[0]
        if self._compared is not self._mod:
            compared = self._ran(self._build(self._compared, table))
        outputs = [compared.get_output(i).numpy() for i in range(compared.get_num_outputs())]
        self._expected = self._expected or outputs
        try:
            compared_values.check(outputs, self._expected, kernel_trials.TOLERANCE)
        except compared_values.Departure as error:
            raise Refusal(
                "wrong", "with other kernels the network's output %s" % error) from error
        self._built.append((table, modules))
        return modules

    def _build(self, mod, table):
        from run_model_tools.kernels import choices
        from run_model_tools.kernels.relay import rewriting

        tvm, target = self._tvm, self._session.target
        with choices.replaced_by(table), tvm.transform.PassContext(opt_level=3):
            return faster_folding.build(tvm, rewriting.rewrite(mod, target).module, target)

    def _ran(self, factory):
        """A module that has run once."""
        from tvm.contrib import graph_executor

        module = graph_executor.GraphModule(factory["default"](self._tvm.cpu(0)))
        module.set_input(**self._inputs)
        module.run()
        return module


def _seconds(module):
    # The first run after another module's brings the caches back.
    module.run()
    start = time.perf_counter()
    module.run()
    return time.perf_counter() - start
