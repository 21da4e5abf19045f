"""A network for inputs of any size, with functions for some sizes beside it: the inputs' extents
choose among them when it runs.

They are compared as numbers, so that a machine knows the course without running the network, and
so does run_model, which plans it once for each size.
"""

from run_model_tools.inside_tvm import Refusal

ANY = "any_size"
"""The function of all other sizes."""


def beside(tvm, module, exact):
    """A module whose main function calls that of `exact` which is for its inputs' sizes, and for
    others what is `module`'s main function.

    exact: (name, module) of networks with the same inputs and outputs, and fixed sizes.
    """
    from tvm import relax

    made = tvm.IRModule()
    other = _taken_in(tvm, made, ANY, module)
    functions = [(_taken_in(tvm, made, name, one), one["main"]) for name, one in exact]
    variables = {}
    parameters = [_parameter(tvm, variables, p) for p in module["main"].params]
    kind = _without_extents(module["main"].ret_ty)
    call = relax.Call(other, parameters)
    for number, (function, main) in reversed(list(enumerate(functions))):
        condition = _condition(tvm, parameters, main)
        chosen = relax.If(condition, _sequence(relax, relax.Call(function, parameters), kind,
                                               "exact_%d" % number),
                          _sequence(relax, call, kind, "other_%d" % number))
        call = chosen
    body = _sequence(relax, call, kind, "result")
    pure = all(bool(m["main"].is_pure) for m in (module, *(one for _, one in exact)))
    made[tvm.ir.GlobalVar("main")] = relax.Function(
        parameters, body, kind, is_pure=pure).with_attr("global_symbol", "main")
    return relax.transform.Normalize()(made)


def _taken_in(tvm, made, name, module):
    """The variable of the main function of `module`, in `made`.  Equal functions are there once,
    others under names of their own."""
    from tvm import relax

    others = {v: f for v, f in module.functions.items() if v.name_hint != "main"}
    places = {v.name_hint: _place(tvm, made, v, f, name) for v, f in others.items()}
    moved = {old: new for old, new in places.items() if new not in others}
    for variable, function in others.items():
        place = places[variable.name_hint]
        if place not in made.functions:
            if function.attrs and "global_symbol" in function.attrs:
                function = function.with_attr("global_symbol", place.name_hint)
            made[place] = _renamed(function, moved)
    main = tvm.ir.GlobalVar(name)
    made[main] = _renamed(module["main"].without_attr("global_symbol"), moved)
    relax.expr._update_type(main, made[main].ty)
    return main


def _place(tvm, made, variable, function, beside_name):
    """The variable in the module of an equal function, or the one that this function gets."""
    import tvm_ffi

    there = next((v for v in made.functions if v.name_hint == variable.name_hint), None)
    if there is None:
        return variable
    if tvm_ffi.structural_equal(made[there], function):
        return there
    return tvm.ir.GlobalVar("%s_%s" % (variable.name_hint, beside_name))


def _renamed(function, names):
    """The function, with other functions of these names."""
    from tvm import relax

    if not names or not isinstance(function, relax.Function):
        return function

    @relax.expr_functor.mutator
    class Renaming(relax.expr_functor.PyExprMutator):
        def visit_global_var_(self, variable):
            return names.get(variable.name_hint, variable)

    return Renaming().visit_expr(function)


def _parameter(tvm, variables, given):
    """A parameter like another function's, with variables of its own."""
    from tvm import relax

    shape = getattr(given.ty.shape, "values", None)
    if shape is None and given.ty.ndim != 0:
        raise Refusal("model", "its input %s may have any number of axes" % given.name)
    extents = []
    for extent in shape or ():
        if not isinstance(extent, (tvm.tirx.IntImm, tvm.tirx.Var)):
            raise Refusal("model", "an extent of its input %s is %s" % (given.name, extent))
        extents.append(extent if isinstance(extent, tvm.tirx.IntImm) else variables.setdefault(
            extent, tvm.tirx.Var(str(extent.name), "int64")))
    return relax.Var(str(given.name), relax.TensorType(extents, given.ty.dtype))


def _condition(tvm, parameters, main):
    """Whether the parameters have the sizes of those of `main`."""
    if [str(p.name) for p in parameters] != [str(p.name) for p in main.params]:
        raise Refusal("model", "it has other inputs at one size than at all")
    equal, seen = [], set()
    for parameter, wanted in zip(parameters, main.params):
        for extent, size in zip(parameter.ty.shape.values, wanted.ty.shape.values):
            if isinstance(extent, tvm.tirx.Var) and extent not in seen:
                seen.add(extent)
                equal.append(tvm.tirx.EQ(extent, tvm.tirx.IntImm("int64", int(size))))
    whole = equal[0]
    for one in equal[1:]:
        whole = tvm.tirx.And(whole, one)
    return whole


def _without_extents(kind):
    from tvm import relax

    fields = getattr(kind, "fields", None)
    if fields is not None:
        return relax.TupleType([_without_extents(field) for field in fields])
    return relax.TensorType(dtype=kind.dtype, ndim=kind.ndim)


def _sequence(relax, value, kind, name):
    result = relax.Var(name, kind)
    return relax.SeqExpr([relax.BindingBlock([relax.VarBinding(result, value)])], result)
