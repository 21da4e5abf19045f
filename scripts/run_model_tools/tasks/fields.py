"""A value of a JSON document and where it stands, checked as run_model's own reader does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from run_model_tools.errors import MALFORMED_FILE, ToolError

T = TypeVar("T")

_MOST = 1_000_000


class Field:
    """Each method raises ToolError (4) with the document, the place and what is wrong there."""

    def __init__(self, value: Any, source: str, path: str = "") -> None:
        self.value = value
        self._source = source
        self._path = path

    def fail(self, problem: str) -> NoReturn:
        raise ToolError(MALFORMED_FILE, f"{self._source}: {self._path or 'the document'} {problem}"
                                        " (postprocess/README.md).")

    def object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self.fail("is no JSON object")
        return self.value

    def member(self, key: str) -> Field:
        if key not in self.object():
            self.fail(f"has no member '{key}'")
        return Field(self.value[key], self._source, f"{self._path}.{key}" if self._path else key)

    def find(self, key: str) -> Field | None:
        """The member, where it is there and not null."""
        return self.member(key) if self.object().get(key) is not None else None

    def check(self, read: Callable[[Field], Any], *keys: str) -> None:
        """Reads those of the members that are there and not null."""
        for key in keys:
            found = self.find(key)
            if found:
                read(found)

    def refuse_others(self, known: Iterable[str]) -> None:
        """Nothing may be there that nobody reads."""
        names = set(known)
        for key in self.object():
            if key not in names:
                self.member(key).fail("is not a member that is known here; known are "
                                      + ", ".join(sorted(names)))

    def items(self) -> list[Field]:
        if not isinstance(self.value, list):
            self.fail("is no list")
        return [Field(item, self._source, f"{self._path}[{i}]")
                for i, item in enumerate(self.value)]

    def list_of(self, read: Callable[[Field], T], least: int = 0) -> list[T]:
        items = self.items()
        if len(items) < least:
            self.fail(f"has {len(items)} elements, where at least {least} are expected")
        return [read(item) for item in items]

    def exactly(self, count: int, read: Callable[[Field], T]) -> list[T]:
        if len(self.items()) != count:
            self.fail(f"has {len(self.items())} elements, where {count} are expected")
        return self.list_of(read)

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("is no text")
        return self.value

    def one_of(self, *words: str) -> str:
        if self.text() not in words:
            self.fail(f"is '{self.value}', where one of {', '.join(words)} is expected")
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            self.fail("is neither true nor false")
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)) or (
                not math.isfinite(self.value)):
            self.fail("is no number")
        return float(self.value)

    def positive(self) -> float:
        if not self.number() > 0:
            self.fail("is not more than 0")
        return float(self.value)

    def share(self) -> float:
        if not 0 <= self.number() <= 1:
            self.fail("is not from 0 to 1")
        return float(self.value)

    def whole(self, low: int = 0, high: int = _MOST) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or (
                not low <= self.value <= high):
            self.fail(f"is no whole number from {low} to {high}")
        return self.value

    def side(self) -> int:
        """A length in pixels."""
        return self.whole(1, 65535)
