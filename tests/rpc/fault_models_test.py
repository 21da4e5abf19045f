"""Models that crash, hang, or take too much: their sessions end alone, and the client hears why."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
import tvm
from board import IS_NATIVE, native_only
from raw_client import serves
from server_process import EMULATOR, wait_until
from tvm_client import connect, error_of, exported, upload
from workloads import check_result, run_network


@pytest.mark.parametrize("function, word", [
    ("segfault", "SIGSEGV"), ("illegal_instruction", "SIGILL|SIGTRAP"), ("abort_here", "SIGABRT"),
    ("overflow_stack", "SIGSEGV"), ("exit_here", "exit")])
def test_a_model_that_crashes_ends_its_session_alone(sturdy, functions, function, word):
    neighbour = connect(sturdy, "")
    remote = connect(sturdy, "")
    message = error_of(upload(remote, functions)[function])
    assert any(name in message for name in word.split("|")), message
    assert function in message, message
    # What comes after says that the session is over, and does not hang.
    error_of(remote.get_function, "tvm.rpc.server.upload")
    neighbour.upload(bytearray(b"still here"), "note")
    assert bytes(neighbour.download("note")) == b"still here"


@pytest.mark.parametrize("function", ["loop", *["loop_stubbornly"] * IS_NATIVE])
def test_a_call_of_limited_time(start_server, functions, function):
    server = start_server("--call-timeout", "1" if IS_NATIVE else "3")
    remote = connect(server, "")
    with pytest.raises(tvm.error.RPCSessionTimeoutError):
        upload(remote, functions)[function]()
    server.wait_until_idle()
    serves(server)


def test_the_client_s_own_session_timeout(start_server, functions):
    """As AutoTVM's runner sets it; a late request finds the session ended."""
    server = start_server()
    remote = connect(server, "", session_timeout=2)
    library = upload(remote, functions)
    with pytest.raises(tvm.error.RPCSessionTimeoutError):
        library["sleep_long"]()
    idle = connect(server, "", session_timeout=1)
    server.wait_until_idle()
    with pytest.raises(tvm.error.RPCSessionTimeoutError):
        idle.get_function("tvm.rpc.server.upload")
    serves(server)


@native_only
def test_the_server_s_session_timeout(start_server):
    server = start_server("--session-timeout", "1")
    remote = connect(server, "", session_timeout=1000)
    server.wait_until_idle()
    with pytest.raises(tvm.error.RPCSessionTimeoutError):
        remote.get_function("tvm.rpc.server.upload")


@pytest.mark.skipif(bool(EMULATOR), reason="an emulator needs memory of its own")
def test_a_model_that_eats_memory(start_server, functions):
    server = start_server("--memory-limit", "200M")
    remote = connect(server, "")
    message = error_of(upload(remote, functions)["eat_memory"])
    assert "memory" in message or "malloc" in message, message
    del remote
    server.wait_until_idle()
    remote = connect(server, "")
    assert "memory" in error_of(tvm.nd.empty, (1 << 30,), "uint8", remote.cpu())
    tvm.nd.array(np.ones(1000, "uint8"), remote.cpu())


@native_only
def test_tensors_that_add_up_to_too_much_memory(start_server):
    server = start_server("--memory-limit", "200M")
    remote = connect(server, "")
    kept = []

    def fill():
        for _ in range(100):
            kept.append(tvm.nd.array(np.ones(10_000_000, "uint8"), remote.cpu()))
    assert "memory" in error_of(fill)
    assert len(kept) < 22


def test_processes_that_a_model_started_end_with_the_session(sturdy, functions):
    remote = connect(sturdy, "")
    upload(remote, functions)["leave_a_child"]()
    wait_until(lambda: len(sturdy.processes()) == 3, "the child")
    del remote
    sturdy.wait_until_idle()


@native_only
def test_a_killed_session_is_told_to_its_client(sturdy):
    remote = connect(sturdy, "")
    [session] = [pid for pid in sturdy.processes() if pid != sturdy.pid]
    # Before the session waits for a request, the server cannot know that all of an answer is sent.
    time.sleep(0.5)
    os.kill(session, signal.SIGKILL)
    sturdy.wait_until_idle()
    assert "SIGKILL" in error_of(remote.get_function, "tvm.rpc.server.upload")


def test_the_next_client_after_a_fault_gets_right_results(start_server, functions, network):
    server = start_server()
    error_of(upload(connect(server, ""), functions)["segfault"])
    executor = exported(connect(server, ""), network)
    check_result(run_network(executor, network.picture), network.expected)
