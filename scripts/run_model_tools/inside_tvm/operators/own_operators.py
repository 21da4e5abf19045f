"""Operators of Relay that TVM has not, and other code for some that it has."""

from functools import wraps

from run_model_tools.inside_tvm import is_supported


def once(install):
    """install(tvm), which changes TVM for the rest of the process: more than once is the same, and
    releases other than ours are left as they are."""
    done = []

    @wraps(install)
    def installed(tvm):
        if is_supported(tvm) and not done:
            done.append(True)
            install(tvm)

    return installed


def declare(name, text, arguments, type_of):
    """Makes an operator that is fused with no other; arguments: the names of its inputs.
    type_of(inputs' types, attributes) gives its result's type."""
    from tvm import relay
    from tvm.relay.op import op as relay_op

    relay_op.register(name, text)
    operator = relay_op.get(name)
    operator.set_num_inputs(len(arguments))
    for argument in arguments:
        operator.add_argument(argument, "Tensor", text)
    operator.add_type_rel(name + "Rel", type_of)
    operator.set_support_level(10)
    relay_op.register_pattern(name, relay.op.OpPattern.OPAQUE)
    relay_op.register_stateful(name, False)


def choose_by(tvm, name, choose):
    """Has choose(attributes, inputs, result's type, target) say how an operator is computed."""
    from tvm.relay.op import op as relay_op

    relay_op.register_strategy(name, tvm.target.override_native_generic_func(
        name.replace(".", "_") + "_strategy")(choose), level=10)


def register(tvm, name, text, arguments, type_of, compute, why=None, elsewhere=None):
    """Makes an operator that loops on CPUs compute: compute(attributes, inputs) gives the tensor.
    On GPUs elsewhere(attributes, inputs) gives it, each element by itself, or `why` is what is said
    there.  The others as in declare()."""
    from tvm import relay

    def choose(attrs, inputs, out_type, target):
        strategy = relay.op.OpStrategy()
        if target.get_target_device_type() == tvm.cpu().device_type:
            strategy.add_implementation(
                lambda attrs, inputs, out_type: [compute(attrs, inputs)],
                lambda attrs, outs, target: tvm.te.create_schedule([out.op for out in outs]),
                name=name)
        elif elsewhere is None:
            raise ValueError(why)
        else:
            strategy.add_implementation(
                lambda attrs, inputs, out_type: [elsewhere(attrs, inputs)],
                relay.op.strategy.generic.schedule_injective, name=name)
        return strategy

    declare(name, text, arguments, type_of)
    choose_by(tvm, name, choose)


def called(tvm, name, inputs, **attributes):
    """A call of such an operator."""
    from tvm.relay.op import op as relay_op

    return tvm.relay.Call(relay_op.get(name), inputs, tvm.ir.make_node("DictAttrs", **attributes))


def replace(tvm, name, schedule, compute, of="float"):
    """Has an operator of Relay's on such numbers computed by another function, with the schedule
    that it has, where that function can."""
    from tvm.relay.op.op import _wrap_default_fstrategy

    known = tvm.relay.op.get(name).get_attr("FTVMCompute")

    def chosen(attrs, inputs, out_type):
        made = (compute(attrs, inputs, [int(extent) for extent in out_type.shape])
                if inputs[0].dtype.startswith(of) else None)
        return known(attrs, inputs, out_type) if made is None else [made]

    tvm.ir.register_op_attr(name, "FTVMCompute", chosen, 11)
    strategy = tvm.target.get_native_generic_func("%s_strategy" % name)
    kind = schedule.__name__.partition("_")[2]
    strategy.set_default(_wrap_default_fstrategy(chosen, schedule.fdefault, "%s.generic" % kind),
                         allow_override=True)
    for key, of_key in schedule.dispatch_dict.items():
        strategy.register(_wrap_default_fstrategy(chosen, of_key, "%s.%s" % (kind, key)), [key],
                          allow_override=True)
