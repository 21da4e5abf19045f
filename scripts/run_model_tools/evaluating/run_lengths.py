"""COCO's run lengths of masks: down the columns, first those of zeros, as a list or as a text."""

from __future__ import annotations

from typing import Any

import numpy as np


def counts_of(text: str) -> list[int]:
    """The text form: five bits a character from '0' on, the low ones first, with a bit for more to
    come; from the third count on the difference to the one before the last. Raises ValueError."""
    counts: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64 or shift > 40:
            raise ValueError("the run lengths hold an unknown character or too large a number")
        value |= (bits & 0x1F) << shift
        shift += 5
        if not bits & 0x20:
            if bits & 0x10:
                value -= 1 << shift
            if len(counts) > 2:
                value += counts[-2]
            counts.append(value)
            value = shift = 0
    if shift:
        raise ValueError("the run lengths break off")
    return counts


def lengths_of(code: dict[str, Any]) -> tuple[int, int, np.ndarray]:
    """(height, width, lengths of zeros and ones in turn) of {"size": [height, width], "counts":
    text or list}. Raises ValueError."""
    try:
        height, width = (int(n) for n in code["size"])
        counts = code["counts"]
    except (KeyError, TypeError, ValueError):
        raise ValueError("there are no run lengths of a mask") from None
    lengths = np.array(counts_of(counts) if isinstance(counts, str) else counts, dtype=np.int64)
    if lengths.size and lengths.min() < 0 or lengths.sum() != height * width:
        raise ValueError(f"the run lengths do not make {height} x {width} pixels")
    return height, width, lengths


def mask_of(code: dict[str, Any]) -> np.ndarray:
    """bool [height, width] of what lengths_of() takes. Raises ValueError."""
    height, width, lengths = lengths_of(code)
    values = np.arange(lengths.size) % 2 == 1
    return np.repeat(values, lengths).reshape(width, height).T
