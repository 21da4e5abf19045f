"""Parts of a tensor that many operators take one each, cut out where they are used.

What is fused with a part of a split takes all parts, of which it reads one: each step of an
unrolled recurrent layer gets a kernel of its own with as many arguments as there are steps, and
code on the host that checks them all.
"""

_MOST_PARTS = 8
"""Gates of a recurrent layer, heads or branches are fewer, and are used together."""


def with_slices(tvm, module):
    """The module with single parts of a split into many as slices of what is split."""
    from tvm import relay

    module = relay.transform.InferType()(module)

    class Slices(relay.ExprMutator):
        def visit_tuple_getitem(self, item):
            split = item.tuple_value
            if getattr(getattr(split, "op", None), "name", "") != "split":
                return super().visit_tuple_getitem(item)
            shapes = [[int(extent) for extent in field.shape]
                      for field in split.checked_type.fields]
            if len(shapes) <= _MOST_PARTS:
                return super().visit_tuple_getitem(item)
            axis = int(split.attrs.axis) % len(shapes[0])
            begin = sum(shape[axis] for shape in shapes[:item.index])
            cut = relay.strided_slice(
                self.visit(split.args[0]), begin=[begin],
                end=[begin + shapes[item.index][axis]], strides=[1], axes=[axis])
            return relay.Call(cut.op, cut.args, cut.attrs, cut.type_args, split.span)

    module["main"] = Slices().visit(module["main"])
    return relay.transform.InferType()(module)
