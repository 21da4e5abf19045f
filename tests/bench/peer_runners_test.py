"""What a peer is given to run: conversions, done once, of a network that stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from networks import Network
from peers.runners import NotThere, PeerEnvironment

# In the place of the peers' Python: tells a version, and "converts" as told.
_PYTHON = """#!/bin/sh
if [ "$1" = -c ]; then echo 'a banner'; echo 7.5; exit; fi
echo "$@" >> "$(dirname "$0")/calls"
echo simplified > "$3"
{ending}
"""


@pytest.fixture
def make_environment(tmp_path: Path):
    def make(ending: str) -> PeerEnvironment:
        python = tmp_path / "venv" / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(_PYTHON.format(ending=ending), encoding="ascii")
        python.chmod(0o755)
        return PeerEnvironment(tmp_path / "venv", tmp_path / "converter", tmp_path / "converted")
    return make


@pytest.fixture
def network(tmp_path: Path) -> Network:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"a network")
    return Network("net", "net", path)


def test_converts_a_copy_once(make_environment, network, tmp_path):
    environment = make_environment('echo converted > "$4/model"; echo "$4/model"')
    path = environment.convert("mnn", network)
    assert path.read_text(encoding="ascii") == "converted\n"
    assert path.parent.name.startswith("net-mnn-7.5-")
    assert environment.convert("mnn", network) == path
    assert len((tmp_path / "venv" / "bin" / "calls").read_text().splitlines()) == 1
    assert network.onnx.read_bytes() == b"a network"


def test_converts_again_when_the_network_is_another(make_environment, network):
    environment = make_environment('echo converted > "$4/model"; echo "$4/model"')
    first = environment.convert("mnn", network)
    network.onnx.write_bytes(b"another network")
    assert environment.convert("mnn", network) != first


def test_a_conversion_that_fails(make_environment, network):
    environment = make_environment("echo 'no such layer: Foo' >&2; exit 1")
    with pytest.raises(NotThere, match="net cannot be converted: no such layer: Foo"):
        environment.convert("mnn", network)
    # What it left does not pass for a conversion.
    with pytest.raises(NotThere):
        environment.convert("mnn", network)


def test_without_an_environment(network, tmp_path):
    environment = PeerEnvironment(tmp_path / "venv", tmp_path, tmp_path)
    with pytest.raises(NotThere, match="venv is not there"):
        environment.convert("mnn", network)


def test_the_command_of_a_runner(make_environment, network, tmp_path):
    environment = make_environment('echo "$4/model"')
    runner = environment.runner("mnn", network, (1, 3, 8, 8), tmp_path / "input")
    assert runner.command[2:4] == ("mnn", str(tmp_path / "input"))
    assert runner.command[5].endswith("/model") and runner.command[6] == "1x3x8x8"
    assert runner.peer
