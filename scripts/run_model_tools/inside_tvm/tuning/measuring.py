"""What AutoTVM's builder and runner do of a trial in another way than TVM, in their processes."""

import gc
import os
import threading
import time
import traceback
from contextlib import contextmanager
from random import getrandbits

import tvm
from tvm.autotvm.measure import measure_methods

from run_model_tools.inside_tvm.devices.code import blob, generators
from run_model_tools.inside_tvm.devices.placement import Placement

_SOON = 0.1


class DeviceBuild:
    """Makes the library of a kernel for Vulkan or CUDA, whose code our generators write: a trial ->
    BuildResult."""

    def __init__(self, request):
        self._libraries, self._compiler = request.get("libraries"), request.get("cc")

    def __call__(self, trial, folder, **options):
        start = time.time()
        try:
            made = generators.install(tvm, trial.target.kind.name, self._libraries, Placement())
            # pylint: disable-next=protected-access
            kernel, arguments = measure_methods._build_func_common(trial, **options)
            path = os.path.join(folder, "trial%x.so" % getrandbits(64))
            blob.link(kernel, made.module, path, self._compiler, ["-Wl,--strip-all"])
        except Exception as error:
            # AutoTVM knows one of its own by its name in the text; not every kind of exception can
            # be sent to it.
            said = "%s: %s" % (type(error).__name__, error)
            return measure_methods.BuildResult(
                None, None, (traceback.format_exc(), RuntimeError(said)), time.time() - start)
        return measure_methods.BuildResult(path, arguments, None, time.time() - start)


class PromptLoader(measure_methods.DefaultModuleLoader):
    """Gives a board back as soon as a trial has failed there: an error of TVM's has itself and the
    session in a cycle, and the board serves nobody else until that session's time is over."""

    @contextmanager
    def __call__(self, remote_kwargs, build_result):
        try:
            with super().__call__(remote_kwargs, build_result) as loaded:
                yield loaded
        except Exception:
            # Whoever measures holds the session too, and is about to return.
            threading.Timer(_SOON, gc.collect).start()
            raise
