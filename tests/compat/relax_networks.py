"""The small networks whose Relax artifacts are kept, with seeded weights and inputs.

Runs inside TVM 0.25 to 0.27, so it keeps to what all of them have.  Most are ONNX models, which the
importer of each release reads; what ONNX has no word for is written in TVMScript.
"""

import zlib

import numpy as np
import onnx
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.nn.llm import kv_cache
from tvm.relax.frontend.onnx import from_onnx
from tvm.script import ir as I
from tvm.script import relax as R

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSET = 17


class Case:
    """A network and how it is compiled and called.

    exact: of each output, whether it takes nothing but IEEE arithmetic, so that the same code gives
    the same bits everywhere; expf and the like differ between C libraries.
    params: arrays that are kept apart (p_0 ...), which the function takes after its inputs.
    """

    def __init__(self, module, inputs, exact, function="main", modes=("bytecode",), params=()):
        self.module = module
        self.inputs = inputs
        self.exact = exact
        self.function = function
        self.modes = modes
        self.params = list(params)


class Graph:
    """An ONNX graph in the making."""

    def __init__(self, name):
        self.name = name
        self.random = np.random.RandomState(zlib.crc32(name.encode()) % 2**32)
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []

    def values(self, *shape):
        return self.random.randn(*shape).astype("float32")

    def weight(self, shape, scale):
        return self.constant((self.random.randn(*shape) * scale).astype("float32"))

    def constant(self, value):
        name = "w%d" % len(self.weights)
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def input(self, name, shape, kind=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name, shape, kind=FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def op(self, kind, *inputs, out=None, outputs=1, **attributes):
        names = [out or "t%d_%d" % (len(self.nodes), i) for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def module(self, **options):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        return from_onnx(model, **options)

    def dense(self, x, units_in, units, out=None):
        product = self.op("MatMul", x, self.weight((units_in, units), units_in ** -0.5))
        return self.op("Add", product, self.weight((units,), 0.1), out=out)

    def conv(self, x, channels_in, channels, kernel, stride=1, groups=1):
        weight = self.weight((channels, channels_in // groups, kernel, kernel),
                             (2.0 * groups / (channels_in * kernel * kernel)) ** 0.5)
        return self.op("Conv", x, weight, self.weight((channels,), 0.1), group=groups,
                       strides=[stride] * 2, pads=[kernel // 2] * 4)


def _mlp(name, rows):
    g = Graph(name)
    x = g.op("Relu", g.dense(g.input("x", [rows, 12]), 12, 16))
    g.dense(x, 16, 5, out="y")
    g.output("y", [rows, 5])
    return g


def mlp():
    """Two layers on a batch of two."""
    g = _mlp("mlp", 2)
    return Case(g.module(), {"x": g.values(2, 12)}, [True], modes=("bytecode", "compiled"))


def mlp_dynamic():
    """The same for any number of rows."""
    g = _mlp("mlp", "rows")
    return Case(g.module(), {"x": g.values(3, 12)}, [True], modes=("bytecode", "compiled"))


def mlp_params():
    """The same with its parameters kept apart, as TVM's tutorial does."""
    g = _mlp("mlp", 2)
    module, params = relax.frontend.detach_params(g.module(keep_params_in_input=True))
    return Case(module, {"x": g.values(2, 12)}, [True],
                params=[p.numpy() for p in params["main"]])


def cnn():
    """As classifiers are: convolutions, a depthwise one, residual, poolings; logits too."""
    g = Graph("cnn")
    x = g.op("Relu", g.conv(g.input("x", [1, 3, 16, 16]), 3, 8, 3))
    y = g.op("Relu", g.conv(x, 8, 8, 3, groups=8))
    y = g.op("Clip", g.conv(y, 8, 8, 1), g.constant(np.float32(0)), g.constant(np.float32(6)))
    x = g.op("MaxPool", g.op("Add", x, y), kernel_shape=[2, 2], strides=[2, 2])
    x = g.op("Relu", g.conv(x, 8, 16, 3, stride=2))
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    logits = g.dense(x, 16, 10, out="logits")
    g.op("Softmax", logits, axis=1, out="scores")
    g.output("scores", [1, 10])
    g.output("logits", [1, 10])
    return Case(g.module(), {"x": g.values(1, 3, 16, 16)}, [False, True])


def _transformer(name, length):
    g, width, heads = Graph(name), 16, 2
    x = g.input("x", [1, length, width])
    shape = g.op("Shape", x)
    pieces = [g.op("Slice", shape, *(g.constant(np.array([i])) for i in (0, 2))),
              g.constant(np.array([heads, width // heads]))]
    split = g.op("Concat", *pieces, axis=0)

    def head(perm):
        y = g.op("Reshape", g.dense(x, width, width), split)
        return g.op("Transpose", y, perm=perm)
    q, k, v = head([0, 2, 1, 3]), head([0, 2, 3, 1]), head([0, 2, 1, 3])
    scores = g.op("Mul", g.op("MatMul", q, k), g.constant(np.float32((width // heads) ** -0.5)))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), shape)
    y = g.op("Add", x, g.dense(y, width, width))
    y = g.op("LayerNormalization", y, g.constant(np.ones(width, "float32")),
             g.constant(np.zeros(width, "float32")), axis=-1)
    z = g.dense(y, width, 2 * width)
    z = g.op("Mul", z, g.op("Sigmoid", z))
    g.op("Add", y, g.dense(z, 2 * width, width), out="y")
    g.output("y", [1, length, width])
    return g


def transformer():
    """A layer of attention and a feed-forward one."""
    g = _transformer("transformer", 6)
    return Case(g.module(), {"x": g.values(1, 6, 16)}, [False])


def transformer_dynamic():
    """The same for any length: shapes are computed from shapes."""
    g = _transformer("transformer", "length")
    return Case(g.module(), {"x": g.values(1, 5, 16)}, [False], modes=("bytecode", "compiled"))


def topk():
    """What TVM leaves to a function of its runtime."""
    g = Graph("topk")
    values, indices = g.op("TopK", g.input("x", [3, 9]), g.constant(np.array([4])), outputs=2,
                           axis=-1)
    g.op("Identity", values, out="values")
    g.op("Identity", indices, out="indices")
    g.output("values", [3, 4])
    g.output("indices", [3, 4], INT64)
    x = g.values(3, 9)
    x[1, 2] = x[1, 5]  # Of equal numbers, the first comes first.
    return Case(g.module(), {"x": x}, [True, True])


def several():
    """Inputs and outputs of several types and ranks, an input that is looked up in a table."""
    g = Graph("several")
    picture, scale = g.input("picture", [1, 4, 5, 5]), g.input("scale", [4, 1, 1])
    tokens = g.input("tokens", [2, 3], INT64)
    numbers = g.input("bytes", [2, 7], TensorProto.UINT8)
    table = g.weight((12, 4), 1.0)
    scaled = g.op("Mul", picture, scale, out="scaled")
    g.op("ReduceSum", g.op("Gather", table, tokens, axis=0), g.constant(np.array([1])), keepdims=0,
         out="sums")
    g.op("ArgMax", scaled, axis=1, keepdims=0, out="best")
    g.op("Mul", g.op("Cast", numbers, to=TensorProto.INT32), g.constant(np.int32(-3)), out="whole")
    g.op("Greater", scaled, g.constant(np.float32(0)), out="positive")
    g.op("ReduceMax", scaled, keepdims=0, out="largest")
    for name, shape, kind in (("scaled", [1, 4, 5, 5], FLOAT), ("sums", [2, 4], FLOAT),
                              ("best", [1, 5, 5], INT64), ("whole", [2, 7], TensorProto.INT32),
                              ("positive", [1, 4, 5, 5], TensorProto.BOOL), ("largest", [], FLOAT)):
        g.output(name, shape, kind)
    inputs = {"picture": g.values(1, 4, 5, 5), "scale": g.values(4, 1, 1),
              "tokens": g.random.randint(0, 12, (2, 3)).astype("int64"),
              "bytes": g.random.randint(0, 256, (2, 7)).astype("uint8")}
    return Case(g.module(), inputs, [True] * 6)


@I.ir_module
class _Branch:
    @R.function
    def main(choice: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")) -> R.Tuple(
            R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")):
        if choice:
            doubled = R.add(x, x)
            pair = (doubled, x)
        else:
            squared = R.multiply(x, x)
            pair = (x, squared)
        return pair


def branch():
    """An If whose branches give tuples."""
    x = np.arange(6, dtype="float32").reshape(2, 3) - 2
    return Case(_Branch, {"choice": np.array(True), "x": x}, [True, True],
                modes=("bytecode", "compiled"))


def branch_else():
    """The same, the other way."""
    x = np.arange(6, dtype="float32").reshape(2, 3) - 2
    return Case(_Branch, {"choice": np.array(False), "x": x}, [True, True])


@I.ir_module
class _Functions:
    @R.function
    def double(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y: R.Tensor((4,), "float32") = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = _Functions
        y: R.Tensor((4,), "float32") = cls.double(x)
        z: R.Tensor((4,), "float32") = R.multiply(y, x)
        return z


def functions():
    """A function that calls another one."""
    return Case(_Functions, {"x": np.array([1, -2, 3, 0.5], "float32")}, [True])


def functions_double():
    """The other one by itself."""
    return Case(_Functions, {"x": np.array([1, -2, 3, 0.5], "float32")}, [True], function="double")


@I.ir_module
class _Closure:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tuple(
            R.Tensor((2, 3), "float32"),
            R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float16"))):
        @R.function
        def inner(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            w: R.Tensor((2, 3), "float32") = R.multiply(z, x)
            return w
        product: R.Tensor((2, 3), "float32") = inner(y)
        half = R.astype(y, "float16")
        return (y, (product, half))


def closure():
    """A function made while another runs, which keeps a tensor; tuples in each other."""
    x = np.arange(6, dtype="float32").reshape(2, 3) - 2
    return Case(relax.transform.LambdaLift()(_Closure), {"x": x, "y": x * x}, [True] * 3,
                modes=("bytecode", "compiled"))


@I.ir_module
class _Repeated:
    @R.function
    def repeat(i: R.Tensor((), "int64"), x: R.Tensor((4,), "float32")) -> R.Tensor(
            (4,), "float32"):
        cls = _Repeated
        more = R.less(i, R.const(5, "int64"))
        if more:
            twice = R.add(x, x)
            next_ = R.add(i, R.const(1, "int64"))
            result: R.Tensor((4,), "float32") = cls.repeat(next_, twice)
        else:
            result: R.Tensor((4,), "float32") = x
        return result

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = _Repeated
        result: R.Tensor((4,), "float32") = cls.repeat(R.const(0, "int64"), x)
        return result


def repeated():
    """A loop, as Relax has it: a function that calls itself."""
    return Case(_Repeated, {"x": np.array([1, -2, 3, 0.5], "float32")}, [True],
                modes=("bytecode", "compiled"))


@I.ir_module
class _Distinct:
    @R.function
    def main(rows: R.Tensor((5, 2), "int32"), x: R.Tensor((7,), "float32")):
        kept = R.unique(rows, R.prim_value(0), R.prim_value(1), R.prim_value(1), R.prim_value(1),
                        R.prim_value(0))
        values = R.unique(R.add(x, x), R.prim_value(1), R.prim_value(1), R.prim_value(1),
                          R.prim_value(1))
        return (kept, values, R.nonzero(x))


def distinct():
    """Results whose shapes depend on values: rows in the order that they came in, sorted numbers
    and the places of those that are not zero."""
    rows = np.array([[7, -1], [3, 4], [7, -1], [3, -4], [3, 4]], "int32")
    x = np.array([3, -0.5, 0, 3, 1e-30, -2, 0], "float32")
    return Case(_Distinct, {"rows": rows, "x": x}, [True] * 9, modes=("bytecode", "compiled"))


_WEIGHTS = np.random.RandomState(4).randint(0, 2**32, (6, 2, 1), dtype="uint32")
_SHIFTS = np.arange(0, 32, 4, dtype="uint32")
_SCALES = np.random.RandomState(5).rand(6, 2, 1).astype("float32")


@I.ir_module
class _FourBits:
    @R.function
    def main(x: R.Tensor(("rows", 16), "float32")):
        bits = R.bitwise_and(R.right_shift(R.const(_WEIGHTS, "uint32"),
                                           R.const(_SHIFTS, "uint32")), R.const(15, "uint32"))
        centred = R.subtract(R.astype(bits, "float32"), R.const(8, "float32"))
        weights = R.reshape(R.multiply(centred, R.const(_SCALES, "float32")), (6, 16))
        return R.matmul(x, R.permute_dims(weights))


def four_bits():
    """A product with weights of 4 bits, eight in a word, that have a scale for each eight."""
    x = np.random.RandomState(6).randn(3, 16).astype("float32")
    return Case(_FourBits, {"x": x}, [True], modes=("bytecode", "compiled"))


_KERNEL = np.random.RandomState(7).randint(-3, 4, (2, 2, 3, 3)).astype("float32")


@I.ir_module
class _Sizes:
    @R.function
    def main(x: R.Tensor((1, 2, "h", "w"), "float32"), y: R.Tensor(("h * 2 + 1", 3), "float32")):
        inner = R.nn.conv2d(x, R.const(_KERNEL, "float32"))
        return (inner, R.add(y, y))


def sizes():
    """A size that follows from another input's, and results smaller than the input by a border, so
    that there are none for the smallest sizes."""
    random = np.random.RandomState(8)
    return Case(_Sizes, {"x": random.randn(1, 2, 5, 6).astype("float32"),
                         "y": random.randn(11, 3).astype("float32")}, [True] * 2,
                modes=("bytecode", "compiled"))


_BOXES = np.array([[[0, 0.9, 0, 0, 2, 2], [0, 0.8, 0, 0.5, 2, 2], [1, 0.7, 0, 0, 2, 2],
                    [-1, 0.99, 4, 4, 6, 6], [0, 0.8, 3, 3, 5, 5], [0, 0.1, 7, 7, 8, 8]]], "float32")


@I.ir_module
class _Suppressed:
    @R.function
    def main(boxes: R.Tensor((1, 6, 6), "float32")):
        valid = R.vision.get_valid_counts(boxes, 0.2, id_index=0, score_index=1)
        return R.vision.non_max_suppression(
            valid[1], valid[0], valid[2], iou_threshold=0.5, coord_start=2, score_index=1,
            id_index=0, return_indices=True)


def suppressed():
    """Boxes that others of their class cover, by an order that TVM's runtime finds."""
    return Case(_Suppressed, {"boxes": _BOXES}, [True] * 2)


def _state(builder, name, *values):
    """Calls a function of the virtual machine for what it does."""
    return builder.emit(relax.Call(relax.ExternFunc("vm.builtin." + name), list(values), None,
                                   [relax.AnyType()]))


def paged():
    """Attention with a cache in pages, as language models of nn.llm have it: two sequences, one by
    one and together, whole and row by row, one of which loses rows in between."""
    query_heads, heads, width = 4, 2, 8
    target = tvm.target.Target("llvm")
    feeds = (((0,), (18,)), ((0,), (1,)), ((7,), (3,)), ((0, 7), (17, 2)), ((7, 0), (1, 1)))
    random = np.random.RandomState(9)
    total = query_heads + 2 * heads
    inputs = {"x%d" % i: random.randn(sum(rows), total, width).astype("float32")
              for i, (_, rows) in enumerate(feeds)}
    builder = relax.BlockBuilder()
    given = [relax.Var(name, relax.TensorType(x.shape, "float32"))
             for name, x in inputs.items()]
    with builder.function("main", given, attrs={"global_symbol": "main"}, pure=False):
        cache = builder.emit(kv_cache.TIRPagedKVCache(
            attn_kind="mha", max_batch_size=2, max_total_seq_len=96, prefill_chunk_size=32,
            page_size=16, support_sliding_window=0, layer_partition=relax.ShapeExpr([0, 1]),
            num_hidden_layers=1, num_attention_heads=query_heads, num_key_value_heads=heads,
            qk_head_dim=width, v_head_dim=width, mla_original_qk_head_dim=0,
            mla_original_v_head_dim=0, rope_mode=kv_cache.RopeMode.NORMAL, rope_scale=1,
            rope_theta=10000, rope_scaling={}, rope_ext_factors=relax.prim_value(0),
            rotary_dim=width, enable_disaggregation=False, dtype="float32", target=target)._expr)
        results = []
        for sequence in (0, 7):
            _state(builder, "kv_state_add_sequence", cache, relax.prim_value(sequence))
        for i, (sequences, rows) in enumerate(feeds):
            _state(builder, "kv_state_begin_forward", cache, relax.ShapeExpr(sequences),
                   relax.ShapeExpr(rows))
            results.append(builder.emit(relax.op.call_dps_packed(
                "vm.builtin.attention_kv_cache_attention_with_fused_qkv",
                [cache, relax.prim_value(0), relax.prim_value(width ** -0.5), given[i]],
                relax.TensorType((sum(rows), query_heads, width), "float32"))))
            _state(builder, "kv_state_end_forward", cache)
            if i == 1:
                _state(builder, "kv_state_popn", cache, relax.prim_value(0), relax.prim_value(4))
        builder.emit_func_output(relax.Tuple(results))
    return Case(builder.get(), inputs, [False] * len(feeds), modes=("bytecode", "compiled"))


CASES = {make.__name__: make for make in (
    mlp, mlp_dynamic, mlp_params, cnn, transformer, transformer_dynamic, topk, several, branch,
    branch_else, functions, functions_double, closure, repeated, distinct, four_bits, sizes,
    suppressed, paged)}
