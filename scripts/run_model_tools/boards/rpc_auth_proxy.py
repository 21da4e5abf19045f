#!/usr/bin/env python3
"""Lets TVM's own RPC client use a board whose rpc_server has an auth key.

  rpc_auth_proxy board.local:9090 --key-file board.key

listens on this machine's loopback, and tvm.rpc.connect("127.0.0.1", 9090, key) reaches the board:
for each connection this program proves to the board that it knows the key, has the board prove the
same, and then passes on what either side sends.  Whoever can connect to this machine's loopback can
use it.

Behind a tracker, start the server with --custom-addr 127.0.0.1:9090, so that the tracker sends
clients here.  The key is the same file as the server's: at least 16 bytes that nobody else can
read, as of (umask 077; head -c 32 /dev/urandom | base64 > board.key).

What is passed on is not encrypted.  Exit codes: 0 ended by SIGTERM or Ctrl-C, 2 wrong usage, 3 file
or port that cannot be used, 4 no good key in the file.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import os
import signal
import socket
import stat
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path

# The protocol is described in rpc/server/authentication.h.
MAGIC = struct.pack("<i", 0xAF271)
MISMATCH = struct.pack("<i", 0xFF273)
NONCE_BYTES = 32
PROOF_BYTES = 32
LEAST_KEY_BYTES = 16
MOST_KEY_BYTES = 4096
PIECE = 1 << 18
PATIENCE_SECONDS = 10.0


class ProxyError(Exception):
    """One sentence for the user, and the exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_key(path: Path) -> bytes:
    """The key in a file, without the white space at its end."""
    try:
        with open(path, "rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise ProxyError(3, f"{path} can be read or changed by others than its owner; "
                                    "chmod 600 it, and make a new key if others may have seen it")
            key = file.read(MOST_KEY_BYTES + 1)
    except OSError as error:
        raise ProxyError(3, f"{path} cannot be read: {error.strerror}") from error
    if len(key) > MOST_KEY_BYTES:
        raise ProxyError(4, f"{path} has more than {MOST_KEY_BYTES} bytes")
    key = key.rstrip(b" \t\n\r\v\f")
    if len(key) < LEAST_KEY_BYTES:
        raise ProxyError(4, f"{path} has a key of {len(key)} bytes, expected at least "
                            f"{LEAST_KEY_BYTES}")
    return key


def proof(key: bytes, role: str, client: bytes, server: bytes) -> bytes:
    """What one side sends to show that it knows the key."""
    message = f"run_model rpc {role}".encode() + client + server
    return hmac.new(key, message, hashlib.sha256).digest()


def receive(connection: socket.socket, count: int) -> bytes:
    """Exactly that many bytes."""
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ProxyError(3, "the board has closed the connection during the challenge")
        data += piece
    return data


def answer_challenge(board: socket.socket, key: bytes) -> None:
    """Raises ProxyError when the two sides do not know the same key."""
    client = os.urandom(NONCE_BYTES)
    board.sendall(MAGIC + client)
    magic = receive(board, len(MAGIC))
    if magic != MAGIC:
        raise ProxyError(3, "the board's server has no --auth-key-file; connect to it directly"
                            if magic == MISMATCH else "what answers there is no rpc_server")
    server = receive(board, NONCE_BYTES)
    board.sendall(proof(key, "client", client, server))
    magic = receive(board, len(MAGIC))
    if magic != MAGIC:
        raise ProxyError(3, "the board's server has another key")
    if not hmac.compare_digest(receive(board, PROOF_BYTES), proof(key, "server", client, server)):
        raise ProxyError(3, "what answers there does not know the key itself: it is not the board")


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """Until the source has said all; the target is then told so."""
    buffer = memoryview(bytearray(PIECE))
    try:
        while count := source.recv_into(buffer):
            target.sendall(buffer[:count])
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side is gone: the other is to notice.
        for connection in (source, target):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def serve(client: socket.socket, address: tuple[str, int], key: bytes) -> None:
    """One client's connection, from its beginning to its end."""
    with client:
        try:
            board = connect(address, key)
        except (ProxyError, OSError) as error:
            say(f"{address[0]}:{address[1]}: {error}")
            refuse(client)
            return
        with board:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=pass_on, args=(board, client), daemon=True)
            back.start()
            pass_on(client, board)
            back.join()


def connect(address: tuple[str, int], key: bytes) -> socket.socket:
    """A connection to the board on which TVM's handshake can begin."""
    board = socket.create_connection(address, PATIENCE_SECONDS)
    try:
        board.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer_challenge(board, key)
        board.settimeout(None)
        return board
    except BaseException:
        board.close()
        raise


def refuse(client: socket.socket) -> None:
    """Tells TVM's client, which would otherwise know no more than that the connection has ended."""
    try:
        client.settimeout(PATIENCE_SECONDS)
        magic_and_length = receive(client, 8)
        receive(client, min(max(struct.unpack("<i", magic_and_length[4:])[0], 0), 1024))
        client.sendall(MISMATCH)
    except (ProxyError, OSError):
        pass


def say(message: str) -> None:
    print(f"rpc_auth_proxy: {message}", file=sys.stderr, flush=True)


def host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", type=host_and_port, metavar="HOST:PORT",
                        help="where the board's rpc_server listens")
    parser.add_argument("--key-file", type=Path, required=True, metavar="FILE",
                        help="the key, as given to rpc_server --auth-key-file")
    parser.add_argument("--port", type=int, default=9090, metavar="N",
                        help="the port to listen on, 0 for any free one (default: 9090)")
    return parser.parse_args()


def main() -> None:
    """Passes connections on until it is ended."""
    try:
        run(parse_arguments())
    except ProxyError as failure:
        say(str(failure))
        sys.exit(failure.code)
    except KeyboardInterrupt:
        sys.exit(0)


def run(args: argparse.Namespace) -> None:
    key = read_key(args.key_file)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        listener = socket.create_server(("127.0.0.1", args.port), backlog=128)
    except (OSError, OverflowError) as error:
        raise ProxyError(3, f"cannot listen on port {args.port}: {error}") from error
    print(f"listening on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, args.board, key), daemon=True).start()


if __name__ == "__main__":  # as the Debian package has it, by itself
    main()
