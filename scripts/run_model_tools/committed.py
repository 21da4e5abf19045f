"""Files that are committed and can be remade."""

from __future__ import annotations

from pathlib import Path

from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.files import write_atomically


def put_or_compare(folder: Path, files: dict[str, bytes], check: bool) -> int:
    """Writes the files that differ, or with `check` raises ToolError (6) naming them."""
    differing = [name for name, data in files.items()
                 if not (folder / name).is_file() or (folder / name).read_bytes() != data]
    if check and differing:
        raise ToolError(MISMATCH, f"in {folder}, {', '.join(differing)} differ from what this "
                                  "program makes: run it without --check.")
    for name in differing:
        write_atomically(folder / name, files[name])
        print(f"wrote {folder / name}")
    if not differing:
        print(f"{folder}: {len(files)} file(s) as they should be.")
    return 0
