#!/usr/bin/env python3
"""Tunes networks with one tuner or several, benchmarks what came of it, tries GA-DQN's parameters.

  examples/tuners/driver.py -m=tune -c examples/tuners/config-example.json
  examples/tuners/driver.py -m=benchmark -c examples/tuners/config-example.json
  examples/tuners/driver.py -m=experiment -c examples/tuners/config-example.json

tune        measures AutoTVM's trials of each network with each tuner and seed, here or on the board
            behind a tracker.  Interrupt it at any time: the same command goes on.
benchmark   compares the tuners by what tune has measured (the best so far against trials and
            against time, trials until 90, 95 and 99 % of the best known), and runs the whole
            networks, tuned and untuned, in turn.
experiment  searches recordings of whole spaces with combinations of GA-DQN's parameters.

Reports go to SAVE_PATH as JSON, Markdown and SVG.  The keys of the configuration, a file or the
JSON text itself:
"""

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))

from run_model_tools.environment import enter_venv

enter_venv()

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError, run_command
from run_model_tools.tuners import json_schema

SCHEMA = HERE / "config.schema.json"


def parse_arguments(schema: dict) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\n" + "\n".join(json_schema.explain(schema)),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--method", required=True,
                        choices=("tune", "benchmark", "experiment"))
    parser.add_argument("-c", "--config", required=True, metavar="CONFIG.json",
                        help="a file, or the JSON text itself")
    parser.add_argument("--json", action="store_true", help="report as one JSON object")
    return parser.parse_args()


def refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def without_doubles(pairs: list) -> dict:
    """Of a key that is there twice, Python would take the second value without a word."""
    found = dict(pairs)
    for key, _ in pairs[:len(pairs) if len(found) < len(pairs) else 0]:
        if sum(key == other for other, _ in pairs) > 1:
            raise ValueError(f"the key '{key}' is there twice")
    return found


def read_config(text: str, schema: dict) -> dict:
    """Raises ToolError where there is no such file (3), or which key is wrong (4)."""
    path = None if text.lstrip().startswith("{") else Path(text)
    name = str(path) if path else "the configuration"
    if path and not path.is_file():
        raise ToolError(MISSING_FILE, f"{path} is not there: name a configuration, as "
                                      "examples/tuners/config-example.json.")
    try:
        config = json.loads(path.read_text(encoding="utf-8") if path else text,
                            parse_constant=refuse_constant, object_pairs_hook=without_doubles)
    except ValueError as error:
        raise ToolError(MALFORMED_FILE, f"{name} is not JSON: {error}.") from None
    found = json_schema.wrong(config, schema)
    if found:
        raise ToolError(MALFORMED_FILE, f"{name}: {found}; --help explains the keys.")
    return config


def main() -> int:
    from run_model_tools.tuners.driver import benchmark, experiment, tune

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    args = parse_arguments(schema)
    config = read_config(args.config, schema)
    report, text = {"tune": tune, "benchmark": benchmark,
                    "experiment": experiment}[args.method].run(config)
    print(json.dumps(report, indent=2) if args.json else text.rstrip())
    return 0


run_command(main)
