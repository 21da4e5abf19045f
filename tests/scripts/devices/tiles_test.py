"""How products are divided among a GPU's threads where nothing was measured: what slows down GPUs
of all kinds, counted."""

from __future__ import annotations

import json
import math
import re
from itertools import product
from pathlib import Path

import pytest
from gpu_networks import NETWORKS, TARGETS, check_numbers, compile_all

from run_model_tools.inside_tvm.devices import tiles

pytestmark = pytest.mark.full  # targets_of_gpus_test.py has kernels of all other kinds

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


FAR_APART = {
    # dilated, with kernels as large as their strides, along one axis: (input, weights, attributes)
    "aspp": ((1, 64, 33, 33), (64, 64, 3, 3), "dilations=[18,18],pads=[18,18,18,18]"),
    "stem16": ((1, 3, 224, 224), (192, 3, 16, 16), "strides=[16,16]"),
    "stem14": ((1, 3, 224, 224), (384, 3, 14, 14), "strides=[14,14]"),
    "stem4": ((1, 3, 224, 224), (96, 3, 4, 4), "strides=[4,4]"),
    "audio": ((1, 64, 500), (64, 64, 3), "dilations=[128],pads=[256,0]"),
}


@pytest.fixture(scope="module", name="far_apart")
def far_apart_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("far_apart")
    with pytest.MonkeyPatch.context() as patched:
        for name, (shape, weights, attributes) in FAR_APART.items():
            patched.setitem(NETWORKS, name, (
                f"y = Conv<{attributes}>(x, w)", shape, {"w": weights}))
        compile_all(folder, product(FAR_APART, TARGETS))
    return folder


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FAR_APART)
def test_convolutions_that_read_numbers_far_apart_get_tiles(far_apart, name, target):
    made = json.loads((far_apart / target / name / "made.json").read_text())
    assert "error" not in made and not made["plain_schedules"], made
    device = made["device"]
    assert 64 <= device["threads_per_group"] <= 256
    most = 49152 if target.startswith("cuda") else 16384
    assert 1024 < device["shared_memory_bytes"] <= most
    # Threads do more multiplications than loads: a step of these is a number of shared memory.
    # Of a result they may sum up a part, down to a sixteenth.
    shape, weights, _ = FAR_APART[name]
    count = math.prod(weights[1:])
    steps = device["longest_thread"]["steps"]
    assert count / 16 <= steps <= 16 * count * 1.5, (steps, count, shape)


@pytest.fixture(scope="module", name="deep")
def deep_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deep")
    compile_all(folder, [*product(("deep", "deep_alone", "deep_product"), ("cuda-sm_80",)),
                         ("deep", "vulkan"), ("one_place", "cuda-sm_80")])
    return folder


@pytest.mark.parametrize("name, kernels", [("deep", 2), ("deep_alone", 2), ("deep_product", 2),
                                           ("one_place", 1)])
def test_groups_sum_up_parts_of_long_sums(deep, name, kernels):
    text = (deep / "cuda-sm_80" / name / "kernels.cu").read_text()
    assert text.count('extern "C"') == kernels
    check_numbers(deep, name, "cuda")


def test_parts_are_summed_up_by_a_driver_too(deep):
    check_numbers(deep, "deep", "vulkan")


@pytest.mark.parametrize("extents, reduced, reach", [
    ((64, 33, 33), [64, 3, 3], [(1, 18), (1, 18)]), ((64, 33, 33), [64, 3, 3], [(1, 6), (1, 6)]),
    ((192, 14, 14), [3, 16, 16], [(16, 1), (16, 1)]), ((96, 56, 56), [3, 4, 4], [(4, 1), (4, 1)])])
def test_windows_fit_into_shared_memory_whatever_their_reach(extents, reduced, reach):
    best = tiles.best_tiles(*extents, reduced, THREADS, SHARED, reach=reach)
    f, y, x = (part[1] * part[2] * part[3] for part in best["tiles"])
    height, width = ((extent - 1) * stride + (size - 1) * dilation + 1 for extent, size, (
        stride, dilation) in zip((y, x), reduced[1:], reach))
    numbers = best["channels"] * (height * width + f * math.prod(reduced[1:]))
    assert numbers * 4 <= SHARED and f * y * x > 1


def test_what_is_loaded_decides_between_patches_and_windows():
    def cost(reduced, reach):
        return tiles.best_tiles(64, 33, 33, reduced, THREADS, SHARED, ragged=True,
                                reach=reach)["cost"]

    of_patches = cost([576, 1, 1], [(1, 1)] * 2)
    of_windows = {gap: cost([64, 3, 3], [(1, gap)] * 2) for gap in (1, 2, 6, 24)}
    assert list(of_windows.values()) == sorted(of_windows.values())
    assert of_windows[2] < of_patches < of_windows[24]


@pytest.mark.parametrize("units", [1, 16, 132])
def test_long_sums_of_few_results_are_divided_as_far_as_units_are_idle(units):
    def parts(rows, count, images=1):
        return tiles.best_tiles(rows, 7, 7, [count, 3, 3], THREADS, SHARED, images=images,
                                ragged=True, reach=[(1, 1)] * 2, most_parts=16,
                                units=units)["parts"]

    assert (parts(512, 512) > 1) == (units > 1)
    assert parts(512, 8) == 1, "a second kernel takes longer than so few numbers"
    assert parts(512, 512, images=500) <= 2


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
