"""A client that speaks TVM's protocol by hand, so that it can speak it wrongly or fall silent."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path

from server_process import PATIENCE_SECONDS, ServerProcess

MAGIC, MISMATCH = 0xFF271, 0xFF273
# Request codes and type codes (rpc/protocol.h).
SHUTDOWN, INIT, CALL, RETURN, EXCEPTION, COPY_FROM, COPY_TO, ACK, FIND = range(1, 10)
ALLOCATE = 13
INT, NULL, DEVICE, TEXT, BYTES = 0, 4, 6, 11, 12


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def frame(code: int, content: bytes = b"") -> bytes:
    return struct.pack("<Qi", 4 + len(content), code) + content


def sequence(*codes: int) -> bytes:
    return struct.pack(f"<i{len(codes)}i", len(codes), *codes)


class RawClient:
    """A connection, after the handshake unless told otherwise."""

    def __init__(self, server: ServerProcess, key: str = "", *, handshake: bool = True,
                 start: bool = True):
        self.socket = socket.create_connection((server.host, server.port), PATIENCE_SECONDS)
        if handshake:
            self.send(self.greeting(key))
            magic, length = struct.unpack("<ii", self.receive(8))
            assert magic == MAGIC
            self.receive(length)
            if start:
                self.send(frame(INIT, text("0.8.0") + sequence()))
                assert self.answer()[0] == RETURN

    @staticmethod
    def greeting(key: str) -> bytes:
        name = f"client:{key}".encode()
        return struct.pack("<ii", MAGIC, len(name)) + name

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def receive(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            more = self.socket.recv(size - len(content))
            if not more:
                raise EOFError(f"the server closed after {len(content)} of {size} bytes")
            content += more
        return content

    def answer(self) -> tuple[int, bytes]:
        """The code and the content of one frame."""
        size, code = struct.unpack("<Qi", self.receive(12))
        return code, self.receive(size - 4)

    def error(self) -> str:
        code, content = self.answer()
        assert code == EXCEPTION, (code, content)
        return content[16:].decode(errors="replace")

    def function(self, name: str) -> int:
        """The handle of a function that the server offers by name."""
        self.send(frame(FIND, sequence(TEXT) + text(name)))
        code, content = self.answer()
        assert code == RETURN
        return struct.unpack("<Q", content[-8:])[0]

    def upload_head(self, name: str, size: int) -> bytes:
        """The start of an upload, up to the content."""
        head = (struct.pack("<Q", self.function("tvm.rpc.server.upload"))
                + sequence(TEXT, BYTES) + text(name) + struct.pack("<Q", size))
        return struct.pack("<Qi", 4 + len(head) + size, CALL) + head

    def tensor(self, size: int) -> bytes:
        """A one-dimensional tensor of bytes in newly allocated memory, as requests describe it."""
        self.send(frame(ALLOCATE, sequence(DEVICE, INT, INT, 5)
                        + struct.pack("<iiqqBBHi", 1, 0, size, 64, 1, 8, 1, 0)))
        code, content = self.answer()
        assert code == RETURN, content
        memory = struct.unpack("<Q", content[-8:])[0]
        return struct.pack("<QiiiBBHqQ", memory, 1, 0, 1, 1, 8, 1, size, 0)

    def vanish(self) -> None:
        """Closes with a reset, as a host that lost its power or its process does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()


def serves(server: ServerProcess) -> None:
    """Fails unless the server takes a file."""
    client = RawClient(server)
    client.send(client.upload_head("greeting", 5) + b"hello")
    assert client.answer()[0] == RETURN
    client.close()


def ends(client: RawClient) -> bool:
    """Whether the server closes the connection, whatever it says before."""
    try:
        while client.socket.recv(4096):
            pass
    except ConnectionResetError:
        pass
    client.close()
    return True


def running(server: ServerProcess, library: Path, function: str) -> RawClient:
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
