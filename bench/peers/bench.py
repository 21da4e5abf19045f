"""One network after the other: who takes part, whether they agree, their times and their memory."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import networks
from networks import Network
from peers.agreement import check_agreement
from peers.held.holding import OURS as OURS_HELD
from peers.held.holding import CannotHold, Hold
from peers.processes import Process, Runner, RunnerFailed
from peers.results import starts_json, steady_json
from peers.rounds import StopRule, steady_times
from peers.runners import (
    OURS,
    STOCK,
    TITLES,
    TVM,
    NotThere,
    PeerEnvironment,
    our_runner,
    tvm_runner,
)
from peers.starts import start_figures
from run_model_tools import progress
from run_model_tools.environment import TVM_DIR

QUICK = StopRule(rounds=3, width=None)
QUICK_STARTS = 3


class OursFailed(SystemExit):
    """run_model fails on a network, or is wrong: ends the program unless it is caught."""


@dataclass(frozen=True)
class Inputs:
    """A network's inputs: their names, and files with all their bytes and with them as arrays."""

    names: tuple[str, ...]
    bare: Path
    arrays: Path

    @classmethod
    def write(cls, values: dict[str, np.ndarray], folder: Path) -> Inputs:
        """The files, into `folder`."""
        inputs = cls(tuple(values), folder / "inputs", folder / "inputs.npz")
        inputs.bare.write_bytes(b"".join(array.tobytes() for array in values.values()))
        np.savez(inputs.arrays, **values)
        return inputs


class Bench:
    """left_out and runners are filled while networks are measured; reports hold them.

    isa: the best instruction set of this machine, "avx512", "avx2" or None.
    """

    def __init__(self, arguments: argparse.Namespace, environment: PeerEnvironment,
                 peers: list[str], isa: str | None, network_count: int) -> None:
        self.runners: dict[str, dict] = {}
        self.left_out: list[dict[str, str | None]] = []
        self.starts = QUICK_STARTS if arguments.quick else arguments.starts
        self._held: dict[str, Hold | CannotHold] = {}
        self._arguments = arguments
        self._environment = environment
        self._peers = peers
        self._avx2 = arguments.isa == "avx2"
        self._target = "x86_64_v3" if self._avx2 else "native"
        self._precision = arguments.precision
        self._isa = "avx2" if self._avx2 else isa
        self._seconds = arguments.compile_seconds
        self._artifacts = arguments.work.resolve() / "artifacts"
        count = network_count * len(arguments.threads)
        self._rule = QUICK if arguments.quick else StopRule(seconds=60 * arguments.minutes / count)

    def prepare(self, network: Network) -> None:
        """Compiles and converts, so that measure() need not. Raises CannotCompile."""
        values = networks.inputs_of(network)
        artifact = self._our_artifact(network)
        with tempfile.TemporaryDirectory() as scratch:
            self._make_runners(network, artifact, Inputs.write(values, Path(scratch)))

    def measure(self, network: Network) -> dict[str, object]:
        """The network's part of the report. Raises CannotCompile, NoReference or
        OursFailed."""
        values = networks.inputs_of(network)
        artifact = self._our_artifact(network)
        reference = networks.reference_output(network, values)
        with tempfile.TemporaryDirectory() as scratch:
            inputs = Inputs.write(values, Path(scratch))
            runners = self._make_runners(network, artifact, inputs)
            agreement = self._check_all(network, runners, Path(scratch), reference)
            steady = [self._steady(network, runners, threads, Path(scratch))
                      for threads in self._arguments.threads]
            starts = self._starts(network, runners, Path(scratch))
        return {"title": network.name if network.name == network.model
                else f"{network.name} ({network.model})", "model": network.model,
                "modern": network.modern, "tuning": _tuning_files(artifact),
                "kernels": _metadata(artifact).get("kernels"), "agreement": agreement,
                "steady": steady, "starts": starts}

    def _make_runners(self, network: Network, artifact: Path,
                      inputs: Inputs) -> dict[str, Runner]:
        runners = {OURS: our_runner(self._program("trial_run_model"), artifact, inputs.names,
                                    inputs.bare)}
        self._describe_ours(OURS, artifact)
        if "stock" in self._arguments.kernels[1:]:
            with progress.stage(f"{network.name}: compiling with TVM's schedules"):
                stock = networks.compile_network(network, self._artifacts, kernels="stock",
                                                 target=self._target, seconds=self._seconds)
            runners[STOCK] = our_runner(self._program("trial_run_model"), stock, inputs.names,
                                        inputs.bare, STOCK)
            self._describe_ours(STOCK, stock)
        for peer in self._peers:
            if any(item["runner"] == peer and item["network"] is None for item in self.left_out):
                continue
            with progress.stage(f"{network.name}: converting for {TITLES[peer]}"):
                try:
                    if self._avx2 and peer not in self._held:
                        self._held[peer] = self._environment.hold(peer)
                    held = self._held.get(peer)
                    runners[peer] = self._environment.runner(
                        peer, network, inputs.arrays,
                        held.environment if isinstance(held, Hold) else None)
                except NotThere as error:
                    installed = "not installed" not in str(error)
                    self._leave_out(peer, network if installed else None, str(error))
        if not self._arguments.no_tvm:
            with progress.stage(f"{network.name}: compiling untuned"):
                untuned = networks.compile_network(network, self._artifacts, kernels="stock",
                                                   tuned=False, target=self._target,
                                                   seconds=self._seconds)
            try:
                runners[TVM] = tvm_runner(self._program("trial_tvm"), TVM_DIR, untuned,
                                          inputs.names, inputs.bare)
                self.runners.setdefault(TVM, {
                    "version": "", "settings": _describe(untuned) +
                    ", untuned, through its own C++ runtime; not one of the peers"})
            except NotThere as error:
                self._leave_out(TVM, None, str(error))
        if self._avx2:
            for name in (OURS, STOCK, TVM):
                if name in runners:
                    self._held.setdefault(name, OURS_HELD)
                    environment = runners[name].environment | OURS_HELD.environment
                    runners[name] = replace(runners[name], environment=environment)
        return runners

    def _describe_ours(self, name: str, artifact: Path) -> None:
        kernels = _metadata(artifact).get("kernels") or {"method": "stock"}
        what = "kernels of this project" if kernels["method"] == "ours" else \
            "TVM's schedules, " + ("tuned" if _tuning_files(artifact) else "untuned")
        if "precision" in kernels:
            what += f", products in {kernels['precision']}"
        if name == STOCK:
            what += "; through this runtime, not one of the peers"
        self.runners.setdefault(name, {"version": "",
                                       "settings": f"{_describe(artifact)}, {what}"})

    def _our_artifact(self, network: Network) -> Path:
        if self._arguments.artifacts is None:
            with progress.stage(f"{network.name}: compiling"):
                return networks.compile_network(
                    network, self._artifacts, records=self._arguments.records,
                    kernels="stock" if self._arguments.records else self._arguments.kernels[0],
                    target=self._target, precision=self._precision, seconds=self._seconds)
        folder = self._arguments.artifacts.resolve() / network.model / self._target
        if not folder.is_dir():
            sys.exit(f"{folder} is not there: compile it with scripts/compile_model, or leave "
                     "--artifacts out.")
        return folder

    def _program(self, name: str) -> Path:
        program = self._arguments.build.resolve() / "bench" / name
        if not program.exists():
            sys.exit(f"{program} is not there: build it with cmake --preset host && "
                     "cmake --build --preset host")
        return program

    def _check_all(self, network: Network, runners: dict[str, Runner], scratch: Path,
                   reference: np.ndarray) -> dict[str, dict]:
        """Takes out of `runners` those that fail or do not agree."""
        agreement = {}
        tolerance = network.tolerance if self._precision == "float32" else max(
            network.tolerance, networks.BFLOAT16_TOLERANCE)
        with progress.stage(f"{network.name}: comparing the outputs"):
            for name in list(runners):
                output = scratch / name
                try:
                    with Process(runners[name], max(self._arguments.threads), output) as process:
                        process.ask("load")
                        version = process.ready.get("version")
                        if version:
                            self.runners.setdefault(name, {
                                "version": version, "settings": process.ready["settings"]})
                    agreement[name] = check_agreement(output, reference, tolerance)
                    reason = agreement[name]["reason"]
                except RunnerFailed as error:
                    reason = str(error)
                if reason and name == OURS:
                    raise OursFailed(f"run_model on {network.onnx}: {reason}")
                if reason:
                    self._leave_out(name, network, reason)
                    del runners[name]
        return agreement

    def _steady(self, network: Network, runners: dict[str, Runner], threads: int,
                scratch: Path) -> dict[str, object]:
        with progress.stage(f"{network.name}: rounds with {threads} thread{'s' * (threads > 1)}"):
            processes: list[Process] = []
            try:
                for name, runner in runners.items():
                    try:
                        processes.append(self._loaded(runner, threads, scratch))
                    except RunnerFailed as error:
                        self._leave_out(name, network, str(error))
                peers = [name for name, runner in runners.items() if runner.peer]
                steady = steady_times(processes, OURS, peers, self._rule)
                if self._avx2:
                    self._check_held(processes)
            finally:
                for process in processes:
                    process.close()
        for name, reason in steady.failures.items():
            self._leave_out(name, network, reason)
        return steady_json(network.name, threads, self._isa, steady, self._counting(peers),
                           network.modern)

    def _check_held(self, processes: list[Process]) -> None:
        """Notes for the report who is held to AVX2; the processes have run and are frozen."""
        for process in processes:
            hold = self._held[process.name]
            used = None if process.failed else process.used_avx512()
            if isinstance(hold, CannotHold) or used:
                why = str(hold) if isinstance(hold, CannotHold) else hold.how
                held = {"state": "not held", "how": why + (", and used AVX-512" if used else "")}
            else:
                held = {"state": "held" if used is False else "not verified", "how": hold.how}
            known = self.runners[process.name].get("held")
            if known is None or known["state"] != "not held":
                self.runners[process.name]["held"] = held

    def _counting(self, peers: list[str]) -> list[str]:
        """Without those that were to be held to AVX2 and are not."""
        return [name for name in peers
                if self.runners.get(name, {}).get("held", {}).get("state") != "not held"]

    @staticmethod
    def _loaded(runner: Runner, threads: int, scratch: Path) -> Process:
        """A process with the model loaded, frozen: one that spins would slow the others' start."""
        process = Process(runner, threads, scratch / runner.name)
        try:
            process.ask("load")
            process.freeze()
        except RunnerFailed:
            process.close()
            raise
        return process

    def _starts(self, network: Network, runners: dict[str, Runner],
                scratch: Path) -> dict[str, object]:
        threads = max(self._arguments.threads)
        with progress.stage(f"{network.name}: fresh processes"):
            starts = start_figures(
                list(runners), lambda name: Process(runners[name], threads, scratch / name),
                self.starts)
        for name, reason in starts.failures.items():
            self._leave_out(name, network, reason)
        peers = [name for name, runner in runners.items() if runner.peer]
        return starts_json(threads, starts, self._counting(peers), network.modern)

    def _leave_out(self, runner: str, network: Network | None, reason: str) -> None:
        where = f" on {network.name}" if network else ""
        print(f"runtime_vs_peers: {TITLES[runner]} is left out{where}: {reason}", file=sys.stderr)
        self.left_out.append({"runner": runner, "network": network.name if network else None,
                              "reason": reason})


def _metadata(artifact: Path) -> dict:
    return json.loads((artifact / "metadata.json").read_text(encoding="utf-8"))


def _describe(artifact: Path) -> str:
    metadata = _metadata(artifact)
    return f"TVM {metadata['tvm_version']}, {metadata['target']['tvm']}"


def _tuning_files(artifact: Path) -> list[str]:
    """Names of the files of tuning records that the artifact was compiled with."""
    tuning = _metadata(artifact).get("tuning")
    return [entry["name"] for entry in tuning["files"]] if tuning else []
