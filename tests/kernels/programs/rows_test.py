"""Programs over rows, and views, against float64."""

from __future__ import annotations

import numpy as np

from layer_runner import on_every_machine, run_layers
from program_reference import evaluate, numbers_of
from random_convolutions import choose
from run_model_tools.kernels.isa import AVX2, Isa
from run_model_tools.kernels.pictures import elementwise
from run_model_tools.kernels.pictures.elementwise import Elementwise, Source
from run_model_tools.kernels.programs import rows
from run_model_tools.kernels.programs.expressions import Expression, Operand, Operation
from run_model_tools.kernels.programs.program import Program, copy_of
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import View, constant_tensor, whole


def draw_view(rng: np.random.Generator, shape: tuple[int, ...]) -> View:
    """Of this shape: as it lies, transposed, cut out of more, broadcast, or from blocks."""
    kind = rng.integers(6)
    if kind == 1:
        order = list(rng.permutation(len(shape)))
        return whole(Tensor(tuple(shape[i] for i in order))).transpose(np.argsort(order).tolist())
    if kind == 2:
        axis = int(rng.integers(len(shape)))
        step = int(rng.integers(1, 3))
        larger = [*shape]
        larger[axis] = shape[axis] * step + 3
        found = whole(Tensor(tuple(larger))).cut(axis, 2, shape[axis], step)
        assert found is not None
        return found
    if kind == 3:
        small = tuple(1 if rng.integers(2) else size for size in shape)
        return whole(Tensor(small)).broadcast(shape)
    if kind == 4 and shape[-1] % 4 == 0:
        # [blocks][all others][lanes]
        tensor = Tensor((shape[-1] // 4, *shape[:-1], 4))
        count = len(shape)
        moved = whole(tensor).transpose([*range(1, count), 0, count]).reshape(shape)
        assert moved is not None
        return moved
    if kind == 5:
        return whole(constant_tensor(rng.standard_normal(shape[-1:]).astype(np.float32))
                     ).broadcast(shape)
    return whole(Tensor(shape))


def softmax(view: View) -> Program:
    program = Program(view.shape, [])
    x = program.add_input(view)
    e = program.add("exp", program.add("subtract", x, program.add("max", x)))
    program.add("divide", e, program.add("sum", e))
    return program


def normalised(view: View, weight: View) -> Program:
    program = Program(view.shape, [])
    x, w = program.add_input(view), program.add_input(weight)
    per = program.add("constant", value=1 / view.shape[-1])
    centred = program.add("subtract", x, program.add("multiply", program.add("sum", x), per))
    squares = program.add("sum", program.add("multiply", centred, centred))
    deviation = program.add("rsqrt", program.add(
        "add", program.add("multiply", squares, per), program.add("constant", value=0.1)))
    program.add("multiply", program.add("multiply", centred, deviation), w)
    return program


def gelu(view: View, other: View) -> Program:
    program = Program(view.shape, [])
    x = program.add("add", program.add_input(view), program.add_input(other))
    half = program.add("constant", value=0.5)
    erf = program.add("erf", program.add("multiply", x, program.add("constant", value=0.70710678)))
    program.add("multiply", program.add("multiply", x, half),
                program.add("add", erf, program.add("constant", value=1)))
    return program


def row_numbers(view: View) -> Program:
    program = Program(view.shape, [])
    x = program.add_input(view)
    program.add("subtract", program.add("max", x), program.add("min", program.add("abs", x)))
    return program


def chosen(view: View, other: View) -> Program:
    program = Program(view.shape, [])
    x, y = program.add_input(view), program.add_input(other)
    less = program.add("if_less", x, y, x, program.add("constant", value=0.5))
    equal = program.add("if_equal", x, less, y, program.add("atan", x))
    program.add("if_less_equal", y, equal, less, program.add("tan", x))
    return program


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int
         ) -> list[tuple[Program, Isa, dict]]:
    programs = []
    for isa in isas:
        for index in range(count):
            shape = tuple(int(n) for n in rng.integers(1, (4, 6, 40)))
            if index % 4 == 0:
                shape = (*shape[:-1], shape[-1] * 12)
            views = [draw_view(rng, shape) for _ in range(2)]
            make = [lambda a, b: softmax(a), normalised, gelu, lambda a, b: row_numbers(a),
                    lambda a, b: copy_of(a.times(1.5)), chosen][index % 6]
            program = make(*views)
            assert rows.can_run(program)
            programs.append((program, isa))
    return choose(rng, rows, programs)


def beside_each_other() -> list[Program]:
    """Programs with inputs of which a row's numbers lie apart, and rows beside each other."""
    def down(shape: tuple[int, ...], *order: int) -> View:
        return whole(Tensor(shape)).transpose(order)

    cut = whole(Tensor((6, 2, 5, 33))).cut(1, 0, 1)
    assert cut is not None
    in_groups = cut.transpose([3, 0, 2, 1]).reshape((33, 30))
    assert in_groups is not None
    return [copy_of(down((45, 37), 1, 0)), copy_of(down((20, 3, 35), 2, 1, 0)),
            copy_of(down((3, 21, 80), 0, 2, 1)), copy_of(in_groups),
            copy_of(down((45, 37), 1, 0).times(1.5)), softmax(down((3, 21, 80), 0, 2, 1)),
            row_numbers(in_groups), row_numbers(down((20, 3, 35), 2, 1, 0)),
            normalised(down((77, 33), 1, 0), whole(Tensor((1, 77))).broadcast((33, 77))),
            gelu(down((45, 37), 1, 0), whole(Tensor((37, 45)))),
            gelu(down((2048, 20), 1, 0), down((2048, 20), 1, 0).broadcast((20, 2048))),
            chosen(down((45, 2, 37), 2, 1, 0), down((45, 2, 37), 2, 1, 0).times(2))]


@on_every_machine
def test_rows_that_lie_beside_each_other(tmp_path, machine):
    rng = machine.rng()
    programs = [(program, isa) for isa in machine.isas for program in beside_each_other()]
    assert all(rows.transposes(program, isa) for program, isa in programs)
    _compare(rng, choose(rng, rows, programs), tmp_path, machine)


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    _compare(rng, draw(rng, machine.isas, machine.count(18)), tmp_path, machine)


def _compare(rng, cases, tmp_path, machine) -> None:
    runs, all_arrays = [], []
    for program, isa, parameters in cases:
        arrays = {t: rng.standard_normal(t.shape).astype(np.float32)
                  for t in rows.inputs_of(program)}
        runs.append((rows.make(program, isa, **parameters), list(arrays.values())))
        all_arrays.append(arrays)
    outputs = run_layers(runs, tmp_path, machine.toolchain)
    for (program, isa, _), arrays, output in zip(cases, all_arrays, outputs):
        want = evaluate(program, arrays)
        assert output.shape == want.shape == rows.output_shape(program)
        # A few roundings of numbers up to about ten; functions are good to 5 units (vector_math.h).
        np.testing.assert_allclose(output, want, rtol=2e-6, atol=4e-6,
                                   err_msg=f"{program.nodes} {program.shape} {isa.name}")


@on_every_machine
def test_a_product_that_is_taken_from_an_equal_one_leaves_nothing(tmp_path, machine):
    """As E[x^2] - E[x]^2, of which a network takes the root: at each place, in a row's number
    behind sums, and in an expression of blocks."""
    rng = machine.rng()
    runs = []
    for isa in machine.isas:
        shape = (1, 1, 3, 5, isa.lanes)
        x = rng.standard_normal(shape).astype(np.float32)
        program, row = Program((5, 24), []), Program((5, 24), [])
        views = [whole(Tensor((5, 24))) for _ in range(2)]
        a, square = (program.add_input(view) for view in views)
        program.add("subtract", square, program.add("multiply", a, a))
        b, top = row.add_input(views[0]), row.add_input(views[1])
        most = row.add("max", b)
        row.add("subtract", row.add("max", top), row.add("multiply", most, most))
        numbers = np.abs(rng.standard_normal((5, 24))).astype(np.float32)
        for one in (program, row):
            runs.append((rows.make(one, isa, **rows.options(one, isa)[0]),
                         [numbers, numbers * numbers]))
        steps = (Operation("multiply", (Operand(input=0), Operand(input=0))),
                 Operation("subtract", (Operand(input=1), Operand(step=0))))
        sources = (Source("blocks", (0,), (0,)), Source("blocks", (1,), (0,)))
        work = Elementwise(Expression(steps, 2), sources, (shape, shape),
                           tuple(range(isa.lanes)), (3, 5))
        runs.append((elementwise.make(work, isa), [x, x * x]))
    for output in run_layers(runs, tmp_path, machine.toolchain):
        np.testing.assert_array_equal(output, np.zeros_like(output))


def test_views_are_what_numpy_makes():
    rng = np.random.default_rng(4)
    for _ in range(200):
        tensor = Tensor((2, 6, 4, 5))
        array = np.arange(240, dtype=np.float32).reshape(tensor.shape)
        view, want = whole(tensor), array
        for _ in range(5):
            kind = rng.integers(4)
            if kind == 0:
                order = rng.permutation(want.ndim).tolist()
                view, want = view.transpose(order), want.transpose(order)
            elif kind == 1:
                shapes = [(want.size,), (2, want.size // 2), (want.shape[0], -1),
                          (*want.shape[:-1], 1, want.shape[-1])]
                shape = shapes[rng.integers(4)]
                if want.size == 0 or -1 not in shape and np.prod(shape) != want.size:
                    continue
                moved = want.reshape(shape)
                seen = view.reshape(moved.shape)
                if seen is not None:
                    view, want = seen, moved
            elif kind == 2:
                axis = int(rng.integers(want.ndim))
                begin = int(rng.integers(want.shape[axis]))
                step = int(rng.integers(1, 3))
                count = int(rng.integers(1, (want.shape[axis] - begin - 1) // step + 2))
                seen = view.cut(axis, begin, count, step)
                if seen is not None:
                    at = [slice(None)] * want.ndim
                    at[axis] = slice(begin, begin + (count - 1) * step + 1, step)
                    view, want = seen, want[tuple(at)]
        assert view.shape == want.shape
        np.testing.assert_array_equal(numbers_of(view, {tensor: array}), want)


def test_views_through_views_are_what_numpy_makes():
    rng = np.random.default_rng(5)
    seen = 0
    for _ in range(100):
        shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4, 6, 8], 4))
        inner = draw_view(rng, shape)
        middle = Tensor(shape)
        outer = whole(middle)
        for _ in range(2):
            sizes = [(shape[0] * shape[1], *shape[2:]), (*shape[:3], 2, -1), shape]
            size = np.zeros(outer.shape)
            try:
                outer = outer.reshape(size.reshape(sizes[rng.integers(3)]).shape) or outer
            except ValueError:
                continue
            outer = outer.transpose(rng.permutation(len(outer.axes)).tolist())
        composed = inner.seen_through(outer)
        if composed is None:
            continue
        seen += 1
        arrays = {inner.tensor: rng.standard_normal(inner.tensor.shape)}
        want = numbers_of(outer, {middle: numbers_of(inner, arrays)})
        np.testing.assert_array_equal(numbers_of(composed, arrays), want)
    assert seen > 60
    cut = whole(Tensor((4, 6))).cut(1, 1, 5)
    assert whole(Tensor((4, 6))).seen_through(cut) is None
    assert whole(Tensor((4, 6))).seen_through(whole(Tensor((4, 1))).broadcast((4, 6))) is None


def test_an_order_of_reading_becomes_that_of_computing():
    """Sums with a picture in blocks, stored as channels after channels and brought back."""
    blocks, other, made = Tensor((4, 5, 7, 8)), Tensor((32, 1, 1)), Tensor((32, 5, 7))
    channels = whole(blocks).transpose([0, 3, 1, 2]).reshape(made.shape)
    assert channels is not None
    first = Program(made.shape, [])
    first.add("add", first.add_input(channels), first.add_input(whole(other).broadcast(made.shape)))
    back = whole(made).reshape((4, 8, 5, 7))
    assert back is not None
    second = copy_of(back.transpose([0, 2, 3, 1]))
    joined = second.taking_in(first, made)
    assert joined is not None and joined.inputs[0].is_whole
    rng = np.random.default_rng(6)
    arrays = {t: rng.standard_normal(t.shape) for t in (blocks, other)}
    want = evaluate(second, {made: evaluate(first, arrays)})
    np.testing.assert_array_equal(evaluate(joined, arrays), want)


def test_what_gives_every_place_the_number_of_its_row_stays_apart():
    """Together they would give one number a row, as of x / norm(x).expand_as(x)."""
    made = Tensor((6, 1))
    lengths = Program((6, 16), [])
    lengths.add("sum", lengths.add_input(whole(Tensor((6, 16)))))
    spread = copy_of(whole(made).broadcast((6, 16)))
    assert lengths.gives_rows and spread.taking_in(lengths, made) is None
    divided = Program((6, 16), [])
    divided.add("divide", divided.add_input(whole(Tensor((6, 16)))),
                divided.add_input(whole(made).broadcast((6, 16))))
    joined = divided.taking_in(lengths, made)
    assert joined is not None and not joined.gives_rows


def test_rows_that_are_only_summed_up_are_read_as_they_lie(tmp_path):
    """Pictures in blocks of eight, whose channels are groups of two blocks."""
    blocks = Tensor((4, 5, 7, 8))
    groups = whole(blocks).transpose([0, 3, 1, 2]).reshape((2, 16 * 5 * 7))
    assert groups is not None
    program = Program(groups.shape, [])
    x = program.add_input(groups)
    program.add("multiply", program.add("sum", x),
                program.add("max", program.add("multiply", x, x)))
    layer = rows.make(program, AVX2, 2)
    # In vectors, not one by one.
    assert "v_[lane]" not in str(layer.defines)
    numbers = np.random.default_rng(3).standard_normal(blocks.shape).astype(np.float32)
    (output,) = run_layers([(layer, [numbers])], tmp_path)
    np.testing.assert_allclose(output, evaluate(program, {blocks: numbers}), rtol=1e-4, atol=1e-3)
