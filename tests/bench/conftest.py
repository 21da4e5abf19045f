"""Shared by the tests of the benches; run with build/venv's pytest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from peers.processes import OUTPUT, THREADS, Runner

ROOT = Path(__file__).resolve().parents[2]

# Speaks the workers' protocol. Each run takes MILLISECONDS, told and not slept.
_FAKE = '''
import array, json, os, sys
output, threads, milliseconds, values = sys.argv[1:5]
print("chatter", file=sys.stderr)
def say(**reply):
    print(json.dumps(reply), flush=True)
say(ready=True, version="1.0", settings="of a test", bare_kib=1000, idle_kib=5000,
    idle_anonymous_kib=2000)
for line in sys.stdin:
    command, *numbers = line.split()
    if command == "load":
        array.array("f", [float(v) for v in values.split(",")]).tofile(open(output, "wb"))
        say(load_ms=2.0, first_ms=3.0, peak_kib=9000, anonymous_kib=4500,
            threads=[threads, os.environ["TVM_NUM_THREADS"]])
    elif command == "run":
        say(run_ms=[float(milliseconds)] * int(numbers[1]), warm_up=int(numbers[0]))
    elif command == "spin":
        say()
        while True:
            pass
    elif command == "chat":
        print("no JSON", flush=True)
    else:
        sys.exit("this cannot be done")
'''


@pytest.fixture
def fake_runner(tmp_path: Path) -> Callable[..., Runner]:
    """A runner of a name, the milliseconds that its runs take, and its output."""
    script = tmp_path / "fake.py"
    script.write_text(_FAKE, encoding="utf-8")

    def make(name: str, milliseconds: float = 1.0, values: str = "1,2,3", **more: object) -> Runner:
        return Runner(name, (sys.executable, str(script), OUTPUT, THREADS, str(milliseconds),
                             values), **more)
    return make
