#!/usr/bin/env python3
"""Converts a network into the form that a peer runs, and prints the file's path.

  convert.py PEER MODEL.onnx FOLDER
"""

from __future__ import annotations

import importlib
import sys

from worker import PEERS, take_standard_output

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    replies = take_standard_output()
    try:
        print(importlib.import_module(PEERS[sys.argv[1]]).convert(*sys.argv[2:]), file=replies)
    except RuntimeError as error:
        sys.exit(f"convert.py: {error}")
