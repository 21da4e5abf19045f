"""The report against TVM's own runtime: what has to be reached."""

from __future__ import annotations

import pytest

from trials import Sample
from tvm_report import rows_of_model


def sample(value: float) -> Sample:
    return Sample([value] * 3)


def make_model(ours: float) -> dict:
    """Figures in which TVM takes 10 of everything, and run_model `ours`."""
    steady = {label: {"tvm": sample(10), "run_model": sample(ours)}
              for label in ("threads 1", "threads 2", "as installed")}
    keys = ("load_ms", "first_ms", "process_ms", "peak_first_kib")
    starts = {"tvm": {key: sample(10) for key in keys},
              "tvm-lean": {key: sample(10) for key in keys},
              "run_model": {key: sample(ours) for key in keys}}
    memory = {"params_mapped": 0, "params_copied": 0, "activations": 0}
    return {"target": "native", "steady": steady, "starts": starts, "memory": memory}


@pytest.mark.parametrize(("network", "figure", "ours", "reached"), [
    ("resnet18", "inference, threads 2", 10.0, True),
    ("resnet18", "inference, threads 2", 10.1, False),
    ("squeezenet1_1", "inference, threads 1", 10.0, True),
    ("squeezenet1_1", "inference, threads 2", 9.5, True),
    ("squeezenet1_1", "inference, threads 2", 9.6, False),
    ("shufflenet_v2", "inference, threads 2", 9.6, False),
    ("shufflenet_v2", "inference, as installed", 5.5, True),
    ("resnet18", "load + parameters + first result, tvm", 4.0, True),
    ("resnet18", "load + parameters + first result, tvm", 4.1, False),
    ("resnet18", "load + parameters + first result, tvm-lean", 4.1, False)])
def test_targets(network, figure, ours, reached):
    rows = {row.figure: row for row in rows_of_model(network, make_model(ours))}
    assert rows[f"{network}: {figure}"].reached is reached
