"""Pictures for tests: patterns that C++ makes as well, and files that Pillow cannot write."""

from __future__ import annotations

import struct
import zlib

import numpy as np

_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
          (0, 1, 1, 2))


def pattern(width: int, height: int, seed: int) -> np.ndarray:
    """uint8 [height, width, 3], the same as make_pattern in tests/preprocess/pattern.cc.

    By seed % 3: noise, a sawtooth with a little noise, or black and white noise (whose sharp edges
    make a bicubic filter leave 0..255).
    """
    y, x, c = np.meshgrid(np.arange(height, dtype=np.uint32), np.arange(width, dtype=np.uint32),
                          np.arange(3, dtype=np.uint32), indexing="ij")
    mixed = (x * np.uint32(73856093) ^ y * np.uint32(19349663) ^ c * np.uint32(83492791)
             ^ np.uint32(seed * 2654435761 & 0xFFFFFFFF))
    mixed = mixed * np.uint32(2246822519)
    mixed ^= mixed >> np.uint32(15)
    noise = (mixed * np.uint32(3266489917)) >> np.uint32(24)
    if seed % 3 == 0:
        values = noise
    elif seed % 3 == 1:
        values = x * np.uint32(5) + y * np.uint32(3) + c * np.uint32(40) + (noise & np.uint32(7))
    else:
        values = np.where(noise >= 128, np.uint32(255), np.uint32(0))
    return (values & np.uint32(255)).astype(np.uint8)


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _filter_row(kind: int, row: bytes, above: bytes, step: int) -> bytes:
    """One of PNG's five filters, as a decoder undoes it."""
    result = bytearray()
    for i, value in enumerate(row):
        left = row[i - step] if i >= step else 0
        up = above[i]
        corner = above[i - step] if i >= step else 0
        estimate = left + up - corner
        nearest = min((abs(estimate - left), 0, left), (abs(estimate - up), 1, up),
                      (abs(estimate - corner), 2, corner))[2]
        result.append((value - (0, left, up, (left + up) // 2, nearest)[kind]) & 255)
    return bytes(result)


def _pack_samples(samples: np.ndarray, depth: int) -> bytes:
    """A row of samples as PNG packs it."""
    if depth == 16:
        return samples.astype(">u2").tobytes()
    bits = "".join(format(int(s), f"0{depth}b") for s in samples)
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def png(samples: np.ndarray, depth: int, color_type: int, interlaced: bool = False,
        extra: tuple[tuple[bytes, bytes], ...] = ()) -> bytes:
    """A PNG file of samples [height, width, channels], using all filters in turn.

    `extra` are chunks (type, body) before the data: PLTE, tRNS, eXIf.
    """
    height, width, channels = samples.shape
    step = max(1, channels * depth // 8)
    data = bytearray()
    for left, top, across, down in _ADAM7 if interlaced else ((0, 0, 1, 1),):
        part = samples[top::down, left::across]
        if part.size == 0:
            continue
        above = bytes(len(_pack_samples(part[0].ravel(), depth)))
        for i, line in enumerate(part):
            row = _pack_samples(line.ravel(), depth)
            data += bytes([i % 5]) + _filter_row(i % 5, row, above, step)
            above = row
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header)
            + b"".join(png_chunk(kind, body) for kind, body in extra)
            + png_chunk(b"IDAT", zlib.compress(bytes(data), 9)) + png_chunk(b"IEND", b""))


def _pack_bits(row: bytes) -> bytes:
    """PackBits: runs of three and more as one pair, the rest literally."""
    result = bytearray()
    i = 0
    while i < len(row):
        run = 1
        while i + run < len(row) and run < 128 and row[i + run] == row[i]:
            run += 1
        if run >= 3:
            result += bytes([257 - run, row[i]])
            i += run
            continue
        start = i
        while i < len(row) and i - start < 128 and not (row[i:i + 3] == row[i:i + 1] * 3
                                                        and i + 3 <= len(row)):
            i += 1
        result += bytes([i - start - 1]) + row[start:i]
    return bytes(result)


def psd(samples: np.ndarray, compressed: bool) -> bytes:
    """A PSD file of 8-bit RGB or RGBA samples [height, width, channels], merged picture only."""
    height, width, channels = samples.shape
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, channels, height, width, 8, 3) + bytes(12)
    planes = samples.transpose(2, 0, 1)
    if not compressed:
        return head + struct.pack(">H", 0) + planes.tobytes()
    rows = [_pack_bits(line.tobytes()) for plane in planes for line in plane]
    table = b"".join(struct.pack(">H", len(row)) for row in rows)
    return head + struct.pack(">H", 1) + table + b"".join(rows)


def exif(orientation: int, big_endian: bool = False) -> bytes:
    """A TIFF structure that holds the orientation alone."""
    order = ">" if big_endian else "<"
    return ((b"MM" if big_endian else b"II") + struct.pack(order + "HIH", 42, 8, 1)
            + struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
            + struct.pack(order + "I", 0))
