"""The rewards of episodes as a picture in SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cartpole_tools.environment import MAX_STEPS, SOLVED

_WIDTH, _HEIGHT = 800, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 20, 64, 48
#: By lightness too, for those who see colours differently; rings go around dots where both agree.
_STYLES = {"local": ("6", 'fill="none" stroke="#d1495b" stroke-width="1.6"'),
           "rpc": ("2.8", 'fill="#1d3557"'),
           "random": ("2.8", 'fill="#a0a0a0"')}


def reward_plot(title: str, series: Sequence[tuple[str, str, Sequence[int]]]) -> str:
    """An SVG document. Each of `series`: "local", "rpc" or "random", which decides how it looks,
    its name, and the reward of each episode from the first."""
    episodes = max(len(rewards) for _, _, rewards in series)

    def across(episode: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (episode - 0.5) / episodes

    def down(reward: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * reward / (MAX_STEPS * 1.04)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
             f'width="{_WIDTH}" height="{_HEIGHT}" font-family="DejaVu Sans, Verdana, sans-serif" '
             'font-size="12" fill="#333">',
             f"<title>{escape(title)}</title>",
             f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
             _text(_LEFT, 24, title, 'font-size="15" font-weight="bold"')]
    for reward in range(0, MAX_STEPS + 1, 100):
        parts += [_line(down(reward), "#ddd"),
                  _text(_LEFT - 8, down(reward) + 4, str(reward), 'text-anchor="end"')]
    for episode in _ticks(episodes):
        parts.append(_text(across(episode), _HEIGHT - _BOTTOM + 18, str(episode),
                           'text-anchor="middle"'))
    parts += [_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, "episode", 'text-anchor="middle"'),
              f'<text transform="translate(14 {(_TOP + _HEIGHT - _BOTTOM) / 2:.1f}) rotate(-90)" '
              'text-anchor="middle">reward</text>',
              _line(down(SOLVED), "#777", ' stroke-dasharray="5 4"'),
              _text(_WIDTH - _RIGHT - 4, down(SOLVED) + 16,
                    f"{SOLVED:.0f}: what the average has to reach",
                    'text-anchor="end" fill="#666"')]
    beside = float(_LEFT)
    for kind, name, rewards in series:
        radius, look = _STYLES[kind]
        parts.append(f"<g {look}>")
        parts += [f'<circle cx="{across(i):.1f}" cy="{down(reward):.1f}" r="{radius}"/>'
                  for i, reward in enumerate(rewards, 1)]
        parts.append("</g>")
        caption = f"{name}: average {sum(rewards) / len(rewards):.1f}"
        parts += [f'<circle cx="{beside + 6:.1f}" cy="43" r="{radius}" {look}/>',
                  _text(beside + 18, 47, caption)]
        beside += 48 + 6.6 * len(caption)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _ticks(episodes: int) -> list[int]:
    """The first episode, and round numbers after it."""
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10 ** 9) if episodes <= 12 * s)
    return [1, *range(step if step > 1 else 2, episodes + 1, step)]


def _line(y: float, colour: str, more: str = "") -> str:
    return (f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="{colour}"{more}/>')


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{" " + more if more else ""}>{escape(text)}</text>'
