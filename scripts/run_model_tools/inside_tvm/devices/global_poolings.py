"""Poolings of whole rows, planes and volumes as the reductions along axes that they are, whose long
sums schedules.py gives to groups of threads: TVM has a thread for each row or volume, and 16 or 32
for each plane, however large."""

_REDUCTIONS = {"%s_%s_pool%dd" % (kind, how, rank): ("mean" if how == "avg" else "max", rank)
               for kind in ("nn.global", "nn.adaptive") for how in ("avg", "max")
               for rank in (1, 2, 3)}
_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_LONG = {1: 1, 2: 1024, 3: 64}
"""Numbers from which on TVM has too few threads for them.  A pooling takes what follows it into its
kernel, as a reduction does not.  Means along rows are all reductions: they may be a normalisation's
(row_layers.py)."""


def as_reductions(module):
    """The module with such poolings of many numbers replaced."""
    from tvm import relay

    from run_model_tools.kernels.relay.graph import operator

    class Reductions(relay.ExprMutator):
        def visit_call(self, call):
            made = super().visit_call(call)
            name, rank = _REDUCTIONS.get(operator(call), (None, 0))
            if name is None or str(call.attrs.layout) != _LAYOUTS[rank]:
                return made
            sizes = getattr(call.attrs, "output_size", None) or [1]
            count = 1
            for extent in call.args[0].checked_type.shape[2:]:
                count *= int(extent)
            if count < _LONG[rank] or any(int(size) != 1 for size in sizes):
                return made
            reduced = getattr(relay, name)(made.args[0], axis=list(range(2, 2 + rank)),
                                           keepdims=True)
            return relay.Call(reduced.op, reduced.args, reduced.attrs, reduced.type_args,
                              call.span)

    module = relay.transform.InferType()(module)
    module["main"] = Reductions().visit(module["main"])
    return relay.transform.InferType()(module)
