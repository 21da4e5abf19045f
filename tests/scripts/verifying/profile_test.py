"""The profile of run_model, against counts of its own: the shapes in the ONNX files."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
import re
import subprocess
import zipfile
from pathlib import Path

import onnx
import pytest
from conftest import ROOT
from onnx import shape_inference

from run_model_tools.environment import host_program
from run_model_tools.inside_tvm.pad_channels import pad_channels

PROGRAM = host_program("run_model")
RELEASES = ("0.7.0", "0.8.0", "0.10.0", "0.12.0", "0.14.0", "0.18.0")
HOSTILE = '</script><script>document.title = "gone"</script><!-- a,"b"\r\n\x1b[31m\u2028é&amp;'

pytestmark = pytest.mark.skipif(not PROGRAM.exists(),
                                reason=f"{PROGRAM} is not built, nor RUN_MODEL_PROGRAM set")


def run_program(*arguments: object, check: bool = True) -> subprocess.CompletedProcess:
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                            encoding="utf-8", check=False)
    assert not check or result.returncode == 0, result.stderr
    return result


def profile_of(*artifact: object) -> dict:
    result = run_program(*artifact, "--fill-mode", "random", "--profile", "--json", "--repeat", 2,
                         "--warmup", 1)
    return json.loads(result.stdout)["profile"]


def multiply_adds(path: Path, artifact: Path) -> list[int]:
    """One number for each convolution and matrix product of the network as it was compiled."""
    model = onnx.load(str(path))
    metadata = json.loads((artifact / "metadata.json").read_text())
    if metadata.get("tuning"):
        # Then channels were added first; what that is for, pad_channels_test.py says.
        features = metadata["target"]["features"]
        pad_channels(model, 16 if "avx512f" in features else 8 if "avx2" in features else 0)
    model = shape_inference.infer_shapes(model)
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
              for v in (*model.graph.value_info, *model.graph.input, *model.graph.output)}
    shapes |= {t.name: list(t.dims) for t in model.graph.initializer}
    counts = []
    for node in model.graph.node:
        if node.op_type == "Conv":
            # Each output value is a sum over the kernel and the channels of its group.
            counts.append(math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:]))
        elif node.op_type in ("Gemm", "MatMul"):
            counts.append(math.prod(shapes[node.output[0]]) * shapes[node.input[0]][-1])
    return counts


MODELS = ("squeezenet1_1", "seeded_squeezenet1_1", "seeded_resnet18", "seeded_mobilenet_v2",
          "seeded_shufflenet_v1", "seeded_shufflenet_v2", "seeded_efficientnet_lite0",
          "mobilenet_v2_coral")


@pytest.mark.parametrize("model", MODELS)
def test_operations_are_those_of_the_network(model: str) -> None:
    source = ROOT / "build" / "zoo" / f"{model}.onnx"
    artifact = ROOT / "artifacts" / model / "native"
    if not source.exists() or not artifact.exists():
        pytest.skip(f"{model} has not been made here")
    profile = profile_of(model, ROOT / "artifacts", "--target", "native")
    counted = [node["operations"] for node in profile["nodes"]
               if node["operations"] and re.match("conv|dense", node["family"])]
    expected = [2 * count for count in multiply_adds(source, artifact)]
    if json.loads((artifact / "metadata.json").read_text())["kernels"]["method"] == "ours":
        # Several convolutions may be one node there.
        counted, expected = [sum(counted)], [sum(expected)]
    assert sorted(counted) == sorted(expected)
    # TVM cuts long names and puts a hash in the place of what they said.
    whole = [n for n in profile["nodes"] if not re.search("_[0-9a-f]{16}_", n["function"])]
    assert len(whole) > 0.8 * len(profile["nodes"])
    assert not [n["function"] for n in whole if n["family"] == "unknown"]
    check_sums(profile)


def check_sums(profile: dict) -> None:
    """What the profile says of itself in two places has to agree."""
    nodes, families = profile["nodes"], profile["families"]
    total = sum(n["time_ms"]["p50"] for n in nodes)
    assert profile["sum_of_nodes_ms"] == pytest.approx(total)
    assert sum(n["share"] for n in nodes) == pytest.approx(1)
    assert max(n["cumulative_share"] for n in nodes) == pytest.approx(1)
    assert sum(f["nodes"] for f in families) == len(nodes)
    for family in families:
        members = [n for n in nodes if n["family"] == family["family"]]
        assert family["time_ms"] == pytest.approx(sum(n["time_ms"]["p50"] for n in members))
        assert (family["operations"] or 0) == sum(n["operations"] or 0 for n in members)
    for node in nodes:
        time = node["time_ms"]
        assert 0 < time["min"] <= time["p50"] <= time["p95"] <= time["max"]
        assert node["calls"] == profile["runs"]
    memory = profile["memory"]
    assert memory["peak_live_bytes"] == max(n["live_bytes"] for n in nodes)
    assert memory["workspace_bytes"] == max(n["workspace_bytes"] for n in nodes)
    assert memory["peak_live_bytes"] <= memory["activations_bytes"]


@pytest.fixture(scope="session")
def old_artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small artifacts that releases of TVM have made."""
    if platform.machine() != "x86_64":
        pytest.skip("the artifacts are for x86_64")
    folder = tmp_path_factory.mktemp("old")
    for release in RELEASES:
        with zipfile.ZipFile(ROOT / "tests" / "compat" / "data" / f"{release}.zip") as archive:
            archive.extractall(folder / release)
    return folder


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("network", ["cnn", "shufflenet", "mlp", "lstm", "several", "float16"])
def test_artifacts_of_every_release(old_artifacts: Path, release: str, network: str) -> None:
    profile = profile_of("net", old_artifacts / release / network / "model.so")
    check_sums(profile)
    families = {node["family"] for node in profile["nodes"]}
    assert "unknown" not in families
    for node in profile["nodes"]:
        counted = re.match("conv|dense|batch_matmul", node["family"]) is not None
        assert counted <= (node["operations"] is not None), node
        if node["family"] == "view":
            assert node["bytes_read"] == node["bytes_written"] == 0
    if network == "shufflenet":
        assert "conv2d_grouped" in families and "conv2d_depthwise" in families
        assert any(len(node["outputs"]) > 1 for node in profile["nodes"])


def live_bytes(graph: dict) -> list[int]:
    """For each node, the bytes of the tensors that it or a later one needs, from the graph
    alone."""
    rows, kinds = graph["node_row_ptr"], graph["attrs"]["dltype"][1]
    sizes = {"float32": 4, "float16": 2, "int64": 8, "int32": 4, "uint8": 1, "uint1": 1}
    bytes_of = [math.prod(shape) * sizes[kind]
                for shape, kind in zip(graph["attrs"]["shape"][1], kinds)]
    calls, made, needed, root = [], {}, {}, {}
    for i, node in enumerate(graph["nodes"]):
        if node["op"] == "null":
            if not re.fullmatch(r"p\d+", node["name"]):
                made[rows[i]] = 0
            continue
        reads = [root.get(e, e) for e in (rows[n] + o for n, o, *_ in node["inputs"])]
        for entry in reads:
            needed[entry] = len(calls)
        for entry in range(rows[i], rows[i + 1]):
            if node["attrs"]["func_name"] == "__nop":
                root[entry] = reads[0]
            else:
                made[entry] = needed[entry] = len(calls)
        calls.append(node)
    for n, o, *_ in graph["heads"]:
        entry = rows[n] + o
        needed[root.get(entry, entry)] = len(calls)
    return [sum(bytes_of[e] for e, first in made.items() if first <= i <= needed.get(e, 0))
            for i in range(len(calls))]


@pytest.mark.parametrize("network", ["cnn", "mlp", "lstm", "several", "float16"])
def test_live_memory_is_that_of_the_graph(old_artifacts: Path, network: str) -> None:
    folder = old_artifacts / "0.18.0" / network
    graph = json.loads((folder / "model.json").read_text())
    nodes = profile_of("net", folder / "model.so")["nodes"]
    assert [node["live_bytes"] for node in nodes] == live_bytes(graph)


@pytest.fixture(scope="session")
def hostile(old_artifacts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a profile of a model whose nodes have names that try to break out of them."""
    source, folder = old_artifacts / "0.18.0" / "cnn", tmp_path_factory.mktemp("hostile")
    graph = json.loads((source / "model.json").read_text())
    named = [n for n in graph["nodes"] if n["op"] != "null"]
    for i, node in enumerate(named):
        node["name"] = f"{HOSTILE} {i}"
    for piece in ("model.so", "model.params"):
        (folder / piece).write_bytes((source / piece).read_bytes())
    (folder / "model.json").write_text(json.dumps(graph))
    run_program("net", folder / "model.so", "--fill-mode", "ones", "--repeat", 3, "--profile-csv",
                folder / "p.csv", "--profile-trace", folder / "p.trace", "--profile-html",
                folder / "p.html", "--profile-json", folder / "p.json")
    return folder


def test_csv_is_read_by_csv(hostile: Path) -> None:
    text = (hostile / "p.csv").read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    nodes = json.loads((hostile / "p.json").read_text())["nodes"]
    assert [row["name"] for row in rows] == [f"{HOSTILE} {i}" for i in range(len(nodes))]
    for row, node in zip(rows, nodes):
        assert row["function"] == node["function"] and row["family"] == node["family"]
        assert float(row["p50_ms"]) == pytest.approx(node["time_ms"]["p50"], rel=1e-4)
        assert float(row["share_percent"]) == pytest.approx(100 * node["share"], rel=1e-4)
        assert row["operations"] == ("" if node["operations"] is None else str(node["operations"]))
        assert int(row["live_bytes"]) == node["live_bytes"]
        assert None not in row and None not in row.values()


def test_trace_is_in_chromes_format(hostile: Path) -> None:
    trace = json.loads((hostile / "p.trace").read_text())
    events = trace["traceEvents"]
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"run_model net"}
    assert len([e for e in events if e["name"] == "thread_name" and e["ph"] == "M"]) == 1
    nodes = json.loads((hostile / "p.json").read_text())["nodes"]
    complete = [e for e in events if e["ph"] == "X"]
    assert [e["args"]["node"] for e in complete] == [n["name"] for n in nodes]
    end = 0.0
    for event in complete:
        assert event["ts"] >= end - 1e-6 and event["dur"] > 0
        end = event["ts"] + event["dur"]
    counters = [e for e in events if e["ph"] == "C"]
    assert [e["args"]["live activations"]
            for e in counters[:-1]] == [n["live_bytes"] for n in nodes]


def test_page_holds_the_same_data_and_nothing_else(hostile: Path) -> None:
    page = (hostile / "p.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script([^>]*)>(.*?)</script", page, re.DOTALL)
    assert [attributes for attributes, _ in scripts] == [
        ' type="application/json" id="data"', ""]
    assert json.loads(scripts[0][1]) == json.loads((hostile / "p.json").read_text())
    assert page.count("</script") == 2 and "<!--" not in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_table_fits_and_is_safe_for_a_terminal(hostile: Path) -> None:
    text = run_program("net", hostile / "model.so", "--fill-mode", "ones", "--repeat", 3,
                       "--profile").stdout
    assert "\x1b" not in text
    table = text[text.index("Profile: "):text.index("Threads: ")]
    assert max(map(len, table.splitlines())) <= 100
    assert re.search(r"^Sum of the nodes [\d.]+ ms; a run [\d.]+ ms", table, re.MULTILINE)


def test_files_that_cannot_be_written(old_artifacts: Path, tmp_path: Path) -> None:
    artifact = old_artifacts / "0.18.0" / "mlp" / "model.so"
    result = run_program("net", artifact, "--fill-mode", "ones", "--repeat", 1, "--profile-html",
                         tmp_path / "missing" / "p.html", check=False)
    assert result.returncode == 3 and "p.html" in result.stderr
    existing = tmp_path / "p.html"
    existing.write_text("old")
    run_program("net", artifact, "--fill-mode", "ones", "--repeat", 1, "--profile-html", existing)
    assert existing.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]
