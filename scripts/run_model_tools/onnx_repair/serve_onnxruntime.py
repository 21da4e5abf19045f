"""Runs models in ONNX Runtime for onnxruntime_process.py, request after request.

A request is {"model": path or bytes, "inputs", "optimized", "exact"}, an answer {"outputs"} or
{"error"}, both pickled.  Nothing of run_model_tools is imported, so that its path needs not be
known.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any, BinaryIO

# Of release 1.20: a pooling gets the pads of a Pad before it, as pads that do not count, in the
# place of zeros; a product of three axes becomes a Gemm, which takes two.
_MISTAKEN = ["Pad_Fusion", "MatMul_BatchNormalization_Fusion"]
# Without it, sums of two products of uint8 with int8 end at 32767 where the CPU has no VNNI. An
# optimisation: it makes uint8 of constant weights.
_EXACT_SUMS = "session.x64quantprecision"
# Without it, a product with weights of 4 bits in blocks, which QDQ nodes give, becomes a
# MatMulNBits that rounds its other matrix to bytes.
_FLOAT_PRODUCTS = "session.qdq_matmulnbits_accuracy_level"


def session(model: str | bytes, optimized: bool, exact: bool) -> Any:
    """On one thread, so that sums are added in one order, and silent, since what goes wrong is
    raised.  exact: with _EXACT_SUMS, where it has the products that this needs."""
    import onnxruntime

    def opened(exact: bool) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry(_FLOAT_PRODUCTS, "1")
        if not optimized:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if exact:
            options.add_session_config_entry(_EXACT_SUMS, "1")
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"],
                                            disabled_optimizers=_MISTAKEN)

    try:
        return opened(exact)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        # It has no products of int8 with the uint8 that this makes of weights.
        if not exact:
            raise
        return opened(False)


class Sessions:
    """Keeps the last file's: a network is usually run on several inputs."""

    def __init__(self) -> None:
        self._key: object = None
        self._session: Any = None

    def of(self, model: str | bytes, optimized: bool, exact: bool) -> Any:
        if isinstance(model, bytes):
            return session(model, optimized, exact)
        status = os.stat(model)
        key = (model, optimized, exact, status.st_ino, status.st_size, status.st_mtime_ns)
        if key != self._key:
            self._key, self._session = None, None  # Two large ones need not be there at once.
            self._session, self._key = session(model, optimized, exact), key
        return self._session


def answer(sessions: Sessions, request: dict[str, Any]) -> dict[str, Any]:
    try:
        opened = sessions.of(request["model"], request["optimized"], request["exact"])
        known = {item.name for item in opened.get_inputs()}
        known.update(item.name for item in opened.get_overridable_initializers())
        given = {name: array for name, array in request["inputs"].items() if name in known}
        return {"outputs": opened.run(None, given)}
    except Exception as error:  # It has a dozen classes of its own.
        return {"error": str(error).strip() or type(error).__name__}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    sessions = Sessions()
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(answer(sessions, request), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    del sys.path[0]  # This folder, whose modules are none of ONNX Runtime's.
    # Whatever a library prints must not get among the answers.
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, stream)
