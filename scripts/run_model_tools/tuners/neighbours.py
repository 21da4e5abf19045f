"""The plainest search among a layer's kernels: the guesses first, then what is near the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from run_model_tools.tuners.kernel_space import Option, space_of
from run_model_tools.tuners.search import Search

# A kernel whose guess is so many times slower than the best is not looked at further.
FAR_BEHIND = 1.3

# So few parameter sets of a kernel are all tried; often they hang together (winograd_cost.py).
FEW = 12


class Neighbours(Search):
    """First the guesses of all kernels, then what differs from the best so far in one parameter,
    and all of a kernel that offers but a few, until that finds nothing faster."""

    def __init__(self, options: Sequence[Option]) -> None:
        space, self.indices = space_of(options)
        self._options = list(options)
        firsts = {kernel: place for place, (kernel, _) in reversed(list(enumerate(options)))}
        super().__init__(space, start=[self.indices[place] for place in sorted(firsts.values())])
        self._firsts = firsts
        counts = Counter(kernel for kernel, _ in options)
        self._few = {kernel for kernel, count in counts.items() if count <= FEW}
        self._waiting: list[int] = []

    def propose(self, count: int) -> list[int]:
        """Fewer than `count`, or none, where nothing that is left promises anything."""
        chosen = [i for i in self._start if i not in self.proposed][:count]
        self.proposed.update(chosen)
        if not chosen:
            chosen = self._choose(count)
            self.proposed.update(chosen)
            self._exhausted = not chosen
        return chosen

    def _choose(self, count: int) -> list[int]:
        if not self._waiting:
            self._waiting = self._near()
        chosen, self._waiting = self._waiting[:count], self._waiting[count:]
        return chosen

    def _near(self) -> list[int]:
        place_of = {index: place for place, index in enumerate(self.indices)}
        best = max(self.speeds, key=self.speeds.__getitem__)
        untried = [i for i in self.indices if i not in self.proposed]
        here = self._options[place_of[best]]
        near = [i for i in untried if _one_apart(self._options[place_of[i]], here)]
        return near + [i for i in untried if i not in near
                       and self._worth_all(self._options[place_of[i]][0])]

    def _worth_all(self, kernel: str) -> bool:
        speed = self.speeds.get(self.indices[self._firsts[kernel]], 0.0)
        return kernel in self._few and speed * FAR_BEHIND >= self.best_speed


def _one_apart(a: Option, b: Option) -> bool:
    """Whether two options are of one kernel and differ in one parameter."""
    return a[0] == b[0] and sum(a[1][name] != b[1].get(name) for name in a[1]) == 1
