"""Which choice of layers to stay float32 does what is asked, as measured.

What the layers change together is only estimated (fallback.py), so choices are measured, and where
more was lost than expected, more is asked of the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from run_model_tools.kernels.int8.from_float32.fallback import Chooser, Demand

# How often layers are chosen anew, where more was lost than estimated, and the part of it that is
# asked for then at most.
_ROUNDS = 6
_NEXT = 0.9
# How many choices between the last that failed and the first that did are tried after that.
_REFINEMENTS = 2
# With less of its work in bytes, a network gains nothing by them.
LEAST_WORK = 0.1
# How much of the work may go back to float32 for what is asked beyond what will do, and how much it
# may be expected to be if that is to be tried.
_FOR_MORE, _WORTH_TRYING = 0.08, 0.25


@dataclass(frozen=True)
class Try:
    """A choice that was measured."""

    kept: set[int]
    asked: Demand
    measured: dict[str, Any]

    @property
    def have(self) -> Demand:
        """What was measured."""
        return Demand(self.measured.get("expected_agreement", 1.0),
                      self.measured["relative_error"])


Attempt = Callable[[Demand, set[int]], Try]


def best_try(chooser: Chooser, demand: Demand, least: float, attempt: Attempt) -> Try | None:
    """The choice that does what is demanded with the least work in float32; None if there is none.

    Where that leaves much more of the work to float32 than an agreement of `least` would, it is
    the choice that does that.  `attempt` compiles and measures a choice.
    """
    enough = Demand(least, demand.error)
    asked, most, better = enough, 1 - LEAST_WORK, None
    more = chooser.share(chooser.choose(demand)) - chooser.share(chooser.choose(enough))
    if least >= demand.agreement or more <= _WORTH_TRYING:
        better = _search(chooser, demand, demand, attempt, most)
        if least >= demand.agreement or (
                better is not None and chooser.share(better.kept) <= _FOR_MORE):
            return better
    if better is not None:
        # Those to come will be as much better than expected as this one was.
        asked = _easier(enough, chooser.expected(better.kept), better.have)
        most = chooser.share(better.kept) - _FOR_MORE
        while chooser.share(chooser.choose(asked)) > most:
            asked = Demand(1 - (1 - asked.agreement) / _NEXT, asked.error / _NEXT)
    return _search(chooser, asked, enough, attempt, most) or better


def _search(chooser: Chooser, asked: Demand, demand: Demand, attempt: Attempt,
            most: float) -> Try | None:
    """The choice with the least work in float32 that does what is demanded, as measured, of which
    at first so much is asked; `most` is the share of the work that may be."""
    here: list[Try] = []
    while len(here) < _ROUNDS:
        kept = chooser.choose(asked)
        while any(kept == one.kept for one in here) and len(kept) < len(chooser.found.groups):
            asked = Demand(1 - (1 - asked.agreement) * _NEXT, asked.error * _NEXT)
            kept = chooser.choose(asked)
        if chooser.share(kept) > most:
            break
        here.append(attempt(asked, kept))
        if here[-1].have.meets(demand):
            return _refined(here, demand, chooser, attempt)
        asked = _next(asked, demand, chooser.expected(kept), here[-1].have)
    return None


def _refined(tries: list[Try], demand: Demand, chooser: Chooser, attempt: Attempt) -> Try:
    """The cheapest choice that does what is demanded, as the last of them does: what was asked for
    then may have been more than is needed."""
    best = tries[-1]
    # Of a first choice, what was not asked for: as much worse as it was better than expected.
    failed = tries[-2].asked if len(tries) > 1 else _easier(
        demand, chooser.expected(best.kept), best.have)
    for _ in range(_REFINEMENTS):
        asked = failed if len(tries) == 1 else failed.between(best.asked)
        kept = chooser.choose(asked)
        if any(kept == one.kept for one in tries):
            break
        tries.append(attempt(asked, kept))
        if not tries[-1].have.meets(demand):
            failed = asked
        elif chooser.share(kept) < chooser.share(best.kept):
            best = tries[-1]
    return best


def _next(asked: Demand, demand: Demand, expected: Demand, have: Demand) -> Demand:
    """What to ask of the next choice, which will be as much worse than expected as this one."""
    def of(part: float, wanted: float, guess: float, found: float) -> float:
        return part if found <= wanted else min(part * _NEXT, wanted * guess / found)
    return Demand(1 - of(1 - asked.agreement, 1 - demand.agreement, 1 - expected.agreement,
                         1 - have.agreement),
                  of(asked.error, demand.error, expected.error, have.error))


def _easier(demand: Demand, expected: Demand, have: Demand) -> Demand:
    """What to ask for less than is demanded, of a choice that is better than expected."""
    def ratio(guess: float, found: float) -> float:
        return min(2.0, max(1.0, guess / max(found, 1e-9)))
    return Demand(
        1 - min(1.0, (1 - demand.agreement) * ratio(1 - expected.agreement, 1 - have.agreement)),
        demand.error * ratio(expected.error, have.error))
