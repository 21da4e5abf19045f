"""What the benches of boxes and masks make of times, and the faces of LiteRT's side."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from run_model_tools import environment

ROOT = Path(__file__).resolve().parents[2]


def program(name: str) -> ModuleType:
    """A script of bench/, which would go on in another interpreter where it is imported."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "bench" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "enter_venv", lambda: None)
        loader.exec_module(module)
    return module


def test_the_worst_picture_of_a_network_counts():
    share = program("postprocess_share")
    times = {"a.png": share.Times([10.0, 4.0], [0.3, 0.1], [0.2]),
             "b.png": share.Times([5.0, 8.0], [0.4, 0.3], [0.9, 0.6])}
    row = share.row_of("net", times)
    assert row["picture"] == "b.png" and row["share"] == pytest.approx(0.06)
    assert row["worst_ratio"] == pytest.approx(0.5) and not row["reached"]
    assert ("| net | b.png | 5.00 | 0.300 | 6.0% | 0.600 | 0.50 | not reached |"
            in share.table([row]))


def test_a_network_that_mediapipe_has_no_graph_of_is_judged_by_its_share():
    share = program("postprocess_share")
    row = share.row_of("net", {"a.png": share.Times([10.0], [0.5])})
    assert row["reached"] and row["worst_ratio"] is None
    assert set(share.GRAPHS) <= {path.name for path in (ROOT / "artifacts/golden").iterdir()}


def test_other_faces_make_times_worthless():
    drawing = program("picture_to_drawing")
    ours = {"width": 100, "height": 100, "results": [{"detections": [{"box": [1, 2, 30, 40]}]}]}
    drawing.check_same(ours, {"boxes": [[1.5, 2, 30, 41]]}, Path("a.png"))
    for boxes in ([], [[1, 2, 30, 43]], [[1, 2, 30, 40], [5, 5, 6, 6]]):
        with pytest.raises(SystemExit, match="mean nothing"):
            drawing.check_same(ours, {"boxes": boxes}, Path("a.png"))
