"""How products are divided among a GPU's threads where nothing was measured: what slows down GPUs
of all kinds, counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gpu_networks import NETWORKS, check_numbers, compile_all

from run_model_tools.inside_tvm.devices import tiles

THREADS, SHARED = 256, 8192
BANKS = LANES = 32


@pytest.mark.parametrize("extents, reduced", [
    ((16, 28, 28), [80, 1, 1]), ((256, 14, 14), [512, 1, 1]), ((64, 56, 56), [64, 3, 3]),
    ((64, 112, 112), [3, 7, 7])])
def test_neighbouring_threads_read_neighbouring_numbers(extents, reduced):
    columns = tiles.best_tiles(*extents, reduced, THREADS, SHARED)["tiles"][2]
    assert columns[2] >= 8, "32 bytes are what memory gives at least"


@pytest.mark.parametrize("count, most_steps", [(197, 13), (50, 5), (1, 1), (64, 4)])
def test_sums_of_any_length_take_few_steps(count, most_steps):
    best = tiles.best_tiles(197, 1, 64, [count, 1, 1], THREADS, SHARED, images=12, ragged=True)
    steps = -(-count // best["channels"])
    assert steps <= most_steps and steps * best["channels"] <= 1.1 * count
    plain = tiles.best_tiles(197, 1, 64, [count, 1, 1], THREADS, SHARED, images=12)
    assert count % plain["channels"] == 0


@pytest.mark.parametrize("channels", [120, 24, 360])
def test_tiles_do_not_reach_beyond_the_result_where_others_are_as_good(channels):
    tile = tiles.best_tiles(channels, 1, 1, [32, 1, 1], THREADS, SHARED)["tiles"][0]
    assert tile[0] * tile[2] * tile[3] == channels


@pytest.mark.parametrize("channels", [72, 144, 1152])
def test_threads_of_channels_alone_keep_to_the_third_dimension(channels):
    one_pixel = (channels, 1, 1, [6, 1, 1], THREADS, SHARED)
    assert tiles.best_tiles(*one_pixel, most_deep=64)["tiles"][0][2] <= 64


def most_in_a_bank(index: str) -> int:
    """Of how many different numbers in one bank of shared memory a warp reads one each."""
    text = re.sub(r"\bi\d+\b", "0", index.replace("int(gl_LocalInvocationID.x)", "lane"))
    banks: dict[int, set[int]] = {}
    for lane in range(LANES):
        place = eval(text.replace("/", "//"), {"lane": lane})
        banks.setdefault(place % BANKS, set()).add(place)
    return max(map(len, banks.values()))


def test_rows_of_shared_memory_lie_in_different_banks(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(NETWORKS, "tokens", ("y = MatMul(x, w)", (2, 67, 32), {"w": (2, 32, 67)}))
    compile_all(tmp_path, [("tokens", "cuda-sm_80")])
    text = (tmp_path / "cuda-sm_80" / "tokens" / "kernels.cu").read_text()
    products = re.findall(r"\+ \(s\d+\[(.*)\] \* s\d+\[(.*)\]\)\);", text)
    assert products
    for index in (one for pair in products for one in pair):
        assert most_in_a_bank(index) == 1, index
    check_numbers(tmp_path, "tokens", "cuda")
