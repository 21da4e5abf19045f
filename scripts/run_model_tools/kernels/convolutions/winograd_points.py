"""Winograd's minimal filtering F(m, 3): the points, and the matrices that they give.

Outputs are y = inverse @ ((taps @ g) * (data @ d)) for m + 2 inputs d and 3 taps g.  Toom and
Cook's construction (Winograd, Arithmetic Complexity of Computations, 1980; Lavin and Gray,
arXiv:1509.09308): two polynomials are multiplied by their values at m + 1 points and at infinity;
the transposed algorithm is the correlation.
"""

from __future__ import annotations

import numpy as np

POINTS: dict[int, tuple[float, ...]] = {2: (1.0,), 4: (0.625, 1.5), 6: (0.5, 1.0, 2.0)}
"""By tile: the positive points; 0, infinity and the negatives are always there.

The usual 1 and 2 for F(4, 3) round twice as much.  The best are near the square roots of 1/2 and 2;
of the fractions near them, whose powers float32 represents exactly, these are
(kernels/winograd_error.md).
"""


def order(points: tuple[float, ...]) -> list[float]:
    """All points in the order that the C code keeps: 0, infinity, +a, -a, +b, -b."""
    return [0.0, np.inf] + [sign * p for p in points for sign in (1, -1)]


def even_coefficients(points: tuple[float, ...]) -> list[float]:
    """Of the product of (x^2 - p^2): those of 1, x^2, x^4, ... up to the leading 1."""
    poly = np.array([1.0])
    for p in points:
        poly = np.convolve(poly, [-p * p, 1.0])
    return poly.tolist()


def matrices(points: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(data (m+2, m+2), taps (m+2, 3), inverse (m, m+2)) in float64, rows or columns in `order`."""
    tile = 2 * len(points)
    size = tile + 2
    data, taps, inverse = np.zeros((size, size)), np.zeros((size, 3)), np.zeros((tile, size))
    finite = [p for p in order(points) if np.isfinite(p)]
    for row, point in enumerate(order(points)):
        if np.isinf(point):
            data[row, 1::2] = even_coefficients(points)
            taps[row, 2] = 1
            inverse[tile - 1, row] = 1
            continue
        if point == 0:
            data[row, 0:size:2] = even_coefficients(points)
        else:
            rest = even_coefficients(tuple(p for p in points if p != abs(point)))
            data[row, 2::2] = rest
            data[row, 1:size - 1:2] = np.multiply(rest, point)
        scale = np.prod([point - other for other in finite if other != point])
        taps[row] = point ** np.arange(3) / scale
        inverse[:, row] = point ** np.arange(tile)
    return data, taps, inverse


def defines(points: tuple[float, ...]) -> dict[str, object]:
    """winograd_transform.h's macros."""
    without = [even_coefficients(tuple(q for q in points if q != p))[:-1] or [0.0] for p in points]
    _, taps, _ = matrices(points)
    return {"OUT_TILE": 2 * len(points), "POINTS": list(points),
            "EVEN": even_coefficients(points)[:-1], "WITHOUT": without,
            "TAP_ZERO": float(taps[0, 0]), **{
                name: taps[2::2, tap].tolist()
                for tap, name in enumerate(("FIRST_TAP", "MIDDLE_TAP", "LAST_TAP"))}}
