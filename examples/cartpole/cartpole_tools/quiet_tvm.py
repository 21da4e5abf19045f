"""TVM, imported without what it says of targets for other machines while its list of them is
read."""

from __future__ import annotations

import os
import sys
import tempfile

sys.stderr.flush()
_saved = os.dup(2)
with tempfile.TemporaryFile() as _said:
    os.dup2(_said.fileno(), 2)
    try:
        import tvm
    except BaseException:
        _said.seek(0)
        os.write(_saved, _said.read())
        raise
    finally:
        os.dup2(_saved, 2)
        os.close(_saved)

__all__ = ["tvm"]
