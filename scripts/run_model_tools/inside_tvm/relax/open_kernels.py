"""Our kernels for tensors whose extents are open: which calls become which functions.

Operators on numbers and rows become programs (open_groups.py), or part of the product or
convolution before them.  Products with weights run a kernel for one block of rows after the other;
other products, convolutions and programs run code that learns the extents when it runs
(kernels/c/f32-open-*.c.in).
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from run_model_tools.inside_tvm import called_operator
from run_model_tools.inside_tvm.own_kernels import Unusable
from run_model_tools.inside_tvm.relax.open_groups import (
    MOST_AXES,
    Bindings,
    find_groups,
    is_one,
    program_of,
    same_extents,
)
from run_model_tools.inside_tvm.relax.open_moves import (
    is_transpose,
    joined,
    permutation,
    product_before,
    turned,
    unread_moves,
)
from run_model_tools.inside_tvm.relax.open_operators import extents_of, is_float32
from run_model_tools.inside_tvm.relax.own_kernels import wanted_isa
from run_model_tools.kernels.c_compiler import c_to_object, target_flags
from run_model_tools.kernels.relax.ffi_c import FAIL, RUNTIME, VALUES

_LEAST = 16
"""Depth and columns of products that are worth a kernel."""
_MOST_OPERANDS = 4
"""Tensors that are read while a product or convolution is stored."""
_OTHERS = ("but those of products, convolutions and operators on numbers and rows they are for "
           "networks of fixed shapes, and for batches of samples that are computed apart: ")
_ANY = "run_model_any_"
_PRODUCTS = ("relax.matmul", "relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv1d_transpose",
             "relax.nn.conv2d_transpose")
_POOLINGS = ("relax.nn.max_pool1d", "relax.nn.max_pool2d", "relax.nn.avg_pool1d",
             "relax.nn.avg_pool2d")


class _Epilogue:
    """What a group does to the result of a product or convolution."""

    def __init__(self, program, operands):
        self.program = program
        self.operands = operands


class OpenKernels:
    """Makes calls of kernels, and their code."""

    def __init__(self, target, request):
        self._names = {}
        """Of functions, by their kind and code without a name."""
        self._sources = {}
        self._notes = {}
        """Of functions, by name: C code, and what reports say."""
        self._layers = []
        """That functions call."""
        self.reason = ""
        self._isa = None
        try:
            self._isa = wanted_isa(request, target)
            self.reason = "" if self._isa else "there are none for this target"
        except Unusable as error:
            self.reason = str(error)

    def rewritten(self, module):
        """`module` with calls of our code."""
        from tvm import relax
        from tvm.relax.expr_functor import PyExprMutator, mutator

        if self._isa is None:
            return module
        kernels = self

        @mutator
        class Calls(PyExprMutator):
            """What no group has taken, in branches and loops too."""

            def visit_call_(self, call):
                visited = self.builder_.normalize(self.visit_expr_post_order(call))
                made = kernels._call_of(visited, Bindings((), relax.Tuple([])))
                return visited if made is None else made

        made = type(module)(dict(module.functions.items()), attrs=module.attrs)
        for variable, function in module.functions.items():
            if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
                made[variable] = self._function(function)
        made = relax.transform.Normalize()(made)
        calls = Calls(made)
        for variable, function in made.functions.items():
            if isinstance(function, relax.Function):
                calls.builder_.update_func(variable, calls.visit_expr(function))
        return calls.builder_.get()

    def _function(self, function):
        from tvm import relax

        body = function.body
        bindings = Bindings(body.blocks, body.body)
        made, gone = {}, set()
        for root, group in find_groups(bindings).items():
            found = self._group(bindings, group)
            if found is not None:
                made[root], taken = found
                gone.update(taken)
        for index, binding in enumerate(bindings.all):
            call = getattr(binding, "value", None)
            if index in made or index in gone or not isinstance(call, relax.Call):
                continue
            before = product_before(bindings, call)
            if before is not None and bindings.at[before] not in gone:
                product = self._products(bindings, bindings.value_of(before), call)
                if product is not None:
                    made[index] = product
                    gone.add(bindings.at[before])
                    made.pop(bindings.at[before], None)
                    continue
            # Of transposes only those become copies that still are read when all else is known.
            own = None if is_transpose(call) else self._call_of(call, bindings)
            if own is not None:
                made[index] = own
        values = {b.var: made.get(i, getattr(b, "value", None))
                  for i, b in enumerate(bindings.all) if i not in gone}
        unread = unread_moves(bindings, values, body.body)
        number, blocks = 0, []
        for block in body.blocks:
            kept = []
            for binding in block.bindings:
                if number in made:
                    kept.append(relax.VarBinding(binding.var, made[number]))
                elif number not in gone and binding.var not in unread:
                    kept.append(binding)
                number += 1
            blocks.append(type(block)(kept))
        return relax.Function(function.params, relax.SeqExpr(blocks, body.body), function.ret_ty,
                              function.is_pure, function.attrs)

    def _group(self, bindings, group):
        """(call, numbers of other bindings that it replaces) of a group, None of one left to TVM.
        """
        root = bindings.all[group.root]
        others = set(group.members) - {group.root}
        if not group.reductions:
            read = {a for m in group.members for a in bindings.operators[m].arguments
                    if bindings.is_read_by(a, group.members)}
            for variable in sorted((v for v in read if v in bindings.at),
                                   key=lambda v: -bindings.at[v]):
                before = bindings.value_of(variable)
                if not same_extents(extents_of(variable) or [], group.extents):
                    continue
                operands = []
                found = program_of(bindings, group, operands, (variable, "product"))
                if found is None or len(operands) > _MOST_OPERANDS:
                    continue
                made = self._call_of(before, bindings, _Epilogue(found[0], operands), root.var)
                if made is not None:
                    return made, others | {bindings.at[variable]}
        made = self._program(bindings, group, root)
        return None if made is None else (made, others)

    def _program(self, bindings, group, root):
        """The call of a group by itself."""
        from run_model_tools.kernels.relax import open_rows

        inputs = []
        found = program_of(bindings, group, inputs)
        if found is None:
            return None
        program, columns = found
        gives_rows = not same_extents(extents_of(root.value), group.extents)
        is_row = program.reduces and program.is_row([not has for has in columns])[-1]
        widest = next((i for i, (one, has) in enumerate(zip(inputs, columns)) if has
                       and same_extents(extents_of(one), group.extents)), None)
        if gives_rows != is_row or not inputs or not program.has_few_passes or (
                gives_rows and widest is None):
            return None
        return self._call("program", lambda name: open_rows.source(
            name, program, columns, widest or 0, gives_rows, group.axes, self._isa), inputs,
            root.value.ty,
            {"kernel": "rows" if program.reduces else "elementwise"})

    def _call_of(self, call, bindings, epilogue=None, result=None):
        """The call of our code that computes a product or convolution, and what is done to it, or a
        copy; None where there is none.  `result` has the type of what comes of it."""
        name = called_operator(call)
        moved = joined(bindings, call) if epilogue is None else None
        if moved is not None:
            return self._call("join", lambda name: _source(
                "open-join.c.in", name, INPUTS=len(moved[0]), AXIS=moved[1]), moved[0], call.ty,
                {"kernel": "join"})
        if name == "relax.permute_dims":
            return self._transposed_copy(call) if epilogue is None else None
        if name == "relax.image.resize2d":
            return self._resized(call) if epilogue is None else None
        if name in _POOLINGS:
            return self._pooled(call, name) if epilogue is None else None
        if name not in _PRODUCTS or not all(map(is_float32, (call, *call.args))):
            return None
        left, right = call.args
        weights, kind = bindings.array_of(right), (call if result is None else result).ty
        if name.endswith("_transpose"):
            return None if weights is None or epilogue else self._transposed(
                call, left, weights)
        if name != "relax.matmul":
            return None if weights is None else self._convolution(
                call, left, weights, epilogue, kind)
        of_weights = None if weights is None else self._product(
            left, weights, bindings, epilogue, kind)
        if of_weights is not None or epilogue is not None:
            return of_weights
        return self._products(bindings, call)

    def _products(self, bindings, call, transpose=None):
        """A call of our product of any two tensors, and the transpose that follows."""
        from run_model_tools.kernels.tiles import open_products_tile

        if not is_float32(call) or not all(map(is_float32, call.args)):
            return None
        (left, of_left), (right, of_right) = (turned(bindings, one) for one in call.args)
        order = permutation(transpose) if transpose is not None else list(range(call.ty.ndim))
        ranks = len(of_left), len(of_right), len(order)
        if min(ranks) < 2 or max(ranks) > MOST_AXES:
            return None
        rows, vectors = open_products_tile(self._isa)
        return self._call("products", lambda name: _source(
            "f32-open-products.c.in", name, **self._isa.defines(), LEFT_AXES=of_left,
            RIGHT_AXES=of_right, OUT_AXES=order, TILE_ROWS=rows, TILE_VECTORS=vectors),
            [left, right], (call if transpose is None else transpose).ty, {"kernel": "products"})

    def _product(self, rows, weights, bindings, epilogue, kind):
        """Of rows, whose last axis is the depth, with an array (depth, columns)."""
        from run_model_tools.kernels.relax import open_blocks

        if weights.ndim != 2 or min(weights.shape) < _LEAST:
            return None
        columns, operands = weights.shape[1], []
        for operand in epilogue.operands if epilogue else ():
            array = bindings.array_of(operand)
            if array is not None and array.size == columns == array.shape[-1]:
                operands.append(array.reshape(columns))
            elif same_extents(extents_of(operand), kind.shape.values):
                operands.append(None)
            else:
                return None
        layers = open_blocks.layers_of(weights, self._isa, epilogue and epilogue.program,
                                       tuple(operands))
        if not layers:
            return None
        inputs = [rows, *(e for e, array in zip(epilogue.operands if epilogue else (), operands)
                          if array is None)]
        return self._call("rows", lambda name: open_blocks.source(name, layers),
                          inputs + [_constant(array) for array in layers[0].constants], kind,
                          dict(layers[0].note, rows="any"), layers)

    def _convolution(self, call, picture, weights, epilogue, kind):
        from run_model_tools.kernels.relax import open_convolution

        attrs, axes = call.attrs, picture.ty.ndim - 2
        layouts = ("NCW", "OIW") if axes == 1 else ("NCHW", "OIHW")
        if axes not in (1, 2) or (str(attrs.data_layout), str(attrs.kernel_layout)) != layouts:
            return None
        if weights.size == weights.shape[0] * weights.shape[1] and any(map(int, attrs.padding)):
            return None
        operands = epilogue.operands if epilogue else []
        is_full = tuple(same_extents(extents_of(one), kind.shape.values) for one in operands)
        for operand, full in zip(operands, is_full):
            if not full and not all(map(is_one, extents_of(operand)[max(
                    0, len(extents_of(operand)) - axes):])):
                return None
        conv = open_convolution.OpenConvolution(
            _as_picture(weights), _of_axes(attrs.strides, axes, 1),
            _of_axes(attrs.padding, axes, 0), _of_axes(attrs.dilation, axes, 1), int(attrs.groups),
            epilogue.program if epilogue else open_convolution.just_the_product(), is_full)
        return self._convolved(conv, picture, operands, kind)

    def _convolved(self, conv, picture, operands, kind):
        from run_model_tools.kernels.relax import open_convolution

        packed = open_convolution.packed_weights(conv, self._isa)
        kernel = open_convolution.kernel(conv)
        return self._call(
            kernel, lambda name: open_convolution.source(name, conv, self._isa),
            [picture, _constant(packed), _constant(conv.numbers()), *operands], kind,
            {"kernel": kernel, "tile": list(open_convolution.tile(conv, self._isa))})

    def _transposed(self, call, picture, weights):
        """A convolution that makes all numbers of a cell as channels, put where they belong."""
        from tvm import relax

        from run_model_tools.kernels.relax.open_convolution import OpenConvolution
        from run_model_tools.kernels.relax.open_pictures import of_cells

        attrs, axes = call.attrs, picture.ty.ndim - 2
        layouts = ("NCW", "IOW") if axes == 1 else ("NCHW", "IOHW")
        if (axes not in (1, 2) or (str(attrs.data_layout), str(attrs.kernel_layout)) != layouts
                or any(int(n) != 1 for n in attrs.dilation)):
            return None
        strides, before = _of_axes(attrs.strides, axes, 1), _of_axes(attrs.padding, axes, 0)
        cells = of_cells(_as_picture(weights), strides, int(attrs.groups))
        conv = OpenConvolution(cells, (1, 1), tuple(n - 1 for n in cells.shape[2:]), (1, 1),
                               int(attrs.groups))
        batch, channels, *sides = extents_of(call)
        sides = [(side + (cut + stride - 1)) // stride for side, cut, stride in zip(
            sides, before[-axes:], strides[-axes:])]
        made = self._convolved(conv, picture, [], relax.TensorType(
            [batch, channels * (strides[0] * strides[1]), *sides], "float32"))
        return self._call("interleave", lambda name: _source(
            "f32-open-interleave.c.in", name, DOWN=strides[0], ACROSS=strides[1], TOP=before[0],
            LEFT=before[1]), [made], call.ty, {"kernel": "interleave"})

    def _transposed_copy(self, call):
        axes = call.ty.ndim
        if not 0 < axes <= MOST_AXES or extents_of(call) is None:
            return None
        return self._call("transpose", lambda name: _source(
            "open-transpose.c.in", name, **self._isa.defines(), AXES=axes,
            ORDER=permutation(call)), [call.args[0]], call.ty, {"kernel": "transpose"})

    def _resized(self, call):
        from run_model_tools.kernels.relax.open_pictures import resizing

        attrs = call.attrs
        found = resizing(str(attrs.method), str(attrs.coordinate_transformation_mode),
                         str(attrs.rounding_method))
        if found is None or str(attrs.layout) != "NCHW" or not all(
                map(is_float32, (call, call.args[0]))):
            return None
        return self._call("resize", lambda name: _source(
            "f32-open-resize.c.in", name, **self._isa.defines(), **found), [call.args[0]], call.ty,
            {"kernel": "resize"})

    def _pooled(self, call, name):
        from run_model_tools.kernels.relax.open_pictures import Pooling, pooling_source

        attrs, axes = call.attrs, call.ty.ndim - 2
        is_max, counts_pads = "max" in name, bool(attrs.count_include_pad)
        # Of means it is open what beyond the last whole window counts.
        if (str(attrs.layout) != ("NCW" if axes == 1 else "NCHW")
                or any(int(n) != 1 for n in attrs.dilation)
                or not is_max and counts_pads and bool(attrs.ceil_mode)
                or not all(map(is_float32, (call, call.args[0])))):
            return None
        pooling = Pooling(is_max, _of_axes(attrs.pool_size, axes, 1),
                          _of_axes(attrs.strides, axes, 1), _of_axes(attrs.padding, axes, 0),
                          not is_max and counts_pads)
        if any(before >= taps for before, taps in zip(pooling.before, pooling.window)):
            return None
        return self._call("pool", lambda name: pooling_source(name, pooling, self._isa),
                          [call.args[0]], call.ty, {"kernel": "pool"})

    def _call(self, kind, source, arguments, result, note, layers=()):
        """A call of the function with this code, which is made once."""
        from tvm import relax

        key = kind, source("")
        if key not in self._names:
            name = "%s%s_%d" % (_ANY, kind, sum(known == kind for known, _ in self._names))
            self._names[key] = name
            self._sources[name] = source(name)
            self._notes[name] = dict(note, extents="any")
            self._layers += layers
        return relax.op.call_dps_packed(self._names[key], relax.Tuple(arguments), result)

    def add_to(self, code, target, folder, also=""):
        """Writes object files of the functions, and one of `also`, C text that follows ffi_c's,
        into `folder` and adds them to `code`."""
        flags, of_isa = target_flags(dict(target.attrs)), self._isa.flags if self._isa else ()
        sources = [*self._sources.values(), *([also] if also else [])]

        def compiled(numbered):
            path = folder / ("any_extents%d.o" % numbered[0])
            c_to_object(VALUES + FAIL + RUNTIME + numbered[1], flags, path, of_isa)
            return str(path)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            code.objects += pool.map(compiled, enumerate(sources))
        code.kernels += self._layers

    def report(self, module, why):
        """metadata.json's "kernels"; `why` the network is none for the other kernels."""
        why = _OTHERS + why
        if not self._sources:
            return {"method": "stock", "reason": self.reason or why}
        from collections import Counter

        left, ours = Counter(), 0
        for block in module["main"].body.blocks:
            for binding in block.bindings:
                name = called_operator(binding.value).removeprefix("relax.")
                if name == "call_dps_packed":
                    called = str(binding.value.args[0].global_symbol)
                    ours += called.startswith(_ANY)
                elif name:
                    left[name] += 1
        return {"method": "ours", "instruction_set": self._isa.name, "lanes": self._isa.lanes,
                "layers": ours, "left_to_tvm": dict(sorted(left.items())), "left_because": {},
                "layout_changes": 0, "reason": why, "functions": self._notes}


def _of_axes(numbers, axes, fill):
    """What is said of the first axes of pictures; those with one have a row."""
    return (*[fill] * (2 - axes), *(int(n) for n in numbers[:axes]))


def _as_picture(weights):
    return weights.reshape(*weights.shape[:2], *[1] * (4 - weights.ndim), *weights.shape[2:])


def _source(template, name, **defines):
    from run_model_tools.kernels.layer import c_defines

    return c_defines(dict(defines, FUNCTION="__tvm_ffi_" + name)) + '#include "%s"\n' % template


def _constant(array):
    from tvm import relax

    return relax.const(np.ascontiguousarray(array), str(array.dtype))


def rewritten(module, target, request, folder, code):
    """`module`, which was read as it is, with calls of our code, and metadata.json's "kernels"; the
    code is added to `code`.  Raises Unusable where there is nothing for it."""
    kernels = OpenKernels(target, request)
    made = kernels.rewritten(module)
    report = kernels.report(made, request["unrepaired"])
    if report["method"] == "stock":
        raise Unusable(report["reason"])
    kernels.add_to(code, target, folder)
    return made, report
