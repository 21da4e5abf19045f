"""Shared by the tests that drive the RPC server with today's TVM; run with `run_pytest --relax`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tvm import rpc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import server_fixtures
from server_process import ServerProcess

start_server, tracker = server_fixtures.start_server, server_fixtures.tracker


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """One for the tests that need nothing special of it."""
    with ServerProcess("--max-sessions", "4", "--key", "kitchen") as running:
        yield running
        gc.collect()


@pytest.fixture
def remote(server: ServerProcess) -> Iterator[rpc.RPCSession]:
    session = rpc.connect(server.host, server.port, "kitchen")
    yield session
    del session
    gc.collect()
