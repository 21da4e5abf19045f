"""artifacts/zoo.json: as its schema says, true where this repository can tell, and readable."""

import copy
import json

import numpy as np
import pytest
from conftest import ROOT
from json_schema import errors

from run_model_tools.errors import ToolError
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.manifest import MANIFEST, choose, read_manifest
from run_model_tools.zoo.networks import BUILDERS

SCHEMA = json.loads((ROOT / "artifacts" / "zoo.schema.json").read_text())
CONTENTS = json.loads(MANIFEST.read_text())


def test_the_manifest_is_as_its_schema_says():
    assert errors(CONTENTS, SCHEMA, SCHEMA) == []


@pytest.mark.parametrize("change", ["lacks", "unknown", "hash", "kind", "accuracy", "version",
                                    "task", "pictures"])
def test_the_schema_refuses(change):
    broken = copy.deepcopy(CONTENTS)
    first = broken["models"][0]
    if change == "lacks":
        del first["licence"]
    elif change == "unknown":
        first["licenses"] = []
    elif change == "hash":
        first["sources"][0]["sha256"] = "00"
    elif change == "kind":
        first["sources"][0]["kind"] = "ftp"
    elif change == "accuracy":
        broken["models"][1]["accuracy"]["top1"] = 175
    elif change in ("task", "pictures"):
        del next(m for m in broken["models"] if "task" in m)[change]
    else:
        broken["schema_version"] = 2
    assert errors(broken, SCHEMA, SCHEMA)


def test_the_networks_of_the_design_are_there():
    names = [model.name for model in read_manifest()]
    assert len(set(names)) == len(names)
    assert {"resnet18", "squeezenet1_1", "mobilenet_v2", "shufflenet_v1", "shufflenet_v2_x1_0",
            "efficientnet_lite0"} <= set(names)
    assert {f"seeded_{name}" for name in ("resnet18", "squeezenet1_1", "mobilenet_v2",
                                          "shufflenet_v1", "shufflenet_v2",
                                          "efficientnet_lite0")} <= set(names)


@pytest.mark.parametrize("model", read_manifest(), ids=lambda model: model.name)
def test_each_entry_fits_the_rest_of_the_repository(model):
    for source in model.sources:
        assert source.format in ("onnx", "tflite") or model.architecture in BUILDERS
        # Torchvision's file names hold the first digits of the file's hash.
        if source.url and "-" in source.file_name and source.file_name.endswith(".pth"):
            assert source.sha256.startswith(source.file_name[:-4].rsplit("-", 1)[1])
    assert model.is_committed == (ROOT / model.golden).is_dir() or not model.is_committed
    if model.tasks is not None:
        assert all((ROOT / "images" / name).is_file() for name in model.facts["pictures"])
        return
    assert (ROOT / model.labels).is_file()
    assert model.preprocessing.crop == model.facts["input"]["shape"][2]


@pytest.mark.parametrize("model", [m for m in read_manifest() if m.is_committed],
                         ids=lambda model: model.name)
def test_committed_results_are_the_manifests(model):
    """Of every picture in images/, or those that the manifest names, for the file, preprocessing
    and tasks that it states."""
    pictures = set(model.facts.get("pictures", ())) or {
        p.name for p in (ROOT / "images").iterdir() if p.suffix in (".png", ".jpg")}
    folder = ROOT / model.golden
    found = {}
    for path in folder.glob("*.json"):
        case = json.loads(path.read_text())
        found[case["picture"]["file"]] = case
        assert case[f"{model.file_format}_sha256"] == model.sha256
        assert case["preprocessing"] == model.preprocessing.to_json()
        facts = model.facts
        if model.tasks is not None:
            assert case["tasks"] == model.tasks
            assert [r["kind"] for r in case["results"]] == [t["kind"] for t in model.tasks]
            continue
        assert case["input"]["name"] == facts["input"]["name"]
        assert case["output"]["name"] == facts["output"]["name"]
        assert case["output"]["kind"] == facts["output"]["kind"]
        assert np.load(path.with_suffix(".npy")).shape == tuple(facts["output"]["shape"])
    assert set(found) == pictures
    assert model.tasks is not None or len(found) >= 10


def test_models_are_chosen_by_name():
    models = read_manifest()
    assert [m.name for m in choose(models, ["shufflenet_v1", "resnet18"])] == [
        "shufflenet_v1", "resnet18"]
    with pytest.raises(ToolError, match="no model 'resnet19'") as caught:
        choose(models, ["resnet19"])
    assert caught.value.code == 2


@pytest.mark.parametrize("text,code", [("", 4), ("{}", 4), ("[]", 4), ('{"schema_version": 2}', 4),
                                       ('{"schema_version": 1, "models": [{}]}', 4)])
def test_other_files_are_refused(tmp_path, text, code):
    path = tmp_path / "zoo.json"
    path.write_text(text)
    with pytest.raises(ToolError, match="zoo.json") as caught:
        read_manifest(path)
    assert caught.value.code == code


def test_a_missing_manifest(tmp_path):
    with pytest.raises(ToolError, match="cannot be read") as caught:
        read_manifest(tmp_path / "zoo.json")
    assert caught.value.code == 3


def test_seeded_models_are_remade_bit_for_bit(tmp_path):
    model = choose(read_manifest(), ["seeded_shufflenet_v1"])[0]
    outcome = zoo.make(model, None, tmp_path)
    assert outcome.state == "made" and outcome.is_there
    assert zoo.make(model, None, tmp_path).state == "up to date"
    outcome.path.write_bytes(outcome.path.read_bytes()[:-1])
    assert not zoo.is_up_to_date(model, tmp_path)
    assert zoo.make(model, None, tmp_path).state == "made"
    described = json.loads((tmp_path / "seeded_shufflenet_v1.model.json").read_text())
    assert described["preprocessing"] == model.preprocessing.to_json()
    assert described["onnx_sha256"] == model.sha256
