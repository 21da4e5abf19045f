"""TVM's own client against a server with an auth key, through scripts/rpc_auth_proxy."""

from __future__ import annotations

import base64
import gc
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable

import pytest
import tvm
from conftest import ROOT
from server_process import PATIENCE_SECONDS, wait_until
from tvm import rpc

PROGRAM = ROOT / "scripts" / "rpc_auth_proxy"


class AuthProxy:
    """A running rpc_auth_proxy; `port` is where clients connect."""

    def __init__(self, board: str, key: Path, port: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), board, "--key-file", str(key), "--port", str(port)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), self.process.stderr.read()
        self.port = int(line.rsplit(":", 1)[1])

    def stop(self) -> str:
        """Ends it in order; what it has said on standard error."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0, errors
        return errors


@pytest.fixture
def start_proxy() -> Iterator[Callable[..., AuthProxy]]:
    proxies: list[AuthProxy] = []

    def start(*arguments, **options) -> AuthProxy:
        proxies.append(AuthProxy(*arguments, **options))
        return proxies[-1]

    yield start
    for proxy in proxies:
        if proxy.process.poll() is None:
            proxy.stop()


def key_file(folder: Path, name: str = "board.key", mode: int = 0o600) -> Path:
    path = folder / name
    path.write_bytes(base64.b64encode(os.urandom(32)) + b"\n")
    path.chmod(mode)
    return path


def refusal(port: int) -> str:
    with pytest.raises(tvm.TVMError) as caught:
        rpc.connect("127.0.0.1", port, "kitchen")
    return str(caught.value)


def test_who_knows_the_key_is_served(start_server, start_proxy, tmp_path):
    key = key_file(tmp_path)
    server = start_server("--key", "kitchen", "--auth-key-file", str(key))
    proxy = start_proxy(f"127.0.0.1:{server.port}", key)
    content = os.urandom(3_000_000)
    for _ in range(2):
        remote = rpc.connect("127.0.0.1", proxy.port, "kitchen")
        remote.upload(bytearray(content), "dat.bin")
        assert bytes(remote.download("dat.bin")) == content
        del remote
        gc.collect()
        server.wait_until_idle()
    assert proxy.stop() == ""


def test_others_are_not(start_server, start_proxy, tmp_path):
    server = start_server("--key", "kitchen", "--auth-key-file", str(key_file(tmp_path)))
    assert "cannot find server that matches" in refusal(server.port)
    wait_until(lambda: "came without answering the challenge" in server.log(), "the log")

    proxy = start_proxy(f"127.0.0.1:{server.port}", key_file(tmp_path, "other.key"))
    assert "cannot find server that matches" in refusal(proxy.port)
    wait_until(lambda: "does not know the key" in server.log(), "the log")
    assert "another key" in proxy.stop()
    assert not server.session_folders()


def test_the_board_has_to_know_the_key_too(start_proxy, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as impostor:
        impostor.settimeout(PATIENCE_SECONDS)
        proxy = start_proxy(f"127.0.0.1:{impostor.getsockname()[1]}", key_file(tmp_path))
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            board, _ = impostor.accept()
            with board:
                board.settimeout(PATIENCE_SECONDS)
                magic = struct.pack("<i", 0xAF271)
                assert board.recv(36, socket.MSG_WAITALL)[:4] == magic
                board.sendall(magic + os.urandom(32))
                assert len(board.recv(32, socket.MSG_WAITALL)) == 32
                board.sendall(magic + os.urandom(32))
                assert board.recv(1) == b""
            client.settimeout(PATIENCE_SECONDS)
            client.sendall(struct.pack("<ii", 0xFF271, 7) + b"client:")
            assert client.recv(4, socket.MSG_WAITALL) == struct.pack("<i", 0xFF273)
        assert "it is not the board" in proxy.stop()


def holds(pid: int, content: bytes) -> bool:
    """Whether these bytes are anywhere in what a process can write to."""
    areas = [line.split()[:2] for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for where, rights in areas:
            if not rights.startswith("rw"):
                continue
            start, end = (int(number, 16) for number in where.split("-"))
            memory.seek(start)
            if content in memory.read(end - start):
                return True
    return False


def test_a_session_does_not_have_the_key(start_server, start_proxy, tmp_path):
    key = key_file(tmp_path)
    server = start_server("--key", "kitchen", "--auth-key-file", str(key))
    proxy = start_proxy(f"127.0.0.1:{server.port}", key)
    remote = rpc.connect("127.0.0.1", proxy.port, "kitchen")
    assert remote.cpu(0).exist
    [session] = [pid for pid in server.processes() if pid != server.pid]
    content = key.read_bytes().strip()
    assert holds(server.pid, content) and not holds(session, content)
    del remote
    gc.collect()


@pytest.mark.slow
def test_a_client_waits_while_the_board_is_busy(start_server, start_proxy, tmp_path):
    """For longer than the proxy gives a board that says nothing."""
    key = key_file(tmp_path)
    server = start_server("--key", "kitchen", "--auth-key-file", str(key))
    proxy = start_proxy(f"127.0.0.1:{server.port}", key)
    with ThreadPoolExecutor() as threads:
        busy = rpc.connect("127.0.0.1", proxy.port, "kitchen")
        waiting = threads.submit(rpc.connect, "127.0.0.1", proxy.port, "kitchen")
        time.sleep(12)
        assert not waiting.done()
        del busy
        gc.collect()
        assert waiting.result(PATIENCE_SECONDS).cpu(0).exist
    del waiting
    gc.collect()


def test_a_server_without_a_key_is_named(start_server, start_proxy, tmp_path):
    server = start_server()
    proxy = start_proxy(f"127.0.0.1:{server.port}", key_file(tmp_path))
    assert "cannot find server that matches" in refusal(proxy.port)
    assert "has no --auth-key-file" in proxy.stop()


def test_a_tracker_sends_clients_to_the_proxy(start_server, start_proxy, tracker, tmp_path):
    key = key_file(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = start_server("--key", "kitchen", "--auth-key-file", str(key), "--tracker",
                          f"127.0.0.1:{tracker.port}", "--custom-addr", f"127.0.0.1:{port}")
    start_proxy(f"127.0.0.1:{server.port}", key, port=port)
    wait_until(lambda: "registered" in server.log(), "the server's registration")
    remote = rpc.connect_tracker("127.0.0.1", tracker.port).request("kitchen")
    assert remote.cpu(0).exist
    del remote


@pytest.mark.parametrize("mode, content, code", [
    (0o644, b"0123456789abcdef", 3), (0o600, b"0123456789abcde\n", 4), (0o600, b"k" * 5000, 4)])
def test_a_bad_key_file_is_refused_by_both(tmp_path, mode, content, code):
    path = key_file(tmp_path)
    path.write_bytes(content)
    path.chmod(mode)
    proxy = subprocess.run([sys.executable, str(PROGRAM), "127.0.0.1:1", "--key-file", str(path)],
                           capture_output=True, text=True)
    server = subprocess.run([os.environ["RUN_MODEL_RPC_SERVER"], "--auth-key-file", str(path)],
                            capture_output=True, text=True)
    for result in (proxy, server):
        assert result.returncode == code
        assert str(path) in result.stderr
        assert "Traceback" not in result.stderr
