"""One network, compiled and converted, with its inputs in files, as the two runtimes take it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import networks
from networks import Network
from peers.agreement import check_agreement
from peers.bench import Inputs
from peers.processes import Process, Runner
from peers.runners import NotThere, PeerEnvironment, our_runner
from run_model_tools import progress

ROOT = networks.ROOT


@contextmanager
def make_runners(network: Network, program: Path, work: Path) -> Iterator[list[Runner]]:
    """Ours first. Both have given the right output once."""
    values = networks.inputs_of(network)
    reference = networks.reference_output(network, values)
    with tempfile.TemporaryDirectory() as scratch:
        inputs = Inputs.write(values, Path(scratch))
        with progress.stage(f"{network.name}: compiling"):
            artifact = networks.compile_network(network, work / "artifacts", kernels="auto")
        runners = [our_runner(program, artifact, inputs.names, inputs.bare),
                   _onnxruntime(network, inputs, work)]
        for runner in runners:
            output = Path(scratch) / runner.name
            with Process(runner, 1, output) as process:
                process.ask("load")
            reason = check_agreement(output, reference, network.tolerance)["reason"]
            if reason:
                sys.exit(f"busy_machine: {runner.name} on {network.onnx}: {reason}")
        yield runners


def _onnxruntime(network: Network, inputs: Inputs, work: Path) -> Runner:
    reason: NotThere | None = None
    for venv in (ROOT / "build" / "bench" / "peers_venv", Path(sys.prefix)):
        try:
            return PeerEnvironment(venv, venv, work / "converted").runner("onnxruntime", network,
                                                                          inputs.arrays)
        except NotThere as error:
            reason = error
    sys.exit(f"busy_machine: there is no ONNX Runtime to compare with: {reason}")
