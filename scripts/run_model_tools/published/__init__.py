"""What a network's authors publish with it, read as preprocessing and tasks."""

from __future__ import annotations

from typing import Any

from run_model_tools.errors import MALFORMED_FILE, ToolError


def no_equal(what: str, problem: str) -> ToolError:
    """What to say of a file that describes pictures in a way that has no equal here."""
    return ToolError(MALFORMED_FILE, f"{what} {problem}: say by --preprocessing what is done to "
                                     "pictures, with --fit, --resizer and the others.")


def share(what: str, name: str, found: Any) -> float:
    """`found`, if it is a share that is kept of a picture's side; raises ToolError (4)."""
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0.01 < found <= 1:
        raise no_equal(what, f"has a {name} of {found!r}, where a number up to 1 is expected")
    return float(found)
