"""Shared by the tests that drive the RPC server with TVM's own Python; run with run_pytest."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import server_fixtures
import workloads
from raw_client import serves
from server_process import ServerProcess, wait_until
from tvm import rpc
from tvm_client import connect

ROOT = Path(__file__).resolve().parents[2]

start_server, tracker = server_fixtures.start_server, server_fixtures.tracker


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """One for the tests of a module that need nothing special of it."""
    with ServerProcess("--max-sessions", "16", "--key", "kitchen") as running:
        yield running
        gc.collect()


@pytest.fixture
def remote(server: ServerProcess) -> Iterator[rpc.RPCSession]:
    session = connect(server)
    yield session
    del session
    gc.collect()


@pytest.fixture
def sturdy(start_server):
    """A server, and the check that it serves when all is over, as it did before."""
    server = start_server("--max-sessions", "64")
    serves(server)
    server.wait_until_idle()
    descriptors, kilobytes = server.descriptors(), server.resident_kilobytes()
    yield server
    serves(server)
    server.wait_until_idle()
    wait_until(lambda: server.descriptors() == descriptors, "descriptors to be closed")
    # What malloc keeps varies by some pages; a session's leftovers would add up to more.
    assert server.resident_kilobytes() < kilobytes + 1024


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the workloads lie."""
    return tmp_path_factory.mktemp("workloads")


@pytest.fixture(scope="session")
def network(folder: Path) -> workloads.Network:
    return workloads.network(folder)


@pytest.fixture(scope="session")
def add_one(folder: Path) -> Path:
    return workloads.add_one(folder)


@pytest.fixture(scope="session")
def functions(folder: Path) -> Path:
    return workloads.c_functions(folder)
