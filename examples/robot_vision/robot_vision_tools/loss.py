"""What training makes small: wrong boxes, wrong objectness, wrong classes, wrong areas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

#: An anchor is responsible for boxes of up to so many times its width and height, or parts of it.
_RESPONSIBLE = 3.0
#: What overlaps a box that much need not say that there is nothing.
_IGNORED = 0.5
#: Lines are few pixels.
_AREA_WEIGHTS = (1.0, 2.0, 1.0)


@dataclass(frozen=True)
class Truth:
    """Of one picture: boxes x0, y0, x1, y1 in pixels of the input; unclear ones are ignored."""

    boxes: Tensor
    classes: Tensor
    unclear: Tensor


def overlap(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """(intersection over union, the same less what the hull has in excess) of boxes x0 y0 x1 y1
    that broadcast."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    common = (high - low).clamp(min=0).prod(-1)
    areas = [(x[..., 2:] - x[..., :2]).clamp(min=0).prod(-1) for x in (a, b)]
    union = areas[0] + areas[1] - common + 1e-6
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2]))
    hull_area = hull.prod(-1) + 1e-6
    iou = common / union
    return iou, iou - (hull_area - union) / hull_area


def decode(raw: Tensor, anchors: Tensor, stride: int) -> tuple[Tensor, Tensor]:
    """(boxes [batch, anchors, s, s, 4], the other raw values [batch, anchors, s, s, 1 + classes])
    of a head."""
    batch, _, rows, columns = raw.shape
    values = raw.view(batch, len(anchors), -1, rows, columns).permute(0, 1, 3, 4, 2)
    x = torch.arange(columns, dtype=raw.dtype)[None, None, None, :]
    y = torch.arange(rows, dtype=raw.dtype)[None, None, :, None]
    centre_x = (values[..., 0].sigmoid() + x) * stride
    centre_y = (values[..., 1].sigmoid() + y) * stride
    extent = values[..., 2:4].clamp(max=6).exp() * anchors[None, :, None, None, :] / 2
    boxes = torch.stack([centre_x - extent[..., 0], centre_y - extent[..., 1],
                         centre_x + extent[..., 0], centre_y + extent[..., 1]], -1)
    return boxes, values[..., 4:]


class Loss:
    def __init__(self, anchors: Sequence[Sequence[tuple[float, float]]],
                 strides: Sequence[int]) -> None:
        self._anchors = [torch.tensor(of_head, dtype=torch.float32) for of_head in anchors]
        self._strides = strides
        self._area_weights = torch.tensor(_AREA_WEIGHTS)

    def __call__(self, heads: Sequence[Tensor], scores: Tensor, truths: Sequence[Truth],
                 mask: Tensor) -> tuple[Tensor, dict[str, float]]:
        parts = {"box": torch.zeros(()), "object": torch.zeros(()), "class": torch.zeros(())}
        count = 0
        for index, raw in enumerate(heads):
            boxes, rest = decode(raw, self._anchors[index], self._strides[index])
            wanted = torch.zeros_like(rest[..., 0])
            counted = torch.ones_like(wanted)
            for number, truth in enumerate(truths):
                if not len(truth.boxes):
                    continue
                with torch.no_grad():
                    flat = boxes[number].reshape(-1, 1, 4)
                    near = overlap(flat, truth.boxes[None])[0].amax(1) > _IGNORED
                    counted[number][near.view_as(counted[number])] = 0
                    self._leave_out_unclear(index, truth, counted[number])
                at, gt = self._responsible(index, truth, raw.shape[-2:])
                if not len(gt):
                    continue
                place = (number, *at.T)
                parts["box"] = parts["box"] + (
                    1 - overlap(boxes[place], truth.boxes[gt])[1]).sum()
                hot = functional.one_hot(truth.classes[gt], rest.shape[-1] - 1).float()
                parts["class"] = parts["class"] + functional.binary_cross_entropy_with_logits(
                    rest[..., 1:][place], hot, reduction="sum")
                wanted[place] = 1
                counted[place] = 1
                count += len(gt)
            parts["object"] = parts["object"] + (functional.binary_cross_entropy_with_logits(
                rest[..., 0], wanted, reduction="none") * counted).sum()
        parts = {name: value / max(count, 1) for name, value in parts.items()}
        parts["area"] = functional.cross_entropy(scores, mask, weight=self._area_weights)
        total = 3 * parts["box"] + parts["object"] + parts["class"] + 4 * parts["area"]
        return total, {name: float(value.detach()) for name, value in parts.items()}

    def _leave_out_unclear(self, index: int, truth: Truth, counted: Tensor) -> None:
        """Cells within an unclear box count neither way."""
        stride = self._strides[index]
        for box in truth.boxes[truth.unclear]:
            x0, y0, x1, y1 = (box / stride).tolist()
            counted[:, max(int(y0), 0):int(y1) + 1, max(int(x0), 0):int(x1) + 1] = 0

    def _responsible(self, index: int, truth: Truth,
                     cells: Sequence[int]) -> tuple[Tensor, Tensor]:
        """([n, 3]: anchor, row, column; [n]: box) of this head."""
        extent = truth.boxes[:, 2:] - truth.boxes[:, :2]
        every = torch.cat(self._anchors)
        ratio = extent[:, None] / every[None]
        worst = torch.maximum(ratio, 1 / ratio).amax(-1)
        good = worst < _RESPONSIBLE
        good[torch.arange(len(good)), worst.argmin(1)] = True
        good[truth.unclear] = False
        first = sum(len(of_head) for of_head in self._anchors[:index])
        gt, anchor = good[:, first:first + len(self._anchors[index])].nonzero(as_tuple=True)
        centre = (truth.boxes[gt, :2] + truth.boxes[gt, 2:]) / 2 / self._strides[index]
        column = centre[:, 0].long().clamp(0, cells[1] - 1)
        row = centre[:, 1].long().clamp(0, cells[0] - 1)
        return torch.stack([anchor, row, column], 1), gt
