"""Open extents as expressions: what a number in shapes is, told by its values at several sizes."""

from fractions import Fraction
from itertools import combinations_with_replacement
from math import gcd

_SMALL = 8
"""Of numbers that stay below it at all sizes nothing but an extent at hand is believed: they agree
by chance."""

_FACTORS = (1, 2, 3, 4, 8)
"""How much larger a picture may be where it is cut than where it was padded."""

_STEPS = range(2, 17)
"""Of slices that are looked for."""


class NoExpression(Exception):
    """The numbers are none that is known how to compute."""


def value(expr, sizes):
    """The number of an expression for the sizes of its symbols, by their names."""
    kind = type(expr).__name__
    if isinstance(expr, int) or kind == "IntImm":
        return int(expr)
    if kind == "Var":
        return sizes[str(expr.name)]
    if kind == "Cast":
        return value(expr.value, sizes)
    if kind == "Call" and expr.op.name.endswith(".if_then_else"):
        # The importer's start of a slice: one below 0 is counted from the end.
        condition, then, otherwise = expr.args
        return value(then if value(condition, sizes) else otherwise, sizes)
    function = _FUNCTIONS.get(kind)
    if function is None:
        raise NoExpression("an extent is a %s" % kind)
    return function(value(expr.a, sizes), value(expr.b, sizes))


_FUNCTIONS = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b, "FloorMod": lambda a, b: a % b,
    "Div": lambda a, b: int(Fraction(a, b)), "Mod": lambda a, b: a - b * int(Fraction(a, b)),
    "Min": min, "Max": max, "LT": lambda a, b: a < b}


class Extents:
    """Knows expressions by their numbers at all samples: the symbols, and what came of them."""

    def __init__(self, tvm, symbols, samples):
        """symbols: Var by name; samples: sizes of all of them, by name."""
        self._tvm = tvm
        self._samples = samples
        self._known = {}
        self._widths = {}
        for name, symbol in symbols.items():
            self._known.setdefault(tuple(s[name] for s in samples), symbol)

    def numbers(self, expr):
        """The values of an expression at the samples."""
        return tuple(value(expr, sizes) for sizes in self._samples)

    def canonical(self, expr):
        """The expression that is known for the same numbers; `expr` from now on, if there is
        none."""
        numbers = self.numbers(expr)
        if len(set(numbers)) == 1:
            return self.constant(numbers[0])
        return self._known.setdefault(numbers, expr)

    def constant(self, number):
        """A number, as extents are."""
        return self._tvm.tirx.IntImm("int64", number)

    def remember_widths(self, *widths):
        """What is padded, from where what is cut off again is counted: small numbers that are
        believed in, since they are known to be computed."""
        for width in widths:
            numbers = self.numbers(width)
            if len(set(numbers)) > 2:
                self._widths.setdefault(numbers, width)

    def expression(self, numbers, near=()):
        """What has these numbers; preferably made of the extents `near`.  Raises NoExpression."""
        numbers = tuple(int(n) for n in numbers)
        if len(set(numbers)) == 1:
            return self.constant(numbers[0])
        if numbers in self._known:
            return self._known[numbers]
        for key, width in self._widths.items():
            for factor in _FACTORS:
                rest = tuple(n - factor * k for n, k in zip(numbers, key))
                if not any(rest):
                    return width * factor
                found = self._known.get(rest)
                if found is None and min(rest) >= _SMALL:
                    found = _multiple(rest, self._known)
                if found is not None:
                    return self._known.setdefault(numbers, found + width * factor)
        near = {self.numbers(e): e for e in near}
        near = {key: e for key, e in near.items() if len(set(key)) > 1}
        if max(map(abs, numbers)) >= _SMALL:
            for atoms in (near, self._known):
                for find in (_multiple, _linear, _product, _rounded, _spanned):
                    found = find(numbers, atoms)
                    if found is not None:
                        return self._known.setdefault(numbers, found)
        raise NoExpression("an extent is %s for %s, which is not seen to follow from them" % (
            ", ".join(map(str, numbers)), "; ".join(
                ", ".join("%s of %d" % pair for pair in s.items()) for s in self._samples)))


def _multiple(numbers, atoms):
    """An atom times or divided by a whole number."""
    for key, expr in atoms.items():
        if 0 in key:
            continue
        ratios = {Fraction(n, k) for n, k in zip(numbers, key)}
        if len(ratios) == 1:
            ratio = ratios.pop()
            if ratio.denominator == 1:
                return expr * ratio.numerator
            if ratio.numerator == 1:
                return expr // ratio.denominator
    return None


def _linear(numbers, atoms):
    """A whole multiple of an atom, and a constant."""
    for key, expr in atoms.items():
        at = next((i for i in range(1, len(key)) if key[i] != key[0]), None)
        if at is None:
            continue
        slope = Fraction(numbers[at] - numbers[0], key[at] - key[0])
        more = numbers[0] - slope * key[0]
        if slope.denominator == 1 and slope and all(
                slope * k + more == n for n, k in zip(numbers, key)):
            return expr * int(slope) + int(more)
    return None


def _product(numbers, atoms):
    """A product of two or three atoms and a number."""
    items = [item for item in atoms.items() if 0 not in item[0]]
    for count in (2, 3):
        if len(items) ** count > 100000:
            return None
        for chosen in combinations_with_replacement(items, count):
            together = [1] * len(numbers)
            for key, _ in chosen:
                together = [t * k for t, k in zip(together, key)]
            ratios = {Fraction(n, t) for n, t in zip(numbers, together)}
            if len(ratios) != 1:
                continue
            ratio = ratios.pop()
            made = chosen[0][1]
            for _, expr in chosen[1:]:
                made = made * expr
            if ratio.denominator == 1:
                return made * ratio.numerator
            if ratio.numerator == 1:
                return made // ratio.denominator
    return None


def _rounded(numbers, atoms):
    """An atom rounded up or down to a multiple of a number, as pictures are padded to windows."""
    common = gcd(*numbers)
    for key, expr in atoms.items():
        steps = [step for step in range(2, common + 1) if common % step == 0]
        for up in (1, 0):
            fits = [step for step in steps if all(
                (k + up * (step - 1)) // step * step == n for n, k in zip(numbers, key))]
            # At each size another one might be what is meant where several fit to these.
            if len(fits) == 1:
                return (expr + up * (fits[0] - 1)) // fits[0] * fits[0]
    return None


def _spanned(numbers, atoms):
    """From the first to the last of every few numbers of an atom, as slices with steps read them.
    """
    for key, expr in atoms.items():
        fits = [step for step in _STEPS if all(
            (k - 1) // step * step + 1 == n for n, k in zip(numbers, key))]
        if len(fits) == 1:
            return (expr - 1) // fits[0] * fits[0] + 1
    return None
