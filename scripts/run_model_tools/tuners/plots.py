"""Curves of the best so far against trials, as a picture in SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

_WIDTH, _HEIGHT, _COLUMNS = 360, 240, 3
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 30, 36
_HEAD = 62
#: Okabe and Ito's colours, which those tell apart who see few; and dashes besides.
_LOOKS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_DASHES = ("", "6 3", "2 2", "8 3 2 3")
_LOW = 0.5


def curves_plot(title: str, across: str, panels: Mapping[str, Mapping[str, np.ndarray]]) -> str:
    """An SVG document with a panel for each task.

    A panel has for each tuner [3, n] numbers: the middle and both ends of a band, of the best speed
    after each trial as a share of the best known.  across: what the horizontal axis is called.
    """
    tuners = list(dict.fromkeys(tuner for panel in panels.values() for tuner in panel))
    rows = -(-len(panels) // _COLUMNS)
    columns = min(_COLUMNS, len(panels))
    width, height = columns * _WIDTH, _HEAD + rows * _HEIGHT
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}" font-family="DejaVu Sans, Verdana, sans-serif" '
             'font-size="11" fill="#333">', f"<title>{escape(title)}</title>",
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="12" y="22" font-size="14" font-weight="bold">{escape(title)}</text>']
    beside = 12.0
    for place, tuner in enumerate(tuners):
        parts.append(f'<line x1="{beside:.0f}" x2="{beside + 26:.0f}" y1="44" y2="44" '
                     f'{_look(place)}/><text x="{beside + 31:.0f}" y="48">{escape(tuner)}</text>')
        beside += 46 + 7.2 * len(tuner)
    for number, (task, panel) in enumerate(panels.items()):
        left, top = number % _COLUMNS * _WIDTH, _HEAD + number // _COLUMNS * _HEIGHT
        parts.append(f'<g transform="translate({left} {top})">')
        parts += _panel(task, across, panel, tuners)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(task: str, across: str, panel: Mapping[str, np.ndarray],
           tuners: list[str]) -> list[str]:
    count = max(numbers.shape[1] for numbers in panel.values())

    def x(trial: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * np.log(trial) / np.log(max(2, count))

    def y(share: float) -> float:
        kept = min(max(share, _LOW), 1.0)
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1.0 - kept) / (1.0 - _LOW)

    parts = [f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(task)}</text>']
    for share in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0):
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(share):.1f}" '
                     f'y2="{y(share):.1f}" stroke="{"#999" if share == 0.95 else "#ddd"}"/>'
                     f'<text x="{_LEFT - 5}" y="{y(share) + 4:.1f}" text-anchor="end">'
                     f'{share:.0%}</text>')
    for trial in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        if trial <= count:
            parts.append(f'<text x="{x(trial):.1f}" y="{_HEIGHT - _BOTTOM + 14}" '
                         f'text-anchor="middle">{trial}</text>')
    parts.append(f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{_HEIGHT - 6}" '
                 f'text-anchor="middle">{escape(across)}</text>')
    for tuner, numbers in panel.items():
        place = tuners.index(tuner)
        trials = range(1, numbers.shape[1] + 1)
        there = [f"{x(t):.1f},{y(v):.1f}" for t, v in zip(trials, numbers[2])]
        back = [f"{x(t):.1f},{y(v):.1f}" for t, v in zip(trials, numbers[1])]
        parts.append(f'<polygon points="{" ".join(there + back[::-1])}" '
                     f'fill="{_LOOKS[place % len(_LOOKS)]}" opacity="0.12"/>')
        middle = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in zip(trials, numbers[0]))
        parts.append(f'<polyline points="{middle}" {_look(place)}/>')
    return parts


def _look(place: int) -> str:
    dashes = _DASHES[place % len(_DASHES)]
    return (f'fill="none" stroke="{_LOOKS[place % len(_LOOKS)]}" stroke-width="1.8"'
            + (f' stroke-dasharray="{dashes}"' if dashes else ""))
