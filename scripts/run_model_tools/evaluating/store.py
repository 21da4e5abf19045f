"""The SQLite file of a run: each result as soon as there is one.

Every result is a transaction of its own in a journal that a killed process leaves behind readable,
so that what was done is done. The file says which run it is of, and takes results of no other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_model_tools.errors import FAILED_RUN, MALFORMED_FILE, MISMATCH, MISSING_FILE, ToolError

FORMAT = 1
#: "rmev", so that a file of another program is not taken for one of these.
_APPLICATION = 0x726D6576

_TABLES = """
CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE results (
  key TEXT PRIMARY KEY,
  prediction TEXT,
  error TEXT,
  score REAL,
  correct INTEGER,
  seconds REAL NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Result:
    """Of one picture: what was predicted, or why nothing was.

    score: how good it is, 0 to 1; correct: whether it counts as right where that is asked, as in
    the comparison of two runs.
    """

    key: str
    prediction: Any
    error: str | None
    score: float | None
    correct: bool | None
    seconds: float


class Store:
    """Use it in one thread."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def facts(self) -> dict[str, Any]:
        return {name: json.loads(value) for name, value in self._connection.execute(
            "SELECT name, value FROM run ORDER BY name")}

    def put_facts(self, facts: dict[str, Any]) -> None:
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO run VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in facts.items()])

    def put(self, result: Result) -> None:
        try:
            with self._connection:
                self._connection.execute(
                    "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)",
                    (result.key, None if result.prediction is None
                     else json.dumps(result.prediction, separators=(",", ":")), result.error,
                     result.score, result.correct, result.seconds))
        except sqlite3.OperationalError as error:
            raise _unwritable(self._path, error) from None

    def keys(self) -> set[str]:
        """Of the pictures that have been judged; what failed is tried again."""
        return {key for (key,) in self._connection.execute(
            "SELECT key FROM results WHERE error IS NULL")}

    def results(self) -> Iterator[Result]:
        """In the order of their keys."""
        for key, prediction, error, score, correct, seconds in self._connection.execute(
                "SELECT * FROM results ORDER BY key"):
            yield Result(key, None if prediction is None else json.loads(prediction), error, score,
                         None if correct is None else bool(correct), seconds)


@contextmanager
def open_store(path: Path, facts: dict[str, Any]) -> Iterator[Store]:
    """Makes the file, or goes on with it if it is of the run that `facts` says.

    Raises ToolError: 3 where it cannot be opened, 4 where it is none of these files, 6 where it is
    of another run.
    """
    with _connected(path, must_exist=False) as connection:
        store = Store(connection, path)
        known = store.facts()
        if not known:
            store.put_facts(facts)
        differing = [name for name in facts if known and known.get(name) != facts[name]]
        if differing:
            name = differing[0]
            raise ToolError(MISMATCH, (
                f"{path} holds another run: its {name.replace('_', ' ')} is "
                f"{_shown(known.get(name))}, and {_shown(facts[name])} is asked for; name another "
                "file, or remove this one."))
        yield store


@contextmanager
def read_store(path: Path) -> Iterator[Store]:
    """The results of a run that is there. Raises ToolError (3, 4)."""
    with _connected(path, must_exist=True) as connection:
        yield Store(connection, path)


def _unwritable(path: Path, error: sqlite3.Error) -> ToolError:
    return ToolError(FAILED_RUN, f"{path} cannot be written: {error}; make room and go on with "
                                 f"--resume {path}.")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"'{text[:80]}'"


@contextmanager
def _connected(path: Path, must_exist: bool) -> Iterator[sqlite3.Connection]:
    if must_exist and not path.is_file():
        raise ToolError(MISSING_FILE, f"{path} is not there: it is the SQLite file that "
                                      "evaluate_model has kept a run in.")
    if path.is_dir() or not path.parent.is_dir():
        why = "it is a folder" if path.is_dir() else "there is no such folder"
        raise ToolError(MISSING_FILE, f"{path} cannot be a file of results: {why}.")
    connection = None
    try:
        try:
            connection = sqlite3.connect(path, timeout=5.0)
            [[application]] = connection.execute("PRAGMA application_id").fetchall()
            tables = {name for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'")}
            if application not in (0, _APPLICATION) or (tables and not application):
                raise sqlite3.DatabaseError("it is another program's")
            [[version]] = connection.execute("PRAGMA user_version").fetchall()
            if tables and version != FORMAT:
                raise ToolError(MALFORMED_FILE, f"{path} has the format {version}, where {FORMAT} "
                                                "is expected: it is another release's.")
            connection.execute("PRAGMA journal_mode = WAL")
            # What a process has written survives its end; only a power cut may take the last ones.
            connection.execute("PRAGMA synchronous = NORMAL")
            if not tables:
                connection.executescript(
                    f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION}; "
                    f"PRAGMA user_version = {FORMAT}; COMMIT;")
            elif not {"run", "results"} <= tables:
                raise sqlite3.DatabaseError("it lacks a table")
        except sqlite3.OperationalError as error:
            if "full" in str(error) or "I/O" in str(error):
                raise _unwritable(path, error) from None
            hint = ("is another evaluate_model at work on it?" if "locked" in str(error)
                    else "see that it may be written.")
            raise ToolError(MISSING_FILE, f"{path} cannot be opened: {error}; {hint}") from None
        except sqlite3.DatabaseError as error:
            raise ToolError(MALFORMED_FILE, f"{path} is no SQLite file of evaluate_model: {error}; "
                                            "name another file, or remove this one.") from None
        try:
            yield connection
        except sqlite3.OperationalError as error:
            raise _unwritable(path, error) from None
        except sqlite3.DatabaseError as error:
            raise ToolError(MALFORMED_FILE, f"{path} is damaged: {error}; remove it and begin "
                                            "anew.") from None
    finally:
        if connection is not None:
            connection.close()
