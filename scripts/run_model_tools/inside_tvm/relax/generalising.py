"""The same network read at several sizes -> one Relax function of any size.

What differs between the readings are numbers: extents in shapes, bounds of slices.  Each becomes an
expression of the inputs' extents (extents.py), and TVM's own inference finds the other extents
anew.  Whatever else differs refuses the network, so that nothing that is computed otherwise at
another size goes unseen; extents that agree at all sizes read, but are not the same expression, are
compared when the network runs.
"""

import numpy as np

from run_model_tools.inside_tvm import called_operator
from run_model_tools.inside_tvm.relax import same_extents
from run_model_tools.inside_tvm.relax.extents import Extents, NoExpression
from run_model_tools.onnx_repair.open_extents import COUNTING

_MOST_NUMBERS = 64
"""In a constant that is made of extents."""

_TOPS = (1, 2)
"""What is divided by extents."""


class Differs(Exception):
    """Why the readings are not one network of any size."""


def generalise(tvm, readings, inputs, samples, hidden, guards, totals):
    """A module whose main function takes any sizes.  Raises Differs.

    readings: modules, one for each of `samples`, which have the symbols' sizes by name.  inputs:
    for each input the name of the symbol or the number that an extent is.  hidden: arrays that
    stand behind inputs, for each reading.  guards: by an input's place, the name of a function
    (input, others, [the same]) that looks at it first, and the others' places.  totals: for symbols
    that are sums of others, which is seen to by guards, (these, the number beside them).
    """
    return _Generaliser(tvm, readings, inputs, samples, hidden, guards, totals).module()


class _Generaliser:
    def __init__(self, tvm, readings, inputs, samples, hidden, guards, totals):
        names = dict.fromkeys(e for shape in inputs for e in shape if isinstance(e, str))
        self._tvm = tvm
        self._symbols = {name: tvm.tirx.Var(name, "int64") for name in names}
        self._totals = {name: sum((self._symbols[part] for part in parts), start=more)
                        for name, (parts, more) in totals.items()}
        self._extents = Extents(tvm, {**self._symbols, **self._totals}, samples)
        self._inputs = inputs
        self._hidden = hidden
        self._guards = guards
        self._readings = readings
        self._mains = [reading["main"] for reading in readings]
        self._values = {}
        self._later = {}
        """By the number of a value that is made where it is first read, since it may follow from
        extents that are known there: what makes it."""
        self._places = [{} for _ in readings]
        """Of each reading's variables, the number that its counterparts have, too."""

    def module(self):
        from tvm import relax

        self._check_other_functions()
        builder = relax.BlockBuilder()
        parameters = [self._parameter(relax, *one)
                      for one in zip(self._mains[0].params, self._inputs)]
        with builder.function("main", parameters):
            with builder.dataflow():
                self._take_inputs(relax, builder, parameters)
                for bindings in self._bindings():
                    self._bind(relax, builder, bindings)
                result = builder.emit_output(self._expression(
                    relax, [main.body.body for main in self._mains], ()))
            builder.emit_func_output(result)
        made = builder.get()
        for variable, function in self._readings[0].functions.items():
            if variable.name_hint != "main":
                made[variable] = function
        return made

    def _parameter(self, relax, read, shape):
        shape = [self._symbols[e] if isinstance(e, str) else e for e in shape]
        return relax.Var(str(read.name), relax.TensorType(shape, read.ty.dtype))

    def _take_inputs(self, relax, builder, known):
        for index, together in enumerate(self._lists([main.params for main in self._mains])):
            name = str(together[0].name)
            if index < len(known):
                made = known[index]
                if index in self._guards:
                    guard, others = self._guards[index]
                    shape = [self._totals.get(e, self._symbols.get(e, e))
                             for e in self._inputs[index]]
                    made = builder.emit(relax.op.call_dps_packed(
                        guard, relax.Tuple([made, *(known[other] for other in others)]),
                        relax.TensorType(shape, made.ty.dtype)))
            elif name.startswith(COUNTING):
                counts = [p.ty.shape.values[0] for p in together]
                self._later[index] = lambda near, counts=counts: builder.emit(
                    relax.op.arange(0, self._number(counts, near), 1, "int64"))
                made = None
            else:
                arrays = [hidden[str(p.name)] for hidden, p in zip(self._hidden, together)]
                self._later[index] = lambda _, arrays=arrays: self._constant(relax, arrays)
                made = None
            self._remember(together, made)

    def _bindings(self):
        """Together in all readings.  What is made of hidden numbers alone comes where it is first
        read, when the extents are known that it may follow from."""
        from tvm.relax.analysis import free_vars

        blocks = [[b for block in main.body.blocks for b in block.bindings]
                  for main in self._mains]
        main, waiting = self._mains[0], {}
        of_data = set(main.params[:len(self._inputs)])

        def read_by(variables):
            for variable in variables:
                bindings, more = waiting.pop(variable, (None, ()))
                yield from read_by(more)
                if bindings is not None:
                    yield bindings

        for bindings in self._lists(blocks):
            read = free_vars(bindings[0].value)
            if of_data.isdisjoint(read):
                waiting[bindings[0].var] = bindings, read
                continue
            of_data.add(bindings[0].var)
            yield from read_by(read)
            yield bindings
        yield from read_by(free_vars(main.body.body))

    def _bind(self, relax, builder, bindings):
        variables = [b.var for b in bindings]
        near = self._near(bindings[0].value)
        made = self._expression(relax, [b.value for b in bindings], near)
        if isinstance(made, self._tvm.ir.GenericConst):
            self._remember(variables, made)
            return
        made = builder.emit(made)
        kind = self._kind(relax, [v.ty for v in variables], made.ty, near, made)
        if kind is not None:
            made = builder.emit(same_extents.of(made, kind))
        self._remember(variables, made)

    def _remember(self, variables, made):
        number = len(self._values)
        self._values[number] = made
        for places, variable in zip(self._places, variables):
            places[variable] = number

    def _near(self, expr):
        """The extents of what an expression is made of."""
        found = []
        for argument in getattr(expr, "args", ()):
            for one in getattr(argument, "fields", None) or (argument,):
                made = self._values.get(self._places[0].get(one)) if hasattr(
                    one, "ty") and one in self._places[0] else None
                shape = getattr(getattr(made, "ty", None), "shape", None)
                found += list(getattr(shape, "values", None) or ())
        return found

    def _kind(self, relax, kinds, inferred, near, made):
        """The type that a result is to be brought to, None if it has it.  Raises Differs."""
        if isinstance(inferred, relax.TupleType):
            for index, part in enumerate(inferred.fields):
                if self._kind(relax, [k.fields[index] for k in kinds], part, near, made):
                    raise Differs("the extents of a tuple are not seen to follow from its parts'")
            return None
        if not isinstance(inferred, (relax.TensorType, relax.ShapeType)):
            return None

        def extents(kind):
            shape = kind.shape if isinstance(kind, relax.TensorType) else kind
            return getattr(shape, "values", None)
        wanted = list(zip(*(extents(kind) for kind in kinds)))
        if isinstance(inferred, relax.TensorType) and {k.dtype for k in kinds} != {inferred.dtype}:
            raise Differs("a type differs")
        have = extents(inferred)
        if have is None or len(have) != len(wanted):
            shape = [self._number(numbers, near) for numbers in wanted]
        else:
            for numbers, expr in zip(wanted, have):
                if self._extents.numbers(expr) != tuple(int(n) for n in numbers):
                    raise Differs("TVM finds the extent %s where one of %s is expected" % (
                        expr, ", ".join(str(n) for n in numbers)))
            shape = [self._extents.canonical(expr) for expr in have]
            if all(_same(a, b) for a, b in zip(shape, have)):
                return None
        if isinstance(inferred, relax.ShapeType):
            return None
        return relax.TensorType(shape, inferred.dtype)

    def _number(self, numbers, near):
        try:
            return self._extents.expression([int(n) for n in numbers], near)
        except NoExpression as error:
            raise Differs(str(error)) from error

    def _expression(self, relax, exprs, near):
        first = exprs[0]
        if len({type(e) for e in exprs}) > 1:
            raise Differs("it has other operators at some sizes than at others")
        if isinstance(first, relax.Var):
            places = {places.get(e) for places, e in zip(self._places, exprs)}
            if len(places) > 1 or None in places:
                raise Differs("its operators read other tensors at some sizes than at others")
            place = places.pop()
            if place in self._later:
                self._values[place] = self._later.pop(place)(near)
            return self._values[place]
        if isinstance(first, self._tvm.ir.GenericConst):
            return self._constant(relax, [e.value.numpy() for e in exprs])
        if isinstance(first, relax.Tuple):
            return relax.Tuple(self._list(relax, [e.fields for e in exprs], near))
        if isinstance(first, relax.TupleGetItem):
            if len({int(e.index) for e in exprs}) > 1:
                raise Differs("other parts of a tuple are read")
            return relax.TupleGetItem(
                self._expression(relax, [e.tuple_value for e in exprs], near), int(first.index))
        if isinstance(first, relax.ShapeExpr):
            return relax.ShapeExpr([self._number(n, near)
                                    for n in self._lists([e.values for e in exprs])])
        if type(first).__name__ == "IntImm":
            return self._number(exprs, near)
        if isinstance(first, relax.Call):
            return self._call(relax, exprs, near)
        if not all(_same(first, e) for e in exprs[1:]):
            raise Differs("a %s differs" % type(first).__name__)
        return first

    def _lists(self, lists):
        if len({len(one) for one in lists}) > 1:
            raise Differs("it has more operators at some sizes than at others")
        return zip(*lists)

    def _list(self, relax, lists, near):
        return [self._expression(relax, list(together), near) for together in self._lists(lists)]

    def _call(self, relax, calls, near):
        first = calls[0]
        if not all(_same(first.op, c.op) if not isinstance(first.op, self._tvm.ir.GlobalVar)
                   else str(first.op.name_hint) == str(c.op.name_hint) for c in calls):
            raise Differs("it has other operators at some sizes than at others")
        arguments = self._list(relax, [c.args for c in calls], near)
        if not all(_same(first.attrs, c.attrs) for c in calls[1:]):
            name = str(first.op.name)
            if name == "relax.nn.pad":
                return self._pad(relax, calls, arguments)
            raise Differs("the operator %s has other attributes at some sizes than at others"
                          % name.removeprefix("relax."))
        turned = self._turned(relax, first, arguments)
        if turned is not None:
            return turned
        kinds = [self._made_type(relax, kinds, near)
                 for kinds in self._lists([c.ty_args for c in calls])]
        return relax.Call(first.op, arguments, first.attrs, kinds)

    def _turned(self, relax, call, arguments):
        """Weights that are transposed; None of anything else."""
        if called_operator(call) != "relax.permute_dims" or not isinstance(
                arguments[0], self._tvm.ir.GenericConst):
            return None
        array, axes = arguments[0].value.numpy(), call.attrs.axes
        turned = array.transpose(None if axes is None else [int(a) for a in axes])
        return relax.const(np.ascontiguousarray(turned), str(turned.dtype))

    def _made_type(self, relax, kinds, near):
        first = kinds[0]
        if isinstance(first, relax.TensorType):
            return relax.TensorType(
                [self._number(n, near) for n in self._lists([k.shape.values for k in kinds])],
                first.dtype)
        if isinstance(first, relax.TupleType):
            return relax.TupleType([self._made_type(relax, fields, near)
                                    for fields in self._lists([k.fields for k in kinds])])
        raise Differs("it calls something that is no tensor")

    def _pad(self, relax, calls, arguments):
        """A padding to an extent that is known: the half, or all of what is missing there."""
        from tvm import topi

        widths = list(zip(*([int(w) for w in c.attrs.pad_width] for c in calls)))
        first = calls[0].attrs
        before, after = [], []
        for axis, extent in enumerate(arguments[0].ty.shape.values):
            left, right = widths[2 * axis], widths[2 * axis + 1]
            inner = self._extents.numbers(extent)
            missing = self._number([a + b + c for a, b, c in zip(left, right, inner)],
                                   ()) - extent
            choices = [missing * 0, missing // 2, (missing + 1) // 2, missing]
            if len(set(left)) == 1:
                choices.insert(0, self._extents.constant(left[0]))
            found = next((c for c in choices if self._extents.numbers(c) == left), None)
            if found is None:
                raise Differs("a padding's width is not seen to follow from the sizes")
            before.append(found)
            after.append(missing - found)
            self._extents.remember_widths(found)
        mode = str(first.pad_mode)
        padded, value = {"reflect": (topi.nn.reflect_pad, ()),
                         "replicate": (topi.nn.replicate_pad, ())}.get(
                             mode, (topi.nn.pad, (float(first.pad_value),)))
        return relax.BlockBuilder.current().call_te(padded, arguments[0], before, after, *value)

    def _constant(self, relax, arrays):
        first = arrays[0]
        if all(a.shape == first.shape and a.dtype == first.dtype
               and np.array_equal(a, first, equal_nan=a.dtype.kind == "f") for a in arrays):
            return relax.const(first, str(first.dtype))
        if len({(a.shape, str(a.dtype)) for a in arrays}) > 1:
            return self._filled(relax, arrays)
        parts = _whole_parts(arrays) if first.size <= _MOST_NUMBERS else None
        if parts is None:
            raise Differs("a constant has other values at some sizes than at others")
        top, whole, below = parts
        numbers = [self._number(n, ()) for n in zip(*(a.ravel() for a in whole))]
        made = relax.op.shape_to_tensor(relax.ShapeExpr(numbers))
        made = relax.op.astype(relax.op.reshape(made, first.shape), str(first.dtype))
        if top:
            made = relax.op.divide(relax.const(top, str(first.dtype)), made)
        return made if below == 1 else relax.op.divide(made, relax.const(below, str(first.dtype)))

    def _filled(self, relax, arrays):
        first = arrays[0]
        values = {a.ravel()[0].item() if a.size else None for a in arrays}
        if len({(a.ndim, str(a.dtype)) for a in arrays}) > 1 or len(values) > 1 or not all(
                (a == a.ravel()[0]).all() for a in arrays if a.size):
            raise Differs("a constant has another shape and other values at some sizes")
        shape = [self._number(n, ()) for n in zip(*(a.shape for a in arrays))]
        return relax.op.full(relax.ShapeExpr(shape), relax.const(
            first.ravel()[0], str(first.dtype)), str(first.dtype))

    def _check_other_functions(self):
        others = [{v.name_hint: f for v, f in reading.functions.items() if v.name_hint != "main"}
                  for reading in self._readings]
        for name, function in others[0].items():
            if not all(name in other and _same(function, other[name]) for other in others[1:]):
                raise Differs("a loop that TVM's importer makes (%s) has fixed extents" % name)


def _whole_parts(arrays):
    """(top, whole numbers for each array, below) such that the arrays are these numbers / below, or
    top / these numbers: halves of extents, and what a place is multiplied by for its share of one.
    None if they are neither."""
    kind = arrays[0].dtype
    if all(np.array_equal(a, np.round(a)) for a in arrays):
        return 0, arrays, 1
    if kind.kind != "f" or not all(np.isfinite(a).all() for a in arrays):
        return None
    if all(np.array_equal(2 * a, np.round(2 * a)) for a in arrays):
        return 0, [2 * a for a in arrays], 2
    for top in _TOPS:
        if all(a.all() for a in arrays):
            whole = [np.round(top / a.astype(np.float64)) for a in arrays]
            if all((abs(w) < 2 ** 24).all() and w.all() and np.array_equal(
                    kind.type(top) / w.astype(kind), a) for w, a in zip(whole, arrays)):
                return top, whole, 1
    return None


def _same(a, b):
    import tvm_ffi

    if a is None or b is None:
        return a is b
    return tvm_ffi.structural_equal(a, b)
