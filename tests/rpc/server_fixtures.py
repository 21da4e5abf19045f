"""Fixtures of all tests that drive the RPC server, whichever TVM its client is of."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from server_process import ServerProcess
from tvm import rpc
from tvm.rpc.tracker import Tracker


@pytest.fixture
def start_server() -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers; each has to end in order and to leave nothing behind."""
    servers: list[ServerProcess] = []

    def start(*flags: str, **options: Any) -> ServerProcess:
        servers.append(ServerProcess(*flags, **options))
        return servers[-1]

    yield start
    gc.collect()  # sessions end when nothing refers to them
    for server in servers:
        server.stop()


@pytest.fixture
def tracker() -> Iterator[Tracker]:
    running = Tracker(host="127.0.0.1", port=19190, port_end=19900, silent=True)
    yield running
    running.terminate()


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """One for the tests of a module that need nothing special of it."""
    with ServerProcess("--max-sessions", "16", "--key", "kitchen") as running:
        yield running
        gc.collect()


@pytest.fixture
def remote(server: ServerProcess) -> Iterator[rpc.RPCSession]:
    session = rpc.connect(server.host, server.port, "kitchen")
    yield session
    del session
    gc.collect()
