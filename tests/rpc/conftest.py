"""Shared by the tests that drive the RPC server with TVM's own Python; run with run_pytest."""

from __future__ import annotations

from pathlib import Path

import pytest
import server_fixtures
import workloads
from raw_client import serves
from server_process import wait_until

ROOT = Path(__file__).resolve().parents[2]

remote, server = server_fixtures.remote, server_fixtures.server
start_server, tracker = server_fixtures.start_server, server_fixtures.tracker


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
