"""Sessions one after another, at the same time and by way of a tracker."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import threading
import time

import pytest
import tvm
from board import IS_NATIVE, native_only
from raw_client import MISMATCH, RETURN, RawClient, ends, running, serves
from server_process import ServerProcess, wait_until
from tvm import rpc
from tvm.rpc.tracker import Tracker
from tvm_client import connect, error_of, exported, upload
from workloads import check_result, run_network


def test_a_wrong_key_is_refused(server):
    with pytest.raises(tvm.TVMError, match="key"):
        connect(server, "cellar")


@native_only
def test_what_makes_no_sense_here_is_refused(server, remote, add_one, network):
    library, other = upload(remote, add_one), upload(remote, network.library)
    assert "import" in error_of(library.import_module, other)
    elsewhere = ["rpc.Connect", "board2", 9090, ""]
    message = error_of(lambda: connect(server, session_constructor_args=elsewhere))
    assert "rpc.Connect" in message


def test_a_session_of_limited_time(server):
    remote = connect(server, session_timeout=30)
    assert remote.cpu().exist


def test_the_server_logs_to_what_it_serves(server, remote, add_one):
    upload(remote, add_one, "logged.so")
    # What a session says reaches the log by way of the server.
    wait_until(lambda: "logged.so" in server.log(), "the upload in the log")


@native_only
def test_handles_do_not_pile_up(server, add_one):
    remote = connect(server)
    library = upload(remote, add_one)
    function = library["add_one"]
    for _ in range(2000):
        a = tvm.nd.empty((1024,), "float32", remote.cpu())
        function(a, a)
    [session] = [pid for pid in server.processes() if pid != server.pid]
    assert len(os.listdir(f"/proc/{session}/fd")) < 30


@native_only
def test_sessions_at_the_same_time(server, network):
    sessions = [connect(server) for _ in range(4)]
    executors = [exported(session, network) for session in sessions]
    for index, executor in enumerate(executors):
        executor.set_input("data", network.picture * (index == 2))
    for executor in executors:
        executor.run()
    check_result(executors[2].get_output(0).numpy(), network.expected)


# Many.

@pytest.mark.full
def test_sessions_one_after_another(sturdy, count=400 if IS_NATIVE else 10):
    for _ in range(count):
        client = RawClient(sturdy)
        client.send(client.upload_head("a", 1) + b"a")
        assert client.answer()[0] == RETURN
        client.close()


@pytest.mark.slow
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
    for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server = ServerProcess("--max-sessions", "4")
        clients = [running(server, functions, name)
                   for name in ("loop_stubbornly", "leave_a_child")]
        server.stop(signal_number)
        assert all(ends(client) for client in clients)


@native_only
def test_a_terminal_that_is_closed_does_not_end_what_nohup_has_started(start_server):
    server = start_server(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    os.kill(server.pid, signal.SIGHUP)
    time.sleep(0.2)
    serves(server)


@native_only
def test_a_log_that_nobody_reads_holds_nothing_up():
    unread, log = os.pipe()
    fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, 8192)
    with ServerProcess(stderr=log) as server:
        os.close(log)
        for _ in range(60):
            serves(server)
    lines = os.read(unread, 1 << 16)
    os.close(unread)
    assert b"connected" in lines and lines.endswith(b"\n") and len(lines) <= 8192


@native_only
def test_a_port_that_is_taken(start_server):
    first = start_server()
    second = start_server("--port", str(first.port), "--port-end", str(first.port + 50))
    assert first.port < second.port < first.port + 50


# Trackers.

def test_a_tracker_finds_the_board(start_server, tracker, network):
    where = f"{tracker.host}:{tracker.port}"
    server = start_server("--tracker", where, "--key", "oven")
    client = rpc.connect_tracker(tracker.host, tracker.port)
    remote = client.request("oven", session_timeout=60)
    check_result(run_network(exported(remote, network), network.picture), network.expected)
    assert client.summary()["queue_info"]["oven"]["free"] == 0
    assert ["server:oven", server.port] in [[entry["key"], entry["addr"][1]]
                                            for entry in client.summary()["server_info"]]
    assert "oven" in client.text_summary()


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
