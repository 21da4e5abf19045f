"""One network after the other: who takes part, whether they agree, their times and their memory."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import networks
from networks import Network
from peers.agreement import check_agreement
from peers.processes import Process, Runner, RunnerFailed
from peers.results import starts_json, steady_json
from peers.rounds import StopRule, steady_times
from peers.runners import (OURS, TITLES, TVM, NotThere, PeerEnvironment, our_runner, tvm_runner)
from peers.starts import start_figures
from run_model_tools import bootstrap, progress

QUICK = StopRule(rounds=3, width=None)
QUICK_STARTS = 3


class Bench:
    """left_out and runners are filled while networks are measured; reports hold them."""

    def __init__(self, arguments: argparse.Namespace, environment: PeerEnvironment,
                 peers: list[str], machine: str) -> None:
        self.runners: dict[str, dict[str, str]] = {}
        self.left_out: list[dict[str, str | None]] = []
        self.starts = QUICK_STARTS if arguments.quick else arguments.starts
        self._arguments = arguments
        self._environment = environment
        self._peers = peers
        self._machine = machine
        self._artifacts = arguments.work.resolve() / "artifacts"
        count = len(arguments.networks) * len(arguments.threads)
        self._rule = QUICK if arguments.quick else StopRule(seconds=60 * arguments.minutes / count)

    def measure(self, network: Network) -> dict[str, object]:
        """The network's part of the report."""
        name, shape = networks.input_of(network)
        values = networks.make_input(shape)
        reference = networks.reference_output(network, values)
        with tempfile.TemporaryDirectory() as scratch:
            input_file = Path(scratch) / "input"
            values.tofile(input_file)
            artifact = self._our_artifact(network)
            runners = self._make_runners(network, artifact, name, shape, input_file)
            agreement = self._check_all(network, runners, Path(scratch), reference)
            steady = [self._steady(network, runners, threads, Path(scratch))
                      for threads in self._arguments.threads]
            starts = self._starts(network, runners, Path(scratch))
        return {"title": network.name if network.name == network.model
                else f"{network.name} ({network.model})", "model": network.model,
                "tuning": _tuning_files(artifact), "agreement": agreement, "steady": steady,
                "starts": starts}

    def _make_runners(self, network: Network, artifact: Path, input_name: str,
                      shape: tuple[int, ...], input_file: Path) -> dict[str, Runner]:
        runners = {OURS: our_runner(self._program("trial_run_model"), artifact, input_name,
                                    input_file)}
        tuned = "tuned" if _tuning_files(artifact) else "untuned"
        self.runners.setdefault(OURS, {"version": "",
                                       "settings": f"{_describe(artifact)}, {tuned}"})
        for peer in self._peers:
            if any(item["runner"] == peer and item["network"] is None for item in self.left_out):
                continue
            with progress.stage(f"{network.name}: converting for {TITLES[peer]}"):
                try:
                    runners[peer] = self._environment.runner(peer, network, shape, input_file)
                except NotThere as error:
                    installed = "not installed" not in str(error)
                    self._leave_out(peer, network if installed else None, str(error))
        if not self._arguments.no_tvm:
            with progress.stage(f"{network.name}: compiling untuned"):
                untuned = networks.compile_network(network, self._artifacts, tuned=False)
            try:
                runners[TVM] = tvm_runner(self._program("trial_tvm"), bootstrap.TVM_DIR, untuned,
                                          input_name, input_file)
                self.runners.setdefault(TVM, {
                    "version": "", "settings": _describe(untuned) +
                    ", untuned, through its own C++ runtime; not one of the peers"})
            except NotThere as error:
                self._leave_out(TVM, None, str(error))
        return runners

    def _our_artifact(self, network: Network) -> Path:
        if self._arguments.artifacts is None:
            with progress.stage(f"{network.name}: compiling"):
                return networks.compile_network(network, self._artifacts,
                                                records=self._arguments.records)
        folder = self._arguments.artifacts.resolve() / network.model / "native"
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
                    agreement[name] = check_agreement(output, reference)
                    reason = agreement[name]["reason"]
                except RunnerFailed as error:
                    reason = str(error)
                if reason and name == OURS:
                    sys.exit(f"run_model on {network.onnx}: {reason}")
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
            finally:
                for process in processes:
                    process.close()
        for name, reason in steady.failures.items():
            self._leave_out(name, network, reason)
        return steady_json(network.name, threads, self._machine, steady, peers)

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
        return starts_json(threads, starts, peers)

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
