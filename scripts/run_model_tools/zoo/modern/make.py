"""Makes build/modern/NETWORK.onnx for the networks of artifacts/modern, with weights of a seed.

  make_modern_zoo                            all of them: 1.1 GB
  make_modern_zoo resnet18-default unet-old17

They are as PyTorch's exporters write them, with weights inside or in NETWORK.onnx.data, and
recognise nothing. What is there already is left alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from run_model_tools.errors import command
from run_model_tools.progress import stage
from run_model_tools.zoo.modern.manifest import FILLED, choose, read_networks

REPORT_SCHEMA_VERSION = 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--list", action="store_true", help="show the networks, and make nothing")
    parser.add_argument("--out", type=Path, default=FILLED, metavar="FOLDER",
                        help="default: build/modern")
    parser.add_argument("--force", action="store_true", help="make them again")
    parser.add_argument("--json", action="store_true", help="report as one JSON object")
    return parser.parse_args()


@command
def main() -> int:
    args = parse_arguments()
    networks = choose(read_networks(), args.networks)
    if not args.list:
        for network in networks:
            with stage(network.name):
                network.fill(args.out, args.force)
    if args.json:
        print(json.dumps({"schema_version": REPORT_SCHEMA_VERSION, "folder": str(args.out),
                          "networks": [network.facts for network in networks]}, indent=2))
    elif args.list:
        for network in networks:
            facts = network.facts
            shapes = ", ".join(f"{i.dtype} {'x'.join(map(str, i.shape))}" for i in network.inputs)
            print(f"{network.name:32} {facts['source']:12} {facts['licence']:13} opset "
                  f"{facts['opset']:2}  {facts['exporter']:32} {shapes}")
    return 0
