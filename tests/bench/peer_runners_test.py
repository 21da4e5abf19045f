"""What a peer is given to run: conversions, done once, of a network that stays as it is."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from networks import Network
from peers.runners import NotThere, PeerEnvironment, _copy
from small_networks import save_classifier

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
    return Network("net", "net", save_classifier(tmp_path / "net.onnx"))


def test_converts_a_copy_once(make_environment, network, tmp_path):
    environment = make_environment('echo converted > "$4/model"; echo "$4/model"')
    before = network.onnx.read_bytes()
    path = environment.convert("mnn", network)
    assert path.read_text(encoding="ascii") == "converted\n"
    assert path.parent.name.startswith("net-mnn-7.5-")
    assert environment.convert("mnn", network) == path
    assert len((tmp_path / "venv" / "bin" / "calls").read_text().splitlines()) == 1
    assert network.onnx.read_bytes() == before


def test_converts_again_when_the_network_is_another(make_environment, network):
    environment = make_environment('echo converted > "$4/model"; echo "$4/model"')
    first = environment.convert("mnn", network)
    save_classifier(network.onnx, batch=2)
    assert environment.convert("mnn", network) != first


def test_weights_beside_the_file_belong_to_the_network(make_environment, network, tmp_path):
    environment = make_environment('echo "$4/model"')
    model = onnx.load(str(network.onnx))
    onnx.save(model, str(network.onnx), save_as_external_data=True, location="net.data",
              size_threshold=0)
    first = environment.convert("mnn", network)
    data = tmp_path / "net.data"
    data.write_bytes(bytes(data.stat().st_size))
    assert environment.convert("mnn", network) != first


def test_the_copy_is_one_file(network, tmp_path):
    before = onnx.load(str(network.onnx))
    onnx.save(before, str(network.onnx), save_as_external_data=True, location="net.data",
              size_threshold=0)
    (tmp_path / "copy").mkdir()
    copied = onnx.load(str(_copy(network.onnx, tmp_path / "copy" / "network.onnx")))
    assert not any(t.external_data for t in copied.graph.initializer)
    assert [t.name for t in copied.graph.initializer] == [t.name for t in before.graph.initializer]
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["network.onnx"]


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
    runner = environment.runner("mnn", network, tmp_path / "inputs.npz")
    assert runner.command[2:4] == ("mnn", str(tmp_path / "inputs.npz"))
    assert runner.command[5].endswith("/model") and len(runner.command) == 7
    assert runner.peer
