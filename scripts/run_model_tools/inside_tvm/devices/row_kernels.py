"""What networks of matrices are made of, as computations and schedules of TVM, so that all kinds of
GPU have them of one source: programs (kernels/programs/program.py), and products with what is done
to their result (kernels/products/matmul.py).  They read their operands where these lie, in whatever
order.
"""

from run_model_tools.inside_tvm.bounded_code import implementation_of
from run_model_tools.inside_tvm.devices import along_rows, patches, products
from run_model_tools.inside_tvm.devices.row_values import Loads, flat, value
from run_model_tools.kernels.programs.rows import domain, of_view
from run_model_tools.kernels.views import View

_FEW_ROWS, _DEEP = 4, 64
"""Of a product: fewer rows are summed up by a group for each number, where the numbers of a column
of the right factor lie side by side and are as many as the group's threads."""


def of_program(tvm, program, sources, shape, order=None):
    """How TVM computes a program, of the tensors and constants of `sources`; the result is of a
    shape of as many numbers as rows.output_shape() has.  order: a view of the result of a program
    along rows, each number once, in whose order it is stored."""
    te = tvm.te

    def compute(attrs, inputs, out_type):
        if program.reduces:
            return [te.extern(shape, list(inputs), lambda ins, outs: along_rows.kernel(
                tvm, program, Loads(tvm, sources, ins), outs[0], order), dtype="float32",
                name="rows")]
        load = Loads(tvm, sources, inputs)
        factors, _ = domain(program)
        return [te.compute(shape, lambda *at: value(tvm, program, lambda view: load(
            program.inputs[view], [(flat(at, shape), of_view(factors, view))])),
            name="elementwise")]

    def schedule(attrs, outs, target):
        made = te.create_schedule([out.op for out in outs])
        if not program.reduces:
            products.bind_each(te, made[outs[0]])
        return made

    return implementation_of(compute, schedule, "run_model.program")


def shape_of_product(product, wanted):
    """The shape of the result: (batch, rows, columns), or (rows, columns) where that is wanted and
    there is one batch."""
    batch, *plain = product.shape
    return tuple(plain) if batch == 1 and tuple(wanted) == tuple(plain) else product.shape


def of_product(tvm, product, sources, shape):
    """The implementation of a product, whose result is of shape_of_product().  Weights are the
    first of the constants, by columns where has_few_rows()."""
    te = tvm.te

    def compute(attrs, inputs, out_type):
        load = Loads(tvm, sources, inputs)
        _, rows, columns = product.shape
        batches = shape[:-2]
        left = te.compute((*batches, rows, product.depth), lambda *at: load(
            product.left, zip(at, product.left.axes[-len(at):])), name="left")
        if has_weights(product):
            right = te.compute((*batches, product.depth, columns), lambda *at: load.number(
                len(sources.inputs), at[-1] * product.depth + at[-2] if has_few_rows(product)
                else at[-2] * columns + at[-1]), name="right")
        else:
            view = product.right
            with te.tag_scope(tag=_order(view)):
                right = te.compute((*batches, product.depth, columns), lambda *at: load(
                    view, zip(at, view.axes[-len(at):])), name="right")
        depth = te.reduce_axis((0, product.depth), "depth")
        total = te.compute(shape, lambda *at: te.sum(
            left(*at[:-1], depth) * right(*at[:-2], depth, at[-1]), axis=depth), name="product")
        if product.epilogue is None and product.scale == 1:
            return [total]

        def finished(*at):
            scaled = total(*at)
            if product.scale != 1:
                scaled = scaled * tvm.tir.const(product.scale, "float32")
            if product.epilogue is None:
                return scaled
            place = (at[0] * rows + at[1] if batches else at[0], at[-1])
            views = product.epilogue.inputs
            return value(tvm, product.epilogue, lambda view: load(
                views[view], zip(place, views[view].axes)), scaled)

        return [te.compute(shape, finished, name="finished")]

    def schedule(attrs, outs, target):
        found = products.sum_of(te, outs[0].op)
        if found is None:
            raise ValueError("no tiles for this product")
        return products.sum_by_groups(te, outs[0], found[0])

    by_columns = has_few_rows(product) and (has_weights(product) or _order(product.right))
    return implementation_of(compute, schedule,
                             "run_model.product_of_few" if by_columns else products.VIEWS)


def has_weights(product):
    """Whether the right factor is an array."""
    return not isinstance(product.right, View)


def has_few_rows(product):
    """Whether a product is of so few rows that its weights lie by columns."""
    return product.shape[1] < _FEW_ROWS and product.depth >= _DEEP


def _order(view):
    """The tag of a right factor whose numbers lie side by side down its columns, which is the order
    to load them in."""
    _, depth, columns = ([stride for count, stride in axis if count > 1] for axis in view.axes)
    return patches.ALONG_KERNELS if depth[-1:] == [1] and columns[-1:] != [1] else ""
