"""Exports networks as PyTorch's users do, and keeps them as skeletons in artifacts/modern.

  export_modern_zoo                  every network of exporting/networks.py
  export_modern_zoo resnet18-default unet-old17

Needs PyTorch and others (scripts/requirements-exporting.txt), in an environment of its own:

  python3 -m venv build/exporting
  build/exporting/bin/pip install -r scripts/requirements-exporting.txt
  build/exporting/bin/python scripts/export_modern_zoo

Each network gets weights of a seed, is exported, stripped of its weights, filled as make_modern_zoo
fills it, and run in ONNX Runtime: what gives no number, always the same, or hardly reacts to its
input is not written.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from run_model_tools.errors import FAILED_RUN, USAGE, ToolError, command
from run_model_tools.files import json_text, write_atomically
from run_model_tools.progress import stage
from run_model_tools.zoo.modern import manifest
from run_model_tools.zoo.modern.exporting.enliven import enliven
from run_model_tools.zoo.modern.exporting.networks import (
    NETWORKS,
    WITH_TRACES,
    Network,
    sample,
    versions,
)
from run_model_tools.zoo.modern.exporting.quantise import quantise
from run_model_tools.zoo.modern.skeleton import (
    fill_skeleton,
    load_skeleton,
    make_skeleton,
    save_skeleton,
)

#: Two inputs' outputs differ at least by this share of the larger one's deviation.
_REACTS = 0.02


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--out", type=Path, default=manifest.FOLDER, metavar="FOLDER",
                        help="default: artifacts/modern")
    parser.add_argument("--list", action="store_true", help="show their names, and export nothing")
    return parser.parse_args()


def export(network: Network, path: Path) -> None:
    """Writes the ONNX file, and what the exporter puts beside it."""
    torch.manual_seed(0)
    model = network.make().eval()
    enliven(model, tuple(t.float() if t.is_floating_point() else t for t in sample(network, 1)))
    if network.half:
        model = model.half()
    names = [item.name for item in network.inputs]
    options: dict[str, Any] = {"input_names": names}
    if network.opset is not None:
        options["opset_version"] = network.opset
    if not network.is_new:
        options["dynamo"] = False
    if network.dynamic_batch and network.is_new:
        options["dynamic_shapes"] = ({0: torch.export.Dim("batch")},)
    elif network.dynamic_batch:
        options["dynamic_axes"] = {names[0]: {0: "batch"}, "output": {0: "batch"}}
        options["output_names"] = ["output"]
    if network.opset is None:
        options = {}
    quiet = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(quiet), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, sample(network, 1), str(path), **options)
    if network.quantise:
        quantise(path, network)


def check_alive(path: Path, network: Network) -> dict[str, float]:
    """How far the outputs spread, and how far another input moves them; raises ToolError (8)."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    runs = [session.run(None, dict(zip(names, (t.numpy() for t in sample(network, seed)))))
            for seed in (2, 3)]
    first, second = (np.concatenate([np.ravel(o).astype(np.float64)[:2000] for o in outputs])
                     for outputs in runs)
    spread = float(first.std())
    count = min(first.size, second.size)
    moved = float(np.abs(first[:count] - second[:count]).max()) / max(spread, 1e-30)
    if not np.isfinite(first).all() or not 1e-6 < spread < 1e6 or moved < _REACTS:
        raise ToolError(FAILED_RUN, f"{path.stem} is dead: its outputs spread by {spread:.2g} and "
                                    f"another input moves them by {moved:.2g} of that.")
    return {"spread": spread, "moved": moved}


def make(name: str, network: Network, out: Path) -> dict[str, Any]:
    """The network's entry of networks.json."""
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        exported = Path(folder) / f"{name}.onnx"
        export(network, exported)
        model = make_skeleton(exported, keep_traces=name == WITH_TRACES)
        external = any(t.external_data and any(e.key == "location" for e in t.external_data)
                       for t in model.graph.initializer)
        path = out / f"{name}.onnx.xz"
        save_skeleton(model, path)
        filled = Path(folder) / "filled" / f"{name}.onnx"
        fill_skeleton(load_skeleton(path), manifest.seed_of(name), filled)
        try:
            alive = check_alive(filled, network)
        except ToolError:
            path.unlink()
            raise
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    print(f"{name}: opset {opset}, {len(model.graph.node)} nodes, {path.stat().st_size:,} bytes, "
          f"spread {alive['spread']:.2g}, moved {alive['moved']:.2g}", flush=True)
    source, licence = network.source
    entry = {
        "name": name, "source": source, "licence": licence,
        "exporter": ("torch.onnx.export" if network.is_new
                     else "torch.onnx.export(dynamo=False)"),
        "opset": opset, "weights": "external" if external else "inline",
        "inputs": [{"name": value.name, "shape": list(item.shape),
                    "dtype": str(onnx.helper.tensor_dtype_to_np_dtype(
                        value.type.tensor_type.elem_type)),
                    **({"high": item.high} if item.high else {})}
                   for value, item in zip(model.graph.input, network.inputs)]}
    if network.half or network.quantise:
        entry["arithmetic"] = "int8" if network.quantise else "float16"
    if network.tolerance:
        entry["tolerance"] = network.tolerance
    if network.note:
        entry["note"] = network.note
    return entry


@command
def main() -> int:
    args = parse_arguments()
    if args.list:
        print("\n".join(NETWORKS))
        return 0
    unknown = [name for name in args.networks if name not in NETWORKS]
    if unknown:
        raise ToolError(USAGE, f"there is no network '{unknown[0]}'; --list shows them.")
    described = args.out / manifest.FILE.name
    entries = {}
    if described.is_file():
        entries = {entry["name"]: entry
                   for entry in json.loads(described.read_text(encoding="utf-8"))["networks"]}
    failed = []
    for name in args.networks or NETWORKS:
        try:
            with stage(name):
                entries[name] = make(name, NETWORKS[name], args.out)
        except Exception as error:  # PyTorch's exporters raise what they like
            failed.append(name)
            print(f"{name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        document = {"schema_version": manifest.SCHEMA_VERSION, "versions": versions(),
                    "networks": [entries[n] for n in NETWORKS if n in entries]}
        write_atomically(described, json_text(document).encode())
    if failed:
        raise ToolError(FAILED_RUN, f"{', '.join(failed)} could not be exported.")
    return 0
