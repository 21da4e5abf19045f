"""Networks with open extents, at sizes that the compiler has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from run_model_tools import tvm_process
from run_model_tools.compiling.open_sizes import OpenSizes, open_sizes, shapes_of
from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from small_networks import run_onnxruntime, save_network, weights

# As exporters write a text model: positions out of a table of 24, extents for every reshape, a mask
# that is spread over the scores.
ATTENTION = """(int64[batch,words] ids, int64[batch,words] mask) => (float[] y) {
    all = Shape(ids)
    rows = Gather(all, zero)
    length = Gather(all, one)
    ends = Unsqueeze(length, first)
    here = Slice(places, first, ends, second, second)
    token = Gather(table, ids)
    place = Gather(positions, here)
    x = Add(token, place)
    rows1 = Unsqueeze(rows, first)
    heads = Concat<axis=0>(rows1, ends, two, four)
    q0 = MatMul(x, w)
    q1 = Reshape(q0, heads)
    q = Transpose<perm=[0,2,1,3]>(q1)
    k = Transpose<perm=[0,2,3,1]>(q1)
    scores = MatMul(q, k)
    square = Concat<axis=0>(rows1, second, ends, ends)
    known = Cast<to=9>(mask)
    known4 = Unsqueeze(known, middle)
    spread = Expand(known4, square)
    masked = Where(spread, scores, low)
    shares = Softmax<axis=-1>(masked)
    mixed = MatMul(shares, q)
    back = Transpose<perm=[0,2,1,3]>(mixed)
    flat = Concat<axis=0>(rows1, ends, rest)
    y = Reshape(back, flat)
}"""
# A causal mask, as two exporters write it.
CAUSAL = """(float[words,4] x) => (float[] y, float[] z, float[] v) {
    all = Shape(x)
    length = Gather(all, zero)
    t = Transpose(x)
    scores = MatMul(x, t)
    numbers = Range(zero, length, one)
    columns = Unsqueeze(numbers, first)
    lines = Unsqueeze(numbers, second)
    allowed = LessOrEqual(columns, lines)
    masked = Where(allowed, scores, low)
    y = Softmax<axis=-1>(masked)
    z = Trilu<upper=0>(scores)
    v = EyeLike<k=-1>(scores)
}"""
# A U-shape: the lower picture is resized to twice its size and padded to the upper one's.
PADDED = """(float[batch,3,height,width] x) => (float[] y) {
    upper = Conv<pads=[1,1,1,1]>(x, w)
    half = MaxPool<kernel_shape=[2,2], strides=[2,2]>(upper)
    lower = Conv<pads=[1,1,1,1]>(half, v)
    back = Resize<mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor">(lower, , twice)
    wanted = Shape(upper)
    have = Shape(back)
    missing = Sub(wanted, have)
    left = Div(missing, two)
    right = Sub(missing, left)
    widths = Concat<axis=0>(left, right)
    padded = Pad(back, widths)
    joined = Concat<axis=1>(upper, padded)
    sum = Conv(joined, u)
    y = Relu(sum)
}"""
# A detector: places of a grid beside what is found there; sides have to be even.
GRID = """(float[batch,3,height,width] x) => (float[] y) {
    small = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w)
    up = Resize<mode="nearest", coordinate_transformation_mode="asymmetric",
                nearest_mode="floor">(small, , twice)
    both = Concat<axis=1>(x, up)
    f = Conv(both, u)
    all = Shape(f)
    rows = Gather(all, two0)
    columns = Gather(all, three0)
    batch = Gather(all, zero)
    down0 = Range(zero, rows, one)
    down1 = Cast<to=1>(down0)
    down = Unsqueeze(down1, second)
    right0 = Range(zero, columns, one)
    right1 = Cast<to=1>(right0)
    right = Unsqueeze(right1, first)
    ends0 = Unsqueeze(rows, first)
    ends1 = Unsqueeze(columns, first)
    grid = Concat<axis=0>(ends0, ends1)
    a = Expand(down, grid)
    b = Expand(right, grid)
    ab = Concat<axis=0>(a, b)
    points = Reshape(ab, pairs)
    batch1 = Unsqueeze(batch, first)
    form = Concat<axis=0>(batch1, pairs)
    found = Reshape(f, form)
    y = Add(found, points)
}"""
# The grid of a detector's last picture: of small pictures its sides are 1, and nothing is expanded.
STRIDED = """(float[batch,3,height,width] x) => (float[] y) {
    every = Slice(x, corner, far, axes, steps)
    small = Conv<strides=[4,4], pads=[1,1,1,1]>(every, w)
    all = Shape(small) sides = Slice(all, two, ends)
    rows, columns = Split<axis=0, num_outputs=2>(sides)
    height = Squeeze(rows)
    width = Squeeze(columns)
    down = Range(zero, height, one)
    right = Range(zero, width, one)
    lines = Unsqueeze(down, second)
    a = Expand(lines, sides) b = Expand(right, sides)
    ab = Concat<axis=0>(a, b)
    pairs = Reshape(ab, halves)
    points = Cast<to=1>(pairs)
    flat = Reshape(small, channels)
    y = Add(flat, points)
}"""
# Numbered patches, whose count follows from no side alone, and queries for each picture.
PATCHES = """(float[batch,3,height,width] x) => (float[] y) {
    f = Conv<strides=[3,3]>(x, w)
    flat = Reshape(f, channels)
    tokens = Transpose<perm=[0,2,1]>(flat)
    all = Shape(tokens)
    count = Gather(all, one)
    numbers0 = Range(zero, count, one)
    numbers = Cast<to=1>(numbers0)
    column = Unsqueeze(numbers, second)
    placed = Add(tokens, column)
    batch = Slice(all, first, second)
    times = Concat<axis=0>(batch, ones)
    asking = Tile(queries, times)
    asked = MatMul(asking, flat)
    shares = Softmax<axis=-1>(asked)
    y = MatMul(shares, placed)
}"""
# A pyramid: the smaller picture is resized to the other's sides, and a table of places to the same.
PYRAMID = """(float[batch,3,height,width] x) => (float[] y, float[] z) {
    f = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w)
    g = Conv<strides=[2,2], pads=[1,1,1,1]>(f, v)
    upper = Shape(f)
    sides = Slice(upper, two, ends)
    lower = Shape(g)
    front = Slice(lower, first, two)
    sizes = Concat<axis=0>(front, sides)
    up = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(g, , , sizes)
    y = Add(up, f)
    form = Concat<axis=0>(one_of_four, sides)
    places = Resize<mode="cubic">(table, , , form)
    z = Add(f, places)
}"""
# Of the places of a picture those with the largest numbers, some of which are equal.
CHOSEN = """(float[batch,3,height,width] x) => (float[] y, int64[] z) {
    f = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w)
    r = Relu(f)
    flat = Reshape(r, channels)
    tokens = Transpose<perm=[0,2,1]>(flat)
    scores = ReduceMin<keepdims=0>(tokens, two)
    best, z = TopK<axis=1>(scores, count)
    places = Unsqueeze(z, two)
    all = Expand(places, wide)
    y = GatherElements<axis=1>(tokens, all)
}"""
# Products with weights, one of them turned, for as many rows as there are words.
DENSE = """(float[batch,words,20] x) => (float[] y) {
    a = MatMul(x, w)
    b = Relu(a)
    c = MatMul(b, v)
    all = Shape(c)
    count = Slice(all, first, two)
    ends = Concat<axis=0>(rest, many)
    rows = Reshape(c, ends)
    d = Gemm<transB=1>(rows, u, bias)
    form = Concat<axis=0>(count, more)
    e = Reshape(d, form)
    y = Softmax<axis=1>(e)
}"""
# Convolutions of all sorts, and products of tensors of which some serve many batches.
WINDOWS = """(float[batch,6,height,width] x, float[batch,4,length] s)
        => (float[] y, float[] z, float[] p, float[] q) {
    y = Conv<kernel_shape=[3,2], strides=[2,3], dilations=[2,1], pads=[1,0,3,2], group=2>(x, w)
    z = Conv<kernel_shape=[5], strides=[2], dilations=[2], pads=[3,4]>(s, v)
    turned = Transpose<perm=[0,1,3,2]>(x)
    together = ReduceSum(x, first)
    p = MatMul(turned, together)
    plane = ReduceSum<keepdims=0>(x, planes)
    q = MatMul(turned, plane)
}"""
# What pictures meet in U-shapes and small detectors: windows of one channel, gates of means, sums
# along rows, transposed convolutions, resizing both ways, and what is done to each number.
PICTURES = """(float[batch,3,height,width] x) => (float[] y, float[] z, float[] m, float[] u) {
    a0 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w, wb)
    a = HardSwish(a0)
    d0 = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=20>(a, dw)
    d = Clip(d0, low, high)
    mean = GlobalAveragePool(d)
    gate0 = Conv(mean, gw)
    gate = Sigmoid(gate0)
    gated = Mul(d, gate)
    p = Conv(gated, pw, pb)
    s = Add(p, a)
    up = ConvTranspose<kernel_shape=[3,2], strides=[2,2], pads=[1,0,0,0], group=2>(s, tw, tb)
    y = Relu(up)
    z = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(s, , twice)
    n = Resize<mode="nearest", coordinate_transformation_mode="asymmetric",
               nearest_mode="floor">(s, , thrice)
    part = Softmax<axis=-1>(n)
    far = ReduceMax<keepdims=1>(n, last)
    less = Sub(n, far)
    m = Mul(less, part)
    u = ReduceMean<keepdims=0>(m, last)
}"""
# Windows of three pixels, which pictures are padded to, as Swin has them.
WINDOWED = """(float[batch,2,height,width] x) => (float[] y) {
    all = Shape(x)
    batch, channels, size = Split<axis=0>(all, parts)
    over = Mod(size, three)
    short = Sub(three, over)
    missing = Mod(short, three)
    widths = Concat<axis=0>(none, missing)
    padded = Pad(x, widths)
    whole = Add(size, missing)
    counts = Div(whole, three)
    rows, columns = Split<axis=0, num_outputs=2>(counts)
    form = Concat<axis=0>(batch, channels, rows, three, columns, three)
    windows = Reshape(padded, form)
    y = ReduceMean<keepdims=0>(windows, inside)
}"""
# The same of patches: small pictures have one window of them.
WINDOWS_OF_PATCHES = WINDOWED.replace("all = Shape(x)", """
    p = Conv<strides=[8,8]>(x, w)
    all = Shape(p)""").replace("Pad(x,", "Pad(p,")
# What is missing to whole windows, repeated on all sides, as restorers of pictures have it.
SURROUNDED = WINDOWED.split("    widths")[0].replace("(float[] y)", "(float[] y, float[] z)") + """
    left = Div(missing, two)
    right = Sub(missing, left)
    around = Concat<axis=0>(edges, left, edges, right)
    y = Pad<mode="reflect">(x, around)
    repeated = Pad<mode="edge">(x, around)
    end = Add(left, size)
    z = Slice(repeated, left, end, inner)
}"""
# What networks for style and for sound begin with.
REFLECTED = """(float[batch,3,height,width] x) => (float[] y, float[] z, float[] v) {
    y = Pad<mode="reflect">(x, widths)
    z = Pad<mode="edge">(x, widths)
    v = Pad<mode="wrap">(x, widths)
}"""
# Recurrent layers in both directions.
RECURRENT = """(float[words,batch,5] x)
        => (float[] y, float[] last, float[] cells, float[] z, float[] v, float[] p, float[] q,
            float[] s) {
    all = Shape(x)
    batch = Gather(all, one)
    batch1 = Unsqueeze(batch, first)
    form = Concat<axis=0>(two, batch1, six)
    start = ConstantOfShape(form)
    y, last, cells = LSTM<hidden_size=6, direction="bidirectional">(x, w, r, b, , start, start)
    z = GRU<hidden_size=6, direction="bidirectional", linear_before_reset=1>(x, gw, gr, gb)
    v = GRU<hidden_size=6, direction="reverse">(x, vw, vr, vb)
    p = LSTM<hidden_size=6, direction="bidirectional">(x, w, r, b, , start, start, peepholes)
    q = RNN<hidden_size=6, direction="bidirectional", activations=["Relu", "Relu"]>(x, qw, qr, qb)
    s = RNN<hidden_size=6, direction="reverse">(x, sw, sr)
}"""
# A step of a decoder: keys of words before, and a bias over these and the words at hand.
CACHE = """(float[batch,words,4] x, float[rows,total] bias, float[batch,cached,4] past)
        => (float[] y, float[] keys) {
    keys = Concat<axis=1>(past, x)
    turned = Transpose<perm=[0,2,1]>(keys)
    scores = MatMul(x, turned)
    wide = Unsqueeze(bias, second)
    masked = Add(scores, wide)
    shares = Softmax<axis=-1>(masked)
    y = MatMul(shares, keys)
}"""
# A picture that is moved by what is computed of it, and its share of the height.
MOVED = """(float[batch,2,height,width] x) => (float[] y, float[] z, float[] v) {
    moves = Conv(x, w)
    grid = Transpose<perm=[0,2,3,1]>(moves)
    y = GridSample<align_corners=1, padding_mode="border">(x, grid)
    z = GridSample<mode="bicubic", padding_mode="reflection">(x, grid)
    all = Shape(x)
    height = Gather(all, two)
    number = Cast<to=1>(height)
    share = Div(whole, number)
    v = Mul(x, share)
}"""
SCALARS = {"zero": np.array(0), "one": np.array(1), "first": np.array([0]),
           "second": np.array([1]), "two": np.array([2]), "low": np.float32(-1e9)}
PICTURE = {"twice": np.array([1, 1, 2, 2], np.float32), **SCALARS}
WINDOWS_OF_3 = {"parts": np.array([1, 1, 2]), "three": np.array([3]), "none": np.array([0] * 6),
                "inside": np.array([3, 5])}
NETWORKS = {
    "attention": (ATTENTION, {
        **SCALARS, **weights(1, table=(30, 8), positions=(24, 8), w=(8, 8)),
        "places": np.arange(24).reshape(1, 24), "four": np.array([4]),
        "middle": np.array([1, 2]), "rest": np.array([-1])}),
    "causal": (CAUSAL, SCALARS),
    "cache": (CACHE, SCALARS),
    "padded": (PADDED, {**PICTURE, "two": np.array(2),
                        **weights(2, w=(4, 3, 3, 3), v=(4, 4, 3, 3), u=(2, 8, 1, 1))}),
    "dense": (DENSE, {
        **SCALARS, **weights(5, w=(20, 300), v=(300, 33), u=(17, 33), bias=(17,)),
        "rest": np.array([-1]), "many": np.array([33]), "more": np.array([17])}),
    "recurrent": (RECURRENT, {
        **SCALARS, "six": np.array([6]),
        **weights(4, w=(2, 24, 5), r=(2, 24, 6), b=(2, 48), gw=(2, 18, 5), gr=(2, 18, 6),
                  gb=(2, 36), vw=(1, 18, 5), vr=(1, 18, 6), vb=(1, 36), peepholes=(2, 18),
                  qw=(2, 6, 5), qb=(2, 12), sw=(1, 6, 5), sr=(1, 6, 6)),
        # A Relu bounds nothing: states would grow with every step.
        "qr": weights(6, qr=(2, 6, 6))["qr"] / 8}),
    "windows": (WINDOWS, {**SCALARS, "planes": np.array([0, 1]),
                          **weights(7, w=(12, 3, 3, 2), v=(9, 4, 5))}),
    "pictures": (PICTURES, {
        **PICTURE, "thrice": np.array([1, 1, 3, 3], np.float32), "high": np.float32(1.5),
        "low": np.float32(-0.5), "last": np.array([3]),
        **weights(8, w=(20, 3, 3, 3), wb=(20,), dw=(20, 1, 3, 3), gw=(20, 20, 1, 1),
                  pw=(20, 20, 1, 1), pb=(20,), tw=(20, 5, 3, 2), tb=(10,))}),
    "windowed": (WINDOWED, WINDOWS_OF_3),
    "windows_of_patches": (WINDOWS_OF_PATCHES, {**WINDOWS_OF_3, **weights(13, w=(2, 2, 8, 8))}),
    "surrounded": (SURROUNDED, {**WINDOWS_OF_3, **SCALARS, "edges": np.array([0, 0]),
                                "three": np.array([6]), "inner": np.array([2, 3])}),
    "moved": (MOVED, {"two": np.array(2), "whole": np.float32(2), **weights(14, w=(2, 2, 1, 1))}),
    "reflected": (REFLECTED, {"widths": np.array([0, 0, 2, 1, 0, 0, 1, 2])}),
    "strided": (STRIDED, {
        **SCALARS, "ends": np.array([4]), "halves": np.array([2, -1]), "steps": np.array([2, 2]),
        "corner": np.array([0, 0]), "far": np.array([2 ** 40] * 2), "axes": np.array([2, 3]),
        "channels": np.array([0, 2, -1]), **weights(12, w=(2, 3, 3, 3))}),
    "patches": (PATCHES, {**SCALARS, "channels": np.array([0, 4, -1]), "ones": np.array([1, 1]),
                          **weights(9, w=(4, 3, 3, 3), queries=(1, 5, 4))}),
    "pyramid": (PYRAMID, {**SCALARS, "ends": np.array([4]), "one_of_four": np.array([1, 4]),
                          **weights(10, w=(4, 3, 3, 3), v=(4, 4, 3, 3), table=(1, 4, 5, 6))}),
    "chosen": (CHOSEN, {**SCALARS, "channels": np.array([0, 4, -1]), "count": np.array([9]),
                        "wide": np.array([1, 1, 4]), **weights(11, w=(4, 3, 3, 3))}),
    "grid": (GRID, {**PICTURE, "two0": np.array(2), "three0": np.array(3),
                    "pairs": np.array([2, -1]), **weights(3, w=(4, 3, 3, 3), u=(2, 7, 1, 1))})}
UNSEEN = {
    "attention": [{"batch": 1, "words": 24}, {"batch": 4, "words": 1}, {"batch": 1, "words": 10}],
    "causal": [{"words": 1}, {"words": 33}],
    "cache": [{"batch": 1, "words": 1, "total": 18, "cached": 17},
              {"batch": 3, "words": 20, "total": 24, "cached": 4}],
    "padded": [{"batch": 1, "height": 41, "width": 20}, {"batch": 2, "height": 22, "width": 35}],
    "dense": [{"batch": 1, "words": 1}, {"batch": 1, "words": 16}, {"batch": 3, "words": 31}],
    "recurrent": [{"words": 1, "batch": 1}, {"words": 30, "batch": 2}],
    "windows": [{"batch": 1, "height": 1, "width": 1, "length": 2},
                {"batch": 3, "height": 37, "width": 140, "length": 75},
                {"batch": 2, "height": 64, "width": 33, "length": 64}],
    "pictures": [{"batch": 1, "height": 1, "width": 3}, {"batch": 2, "height": 37, "width": 101},
                 {"batch": 3, "height": 18, "width": 32}],
    "windowed": [{"batch": 1, "height": 1, "width": 3}, {"batch": 2, "height": 41, "width": 34}],
    "windows_of_patches": [{"batch": 2, "height": 33, "width": 101},
                           {"batch": 1, "height": 61, "width": 10}],
    "surrounded": [{"batch": 1, "height": 3, "width": 4}, {"batch": 2, "height": 41, "width": 33}],
    "moved": [{"batch": 1, "height": 2, "width": 3}, {"batch": 2, "height": 35, "width": 14}],
    "reflected": [{"batch": 1, "height": 3, "width": 3}, {"batch": 2, "height": 9, "width": 4}],
    "strided": [{"batch": 1, "height": 3, "width": 41}, {"batch": 2, "height": 70, "width": 33}],
    "patches": [{"batch": 1, "height": 3, "width": 5}, {"batch": 2, "height": 40, "width": 13}],
    "pyramid": [{"batch": 1, "height": 1, "width": 10}, {"batch": 2, "height": 33, "width": 50}],
    "chosen": [{"batch": 1, "height": 6, "width": 5}, {"batch": 2, "height": 41, "width": 30}],
    "grid": [{"batch": 1, "height": 34, "width": 8}, {"batch": 3, "height": 2, "width": 46}]}
LIMITS = {"attention": ("words", {"least": 1, "most": 24, "step": 1}),
          "causal": ("words", {"least": 1, "most": 4096, "step": 1}),
          "cache": ("total", {"least": 2, "most": 8192, "step": 1}),
          "padded": ("batch", {"least": 1, "most": 4096, "step": 1}),
          "dense": ("words", {"least": 1, "most": 4096, "step": 1}),
          "recurrent": ("words", {"least": 1, "most": 4096, "step": 1}),
          "windows": ("width", {"least": 1, "most": 4096, "step": 1}),
          "pictures": ("width", {"least": 1, "most": 4096, "step": 1}),
          "windowed": ("height", {"least": 1, "most": 4096, "step": 1}),
          "windows_of_patches": ("height", {"least": 9, "most": 4096, "step": 1}),
          "surrounded": ("height", {"least": 3, "most": 4096, "step": 1}),
          "moved": ("height", {"least": 1, "most": 4096, "step": 1}),
          "reflected": ("height", {"least": 3, "most": 4096, "step": 1}),
          "strided": ("height", {"least": 1, "most": 4096, "step": 1}),
          "patches": ("height", {"least": 3, "most": 4096, "step": 1}),
          "pyramid": ("height", {"least": 1, "most": 4096, "step": 1}),
          "chosen": ("height", {"least": 1, "most": 4096, "step": 1}),
          "grid": ("height", {"least": 2, "most": 4096, "step": 2})}

EXAMPLES = {"chosen": {"x": (2, 3, 24, 20)}}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The folder with what was made of each network, and the sizes that it is for."""
    folder = tmp_path_factory.mktemp("open")
    sizes, requests = {}, []
    for name, (text, constants) in NETWORKS.items():
        path = save_network(folder / f"{name}.onnx", text, constants,
                            19 if name == "reflected" else 18)
        sizes[name] = open_sizes(read_model(path), EXAMPLES.get(name, {}))
        (folder / name).mkdir()
        requests.append({"onnx": str(path), "shapes": {}, "opened": sizes[name].request(),
                         "target": "native", "opt_level": 3, "kernels": "ours", "cc": "g++",
                         "directory": str(folder / name)})
    answers = tvm_process.call("compile_many_relax", None, requests=requests)["results"]
    assert not [answer["error"] for answer in answers if "error" in answer]
    return folder, sizes, {name: answer["kernels"] for name, answer in zip(NETWORKS, answers)}


def inputs_of(found: OpenSizes, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(sum(sizes.values()))
    shapes = shapes_of(found.inputs, sizes)
    return {name: random.integers(0, 2 if name == "mask" else 30, shape)
            if name in ("ids", "mask") else random.standard_normal(shape).astype(np.float32)
            for name, shape in shapes.items()}


def test_outputs_are_right_at_sizes_that_the_compiler_has_not_seen(compiled):
    folder, found, _ = compiled
    requests, wanted = [], []
    for name, tried in UNSEEN.items():
        given = []
        for index, sizes in enumerate(tried):
            assert sizes not in found[name].samples
            inputs = inputs_of(found[name], sizes)
            given.append(str(folder / name / f"in{index}.npz"))
            np.savez(given[-1], *inputs.values())
            wanted.append((folder / name / f"{index}.npz",
                           run_onnxruntime(folder / f"{name}.onnx", inputs)))
        requests.append({"library": str(folder / name / "model.so"), "inputs": given,
                         "outputs": str(folder / name)})
    tvm_process.call("run_many_relax", None, requests=requests)
    for path, expected in wanted:
        with np.load(path) as file:
            for have, want in zip((file[k] for k in file.files), expected, strict=True):
                assert have.shape == want.shape, path
                np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4, err_msg=str(path))


@pytest.mark.parametrize("name, left", [
    ("dense", {"nn.softmax"}), ("windows", set()), ("padded", set()),
    ("pictures", set()), ("attention", {"take", "where", "cast", "add", "broadcast_to"})])
def test_what_is_done_to_numbers_is_our_code(compiled, name, left):
    kernels = compiled[2][name]
    assert kernels["method"] == "ours"
    of_numbers = {"matmul", "add", "multiply", "divide", "sigmoid", "clip", "mean", "max",
                  "maximum", "concat", "permute_dims", "image.resize2d"}
    found = {op for op in kernels["left_to_tvm"] if op in of_numbers or op.startswith("nn.")}
    assert found <= left


@pytest.mark.parametrize("name", NETWORKS)
def test_what_sizes_a_network_takes_is_known(compiled, name):
    symbol, limits = LIMITS[name]
    assert compiled[1][name].limits()[symbol] == limits


@pytest.mark.parametrize("name, sizes, said", [
    ("attention", {"batch": 1, "words": 25}, "'words' of the input 'ids' is 25.*for 1 to 24"),
    ("grid", {"batch": 1, "height": 4, "width": 7}, "'width' of .* 7.*in steps of 2"),
    ("cache", {"batch": 1, "words": 2, "total": 8, "cached": 5},
     "'total' of the input 'bias' is 8, .* for 'words' \\+ 'cached'")])
def test_other_sizes_are_refused_by_name(compiled, tmp_path, name, sizes, said):
    folder, found, _ = compiled
    np.savez(tmp_path / "in.npz", *inputs_of(found[name], sizes).values())
    with pytest.raises(ToolError, match=said):
        tvm_process.call("run_relax", None, library=str(folder / name / "model.so"),
                         inputs=[str(tmp_path / "in.npz")], outputs=str(tmp_path))


def test_the_sizes_that_are_given_are_among_those_taken(tmp_path):
    """The window has nine places with its dilation, so that sides of 1 to 4 are not taken."""
    path = save_network(tmp_path / "dilated.onnx", """
    (float[batch,2,height,width] x) => (float[] y) {
        y = Conv<dilations=[2,2], pads=[2,2,2,2]>(x, w)
    }""", weights(1, w=(3, 2, 5, 5)), 18)
    found = open_sizes(read_model(path), {"x": (2, 2, 6, 7)})
    assert (found.least["height"], found.least["width"]) == (6, 7)
    assert {"batch": 2, "height": 6, "width": 7} in found.tried


def test_an_extent_of_which_one_size_is_taken_is_not_open(tmp_path):
    """Exporters leave it open and have written the example's size into the network."""
    path = save_network(tmp_path / "fixed.onnx", "(float[batch,words,4] x) => (float[] y) {"
                        "y = Concat<axis=1>(state, x) }", weights(1, state=(1, 2, 4)), 18)
    found = open_sizes(read_model(path), {"x": (1, 5, 4)})
    assert found.inputs == {"x": (1, "words", 4)}
    assert list(found.most) == ["words"]


def test_extents_that_are_taken_beside_1_only_are_not_apart(tmp_path):
    """A mask whose extents have names of their own, as PyTorch's older exporter gives them."""
    path = save_network(tmp_path / "mask.onnx", """
    (float[rows,words] x, float[mask_rows,mask_words] m) => (float[] y) {
        y = Mul(x, m)
    }""", {}, 18)
    assert open_sizes(read_model(path), {}).inputs == {
        "x": ("axis_0", "axis_1"), "m": ("axis_0", "axis_1")}
