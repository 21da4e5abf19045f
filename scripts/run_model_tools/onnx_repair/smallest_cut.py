"""The fewest vertices that separate some vertices of a graph from others (max flow, min cut)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

UNCUTTABLE = 1 << 30

_Place = tuple[str, int]
_START, _END = ("", 0), ("", 1)


def smallest_cut(weights: Mapping[str, int], edges: Iterable[tuple[str, str]],
                 starts: Iterable[str], ends: Iterable[str], most: int) -> list[str] | None:
    """Vertices on all ways from `starts` to `ends`, the lightest set of them, nearest to the ends.

    weights: of every vertex.  None where there is no set lighter than UNCUTTABLE and of at most
    `most` vertices.  A start or an end may be in the set itself.
    """
    # Ford and Fulkerson, with an edge from (vertex, 0) to (vertex, 1) for each vertex.
    room: dict[_Place, dict[_Place, int]] = defaultdict(dict)

    def connect(a: _Place, b: _Place, width: int) -> None:
        room[a][b] = width
        room[b].setdefault(a, 0)

    for name, weight in weights.items():
        connect((name, 0), (name, 1), weight)
    for before, after in edges:
        connect((before, 1), (after, 0), UNCUTTABLE)
    for name in starts:
        connect(_START, (name, 0), UNCUTTABLE)
    for name in ends:
        connect((name, 1), _END, UNCUTTABLE)
    for _ in range(most + 1):
        way = _way(room)
        if way is None:
            break
        width = min(room[a][b] for a, b in way)
        if width >= UNCUTTABLE:
            return None
        for a, b in way:
            room[a][b] -= width
            room[b][a] += width
    else:
        return None
    reaching = _reaching(room)
    return [name for name in weights if (name, 1) in reaching and (name, 0) not in reaching]


def _way(room: Mapping[_Place, Mapping[_Place, int]]) -> list[tuple[_Place, _Place]] | None:
    """A shortest way on which there is room."""
    came: dict[_Place, _Place] = {_START: _START}
    queue = deque([_START])
    while queue and _END not in came:
        place = queue.popleft()
        for following, width in room.get(place, {}).items():
            if width and following not in came:
                came[following] = place
                queue.append(following)
    if _END not in came:
        return None
    way, place = [], _END
    while place != _START:
        way.append((came[place], place))
        place = came[place]
    return way


def _reaching(room: Mapping[_Place, Mapping[_Place, int]]) -> set[_Place]:
    """From where there is room to the end."""
    reached = {_END}
    queue = deque([_END])
    while queue:
        place = queue.popleft()
        for before in room.get(place, {}):
            if before not in reached and room[before].get(place, 0):
                reached.add(before)
                queue.append(before)
    return reached
