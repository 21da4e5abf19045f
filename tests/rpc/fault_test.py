"""Clients that vanish or talk nonsense, models that crash, many sessions: the server stays up."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import threading
import time

import numpy as np
import pytest
import tvm
from client_test import exported
from conftest import connect
from raw_client import (
    ALLOCATE,
    CALL,
    COPY_FROM,
    COPY_TO,
    FIND,
    INIT,
    MAGIC,
    MISMATCH,
    RETURN,
    TEXT,
    RawClient,
    frame,
    sequence,
    text,
)
from server_process import EMULATOR, ServerProcess, wait_until
from tvm import rpc
from tvm.rpc.tracker import Tracker
from workloads import IS_NATIVE, check_result, run_network

native_only = pytest.mark.skipif(not IS_NATIVE, reason="the same code as in the native server")
slow = pytest.mark.slow


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


def serves(server: ServerProcess) -> None:
    client = RawClient(server)
    client.send(client.upload_head("greeting", 5) + b"hello")
    assert client.answer()[0] == RETURN
    client.close()


def upload(remote, path):
    remote.upload(str(path))
    return remote.load_module(path.name)


def failure(call, *arguments) -> str:
    with pytest.raises(tvm.TVMError) as caught:
        call(*arguments)
    return str(caught.value)


# The client vanishes.

@pytest.mark.parametrize("sent", [*[0, 1] * IS_NATIVE, 1_000_000])
def test_in_the_middle_of_an_upload(sturdy, sent):
    for leave in (RawClient.vanish, RawClient.close):
        client = RawClient(sturdy)
        client.send(client.upload_head("big.bin", 50_000_000) + bytes(sent))
        leave(client)
    sturdy.wait_until_idle()


@native_only
@pytest.mark.full
def test_in_the_middle_of_each_byte_of_a_request(sturdy):
    whole = frame(FIND, sequence(TEXT) + text("tvm.rpc.server.upload"))
    for count in range(0, len(whole), 3):
        client = RawClient(sturdy)
        client.send(whole[:count])
        client.vanish()
    sturdy.wait_until_idle()


@native_only
def test_in_the_middle_of_the_handshake(sturdy):
    whole = RawClient.greeting("")
    for count in range(len(whole)):
        client = RawClient(sturdy, handshake=False)
        client.send(whole[:count])
        client.vanish()


@pytest.mark.parametrize("function", ["loop", *["loop_stubbornly", "sleep_long"] * IS_NATIVE])
def test_in_the_middle_of_a_run(sturdy, functions, function):
    """Nobody waits for the result any more, so the run is ended."""
    client = running(sturdy, functions, function)
    assert len(sturdy.processes()) > 1
    client.vanish()
    sturdy.wait_until_idle()


def running(server, library, function) -> RawClient:
    """A client that has called a function of a library and waits."""
    content = library.read_bytes()
    client = RawClient(server)
    client.send(client.upload_head("lib.so", len(content)) + content)
    assert client.answer()[0] == RETURN
    load = client.function("tvm.rpc.server.load_module")
    client.send(frame(CALL, struct.pack("<Q", load) + sequence(TEXT) + text("lib.so")))
    code, answer = client.answer()
    assert code == RETURN, answer
    module = answer[-8:]
    get = client.function("tvm.rpc.server.ModuleGetFunction")
    client.send(frame(CALL, struct.pack("<Q", get) + sequence(9, TEXT, 0) + module + text(function)
                      + struct.pack("<q", 0)))
    code, answer = client.answer()
    assert code == RETURN, answer
    client.send(frame(CALL, answer[-8:] + sequence()))
    time.sleep(0.2)
    return client


@native_only
def test_in_the_middle_of_copies(sturdy):
    size = 30_000_000
    for _ in range(2):
        client = RawClient(sturdy)
        tensor = client.tensor(size)
        content = tensor + struct.pack("<Q", size)
        client.send(struct.pack("<Qi", 4 + len(content) + size, COPY_TO) + content + bytes(100_000))
        client.vanish()

        client = RawClient(sturdy)
        tensor = client.tensor(size)
        client.send(frame(COPY_FROM, tensor + struct.pack("<Q", size)))
        client.receive(100_000)
        client.vanish()
    sturdy.wait_until_idle()


# Nonsense.

@native_only
def test_handshakes_that_are_none(sturdy):
    client = RawClient(sturdy, handshake=False)
    client.send(b"GET / HTTP/1.1\r\nHost: board\r\n\r\n")
    assert ends(client)
    for length in (-1, 0, 1 << 20, 2**31 - 1):
        client = RawClient(sturdy, handshake=False)
        client.send(struct.pack("<ii", MAGIC, length))
        assert ends(client)
    for name in (b"server:", b"client", b"\xff" * 7, b"client:\0", b"client:other"):
        client = RawClient(sturdy, handshake=False)
        client.send(struct.pack("<ii", MAGIC, len(name)) + name)
        assert struct.unpack("<i", client.receive(4))[0] == MISMATCH or ends(client)
    # One that says nothing at all holds up nobody.
    silent = RawClient(sturdy, handshake=False)
    serves(sturdy)
    silent.close()


def ends(client: RawClient) -> bool:
    """Whether the server closes the connection, whatever it says before."""
    try:
        while client.socket.recv(4096):
            pass
    except ConnectionResetError:
        pass
    client.close()
    return True


def test_frames_of_nonsense_get_an_error_or_the_end(sturdy):
    generator = random.Random(5)
    for size in (0, 1, 3, 4, 11, 12, 100, 5000):
        for _ in range(3 if IS_NATIVE else 1):
            client = RawClient(sturdy)
            client.send(struct.pack("<Q", size) + generator.randbytes(size))
            client.socket.shutdown(socket.SHUT_WR)
            assert ends(client)


def allocation(size: int) -> bytes:
    return frame(ALLOCATE, sequence(6, 0, 0, 5)
                 + struct.pack("<iiqqBBHi", 1, 0, size, 64, 1, 8, 1, 0))


@native_only
def test_a_session_goes_on_after_a_request_that_makes_no_sense(sturdy):
    client = RawClient(sturdy)
    nonsense = [frame(77), frame(CALL, struct.pack("<Q", 12345) + sequence()),
                frame(FIND, sequence(99)), frame(FIND, sequence(TEXT) + struct.pack("<Q", 2**60)),
                frame(FIND, struct.pack("<i", -1)), frame(FIND, struct.pack("<i", 2**31 - 1)),
                frame(INIT, text("0.8.0") + sequence()),
                frame(COPY_FROM, bytes(40)), frame(COPY_TO, bytes(3)),
                allocation(2**62), allocation(-1)]
    for request in nonsense:
        client.send(request)
        assert client.error(), request
    assert client.function("tvm.rpc.server.upload")
    client.close()


@native_only
def test_copies_outside_of_a_tensor_are_refused(sturdy):
    client = RawClient(sturdy)
    tensor = client.tensor(100)
    for offset, size in ((0, 101), (1, 100), (2**64 - 1, 1), (0, 2**63), (100, 1)):
        moved = tensor[:-8] + struct.pack("<Q", offset)
        client.send(frame(COPY_FROM, moved + struct.pack("<Q", size)))
        assert client.error(), (offset, size)
    client.send(frame(COPY_FROM, tensor + struct.pack("<Q", 100)))
    assert len(client.answer()[1]) == 100
    client.close()


@native_only
def test_frames_that_announce_more_than_comes(sturdy):
    for size in (2**63, 2**64 - 1, 2**40, 3 << 30):
        client = RawClient(sturdy)
        client.send(struct.pack("<Qi", size, FIND))
        client.socket.shutdown(socket.SHUT_WR)
        assert ends(client)
    client = RawClient(sturdy, start=False)
    client.send(frame(INIT, text("99.0.0") + sequence()))
    assert "99.0.0" in client.error()
    client.close()


@native_only
def test_uploads_beyond_the_limit(start_server):
    server = start_server("--file-limit", "1M")
    remote = connect(server, "")
    remote.upload(bytearray(700_000), "a.bin")
    for size in (700_000, 3_000_000):
        assert "limit" in failure(remote.upload, bytearray(size), "b.bin")
    remote.remove("a.bin")
    remote.upload(bytearray(700_000), "b.bin")


# Models that misbehave.

@pytest.mark.parametrize("function, word", [
    ("segfault", "SIGSEGV"), ("illegal_instruction", "SIGILL|SIGTRAP"), ("abort_here", "SIGABRT"),
    ("overflow_stack", "SIGSEGV"), ("exit_here", "exit")])
def test_a_model_that_crashes_ends_its_session_alone(sturdy, functions, function, word):
    neighbour = connect(sturdy, "")
    remote = connect(sturdy, "")
    message = failure(upload(remote, functions)[function])
    assert any(name in message for name in word.split("|")), message
    assert function in message, message
    # What comes after says that the session is over, and does not hang.
    failure(remote.get_function, "tvm.rpc.server.upload")
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
    message = failure(upload(remote, functions)["eat_memory"])
    assert "memory" in message or "malloc" in message, message
    del remote
    server.wait_until_idle()
    remote = connect(server, "")
    assert "memory" in failure(tvm.nd.empty, (1 << 30,), "uint8", remote.cpu())
    tvm.nd.array(np.ones(1000, "uint8"), remote.cpu())


@native_only
def test_tensors_that_add_up_to_too_much_memory(start_server):
    server = start_server("--memory-limit", "200M")
    remote = connect(server, "")
    kept = []

    def fill():
        for _ in range(100):
            kept.append(tvm.nd.array(np.ones(10_000_000, "uint8"), remote.cpu()))
    assert "memory" in failure(fill)
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
    assert "SIGKILL" in failure(remote.get_function, "tvm.rpc.server.upload")


# Many sessions.

@pytest.mark.full
def test_sessions_one_after_another(sturdy, count=400 if IS_NATIVE else 10):
    for _ in range(count):
        client = RawClient(sturdy)
        client.send(client.upload_head("a", 1) + b"a")
        assert client.answer()[0] == RETURN
        client.close()


@slow
def test_thousands_of_sessions_one_after_another(sturdy):
    test_sessions_one_after_another(sturdy, 5000)


@native_only
@pytest.mark.full
def test_dozens_of_sessions_at_once(sturdy):
    clients = [RawClient(sturdy) for _ in range(48)]
    assert len(sturdy.session_folders()) == 48
    for client in clients:
        client.send(client.upload_head("a", 100_000))
    for number, client in enumerate(clients):
        client.send(bytes([number]) * 100_000)
    assert all(client.answer()[0] == RETURN for client in clients)
    for number, client in enumerate(clients):
        (client.vanish if number % 2 else client.close)()


@native_only
def test_more_clients_than_sessions_wait_for_their_turn(start_server):
    server = start_server("--max-sessions", "3")
    most, served = 0, []

    def use_it(number: int) -> None:
        nonlocal most
        client = RawClient(server)
        most = max(most, len(server.session_folders()))
        client.send(client.upload_head("a", 1) + b"a")
        served.append(client.answer()[0])
        client.close()

    threads = [threading.Thread(target=use_it, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert served == [RETURN] * 24 and most <= 3


@native_only
def test_stopping_ends_the_sessions_that_run(functions):
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        server = ServerProcess("--max-sessions", "4")
        clients = [running(server, functions, name)
                   for name in ("loop_stubbornly", "leave_a_child")]
        server.stop(signal_number)
        assert all(ends(client) for client in clients)


@native_only
def test_a_port_that_is_taken(start_server):
    first = start_server()
    second = start_server("--port", str(first.port), "--port-end", str(first.port + 50))
    assert first.port < second.port < first.port + 50


# Trackers.

@native_only
def test_a_tracker_that_restarts(start_server, network):
    first = Tracker(host="127.0.0.1", port=18190, port_end=18900, silent=True)
    start_server("--tracker", f"127.0.0.1:{first.port}", "--key", "oven")

    def free() -> int | None:
        queues = rpc.connect_tracker("127.0.0.1", first.port).summary()["queue_info"]
        return queues.get("oven", {}).get("free")

    wait_until(lambda: free() == 1, "the board's registration")
    first.terminate()
    time.sleep(0.5)
    second = Tracker(host="127.0.0.1", port=first.port, port_end=first.port + 1, silent=True)
    try:
        wait_until(lambda: free() == 1, "the board's registration with the new tracker")
        remote = rpc.connect_tracker("127.0.0.1", first.port).request("oven")
        remote.upload(str(network.export))
        del remote
        wait_until(lambda: free() == 1, "the board to be free again")
    finally:
        second.terminate()


@native_only
def test_a_match_key_is_for_one_client(start_server, tracker):
    server = start_server("--tracker", f"{tracker.host}:{tracker.port}", "--key", "oven")
    client = rpc.connect_tracker(tracker.host, tracker.port)
    for _ in range(3):
        remote = client.request("oven")
        assert remote.cpu().exist
        del remote
    # Whoever has not asked the tracker is not served, with the bare key or with an older one.
    stranger = RawClient(server, handshake=False)
    stranger.send(RawClient.greeting("oven"))
    assert struct.unpack("<i", stranger.receive(4))[0] == MISMATCH
    stranger.close()


def test_the_next_client_after_a_fault_gets_right_results(start_server, functions, network):
    server = start_server()
    failure(upload(connect(server, ""), functions)["segfault"])
    executor = exported(connect(server, ""), network)
    check_result(run_network(executor, network.picture), network.expected)
