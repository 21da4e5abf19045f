"""Intersection over union of areas, summed over all pictures before it is divided."""

from __future__ import annotations

from typing import Any

import numpy as np

#: A pixel of the truth that does not count.
VOID = 255


def confusion(truth: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """int64 [classes, classes]: pixels of class row that were called column.

    Raises ValueError for numbers of classes that there are not.
    """
    counted = truth != VOID
    true, found = truth[counted].astype(np.int64), predicted[counted].astype(np.int64)
    for name, values in (("truth", true), ("prediction", found)):
        if values.size and (values.min() < 0 or values.max() >= classes):
            raise ValueError(f"the {name} has the class {values.max()}, and the network "
                             f"{classes} classes")
    return np.bincount(true * classes + found, minlength=classes * classes).reshape(classes,
                                                                                  classes)


def summarise(matrix: np.ndarray) -> dict[str, Any]:
    """iou of each class (None where it is neither there nor found), their mean, and the share of
    right pixels."""
    right = np.diagonal(matrix)
    union = matrix.sum(0) + matrix.sum(1) - right
    iou = [float(r) / float(u) if u else None for r, u in zip(right, union)]
    known = [value for value in iou if value is not None]
    total = int(matrix.sum())
    return {"miou": sum(known) / len(known) if known else None, "iou": iou,
            "pixel_accuracy": float(right.sum()) / total if total else None}
