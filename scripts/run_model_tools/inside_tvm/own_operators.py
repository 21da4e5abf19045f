"""Operators of Relay that TVM has not, computed by loops on CPUs."""


def register(tvm, name, text, arguments, type_of, compute, why):
    """Makes an operator; arguments: the names of its inputs.  type_of(inputs' types, attributes)
    gives its result's type, compute(attributes, inputs) the tensor; why: what is said on GPUs."""
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

    def choose(attrs, inputs, out_type, target):
        if target.get_target_device_type() != tvm.cpu().device_type:
            raise ValueError(why)
        strategy = relay.op.OpStrategy()
        strategy.add_implementation(
            lambda attrs, inputs, out_type: [compute(attrs, inputs)],
            lambda attrs, outs, target: tvm.te.create_schedule([out.op for out in outs]),
            name=name)
        return strategy

    relay_op.register_strategy(name, tvm.target.override_native_generic_func(
        name + "_strategy")(choose), level=10)


def called(tvm, name, inputs, **attributes):
    """A call of such an operator."""
    from tvm.relay.op import op as relay_op

    return tvm.relay.Call(relay_op.get(name), inputs, tvm.ir.make_node("DictAttrs", **attributes))
