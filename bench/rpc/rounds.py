"""What rpc_vs_tvm asks of a server, and how long each takes."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Callable

import numpy as np
import tvm
from tvm import rpc, te

from trials import Sample

#: Side of the square matrices whose product is the kernel: about a millisecond's work.
_SIDE = 256
_KERNEL_RUNS = 20


def build_library(folder: Path) -> Path:
    """add_one: a vector and one. multiply: the product of two matrices."""
    vector = te.placeholder((1,), name="vector")
    added = te.compute(vector.shape, lambda i: vector[i] + 1, name="added")
    a = te.placeholder((_SIDE, _SIDE), name="a")
    b = te.placeholder((_SIDE, _SIDE), name="b")
    k = te.reduce_axis((0, _SIDE), name="k")
    product = te.compute((_SIDE, _SIDE), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="product")
    schedule = te.create_schedule(product.op)
    i, j = product.op.axis
    outer, inner = schedule[product].split(j, factor=16)
    schedule[product].reorder(outer, i, k, inner)
    schedule[product].vectorize(inner)
    functions = (tvm.lower(te.create_schedule(added.op), [vector, added], name="add_one"),
                 tvm.lower(schedule, [a, b, product], name="multiply"))
    module = tvm.build(tvm.IRModule({name: function for lowered in functions
                                     for name, function in lowered.functions.items()}),
                       target="llvm")
    path = folder / "kernels.so"
    module.export_library(str(path))
    return path


def _milliseconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def _kernels(port: int, library: Path) -> dict[str, float]:
    """What time_evaluator says, in a session of its own as tuners have it."""
    session = rpc.connect("127.0.0.1", port)
    session.upload(str(library))
    module = session.load_module(library.name)
    device = session.cpu()
    matrices = [tvm.nd.array(np.ones((_SIDE, _SIDE), "float32"), device) for _ in range(3)]
    timed = module.time_evaluator("multiply", device, number=_KERNEL_RUNS, repeat=5)
    vector = tvm.nd.array(np.zeros(1, "float32"), device)
    short = module.time_evaluator("add_one", device, number=2000, repeat=5)
    return {"kernel": min(timed(*matrices).results) * 1e6,
            "short_kernel": min(short(vector, vector).results) * 1e9}


def _one_round(port: int, library: Path, calls: int, blob: bytearray) -> dict[str, float]:
    """The figures of two sessions by their names in figures.py."""
    figures = _kernels(port, library)
    start = time.perf_counter()
    session = rpc.connect("127.0.0.1", port)
    figures["connect"] = (time.perf_counter() - start) * 1e3
    figures["upload"] = _milliseconds(lambda: session.upload(blob, "blob.bin"))
    received = []
    figures["download"] = _milliseconds(lambda: received.append(session.download("blob.bin")))
    if received[0] != blob:
        raise SystemExit("rpc_vs_tvm: a file came back with other bytes")

    device = session.cpu()
    host = np.frombuffer(blob, np.uint8)
    remote = tvm.nd.empty(host.shape, "uint8", device)
    figures["copy_to"] = _milliseconds(lambda: remote.copyfrom(host))
    figures["copy_from"] = _milliseconds(remote.numpy)

    session.upload(str(library))
    module = session.load_module(library.name)
    add_one = module["add_one"]
    vector = tvm.nd.array(np.zeros(1, "float32"), device)
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        add_one(vector, vector)
        times.append(time.perf_counter() - start)
    if vector.numpy()[0] != calls:
        raise SystemExit("rpc_vs_tvm: calls were lost")
    figures["call"] = statistics.median(times) * 1e6
    return figures


def measure(ports: dict[str, int], *, rounds: int, calls: int,
            bytes_: int) -> dict[str, dict[str, Sample]]:
    """Samples by figure and server; a round asks each server once, the next in the other order."""
    samples: dict[str, dict[str, Sample]] = {}
    blob = bytearray(np.random.default_rng(1).integers(0, 256, bytes_, np.uint8).tobytes())
    with tempfile.TemporaryDirectory(prefix="rpc_vs_tvm-") as folder:
        library = build_library(Path(folder))
        for port in ports.values():  # the first session of a server does more than later ones
            _one_round(port, library, 10, blob[:1024])
        for number in range(rounds):
            order = list(ports) if number % 2 == 0 else list(reversed(ports))
            for name in order:
                for figure, value in _one_round(ports[name], library, calls, blob).items():
                    of_figure = samples.setdefault(figure, {key: Sample() for key in ports})
                    of_figure[name].values.append(value)
    return samples
