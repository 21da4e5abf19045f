"""Clients that vanish or talk nonsense: the server stays up, and as it was."""

from __future__ import annotations

import random
import socket
import struct

import pytest
from board import IS_NATIVE, native_only
from raw_client import (
    ALLOCATE,
    CALL,
    COPY_FROM,
    COPY_TO,
    FIND,
    INIT,
    MAGIC,
    MISMATCH,
    TEXT,
    RawClient,
    ends,
    frame,
    running,
    sequence,
    serves,
    text,
)

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
