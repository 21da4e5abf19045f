"""UNIDIRECTIONAL_ and BIDIRECTIONAL_SEQUENCE_LSTM of TensorFlow Lite, unrolled, and SVDF.

TVM's importer takes the first as if it were of one sample, with tanh, and without peepholes,
projection or bounds.  Their states are variables that LiteRT keeps from run to run until it is told
to reset them; here each run begins with zeros, as a layer that keeps nothing does in training.
SVDF, which sees one moment in each run, has its state as an input and an output (tflite/states.py).
"""

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.tflite.control_flow import MOST_ITERATIONS
from run_model_tools.inside_tvm.tflite.operators import options_of

# Where inputs are, counted from a direction's first one; in each group input, forget, cell, output
# gate (no cell gate among the peepholes).
_OF_INPUT, _OF_STATE, _PEEPHOLES, _BIASES, _PROJECTION, _PROJECTED_BIAS = 0, 4, 8, 11, 15, 16
_ALL = 17
_NORMALISED = slice(20, 24)
_AUXILIARY = slice(39, 48)


def _one_way(converter, op):
    from tflite.UnidirectionalSequenceLSTMOptions import UnidirectionalSequenceLSTMOptions

    inputs = _inputs(converter, op, slice(18, 20), _NORMALISED,
                     "with normalised gates (UNIDIRECTIONAL_SEQUENCE_LSTM)")
    options = options_of(op, UnidirectionalSequenceLSTMOptions)
    rows = _Layer(converter, options, inputs, 1).run(False)
    return relay.stack(rows, 0 if options.TimeMajor() else 1)


def _both_ways(converter, op):
    from tflite.BidirectionalSequenceLSTMOptions import BidirectionalSequenceLSTMOptions

    inputs = _inputs(converter, op, slice(35, 39), _AUXILIARY,
                     "of two inputs (BIDIRECTIONAL_SEQUENCE_LSTM)")
    options = options_of(op, BidirectionalSequenceLSTMOptions)
    ways = [relay.stack(_Layer(converter, options, inputs, first).run(backwards),
                        0 if options.TimeMajor() else 1)
            for first, backwards in ((1, False), (1 + _ALL, True))]
    return relay.concatenate(ways, 2) if options.MergeOutputs() else relay.Tuple(ways)


def _inputs(converter, op, states, others, what):
    """The tensors' numbers, once nobody else reads or sets the states among them, which begin as
    zeros, and none of the others is there, which would make the LSTM `what` is said."""
    graph, inputs = converter.graph, [int(index) for index in op.InputsAsNumpy()]
    if any(index >= 0 for index in inputs[others]):
        raise Refusal("model", "it has an LSTM %s, which is not supported" % what)
    for index in inputs[states]:
        users = sum(operator.inputs.count(index) + operator.outputs.count(index)
                    for operator in graph.operators)
        if users != 1 or index in (*graph.inputs, *graph.outputs) or (
                graph.tensors[index].constant is not None):
            raise Refusal("model", "the state %s of an LSTM is given or used elsewhere too, which "
                          "is not supported" % graph.tensors[index].name)
    return inputs


class _Layer:
    """One direction of a layer, whose inputs begin with the number `first`."""

    def __init__(self, converter, options, inputs, first):
        self._converter, self._options = converter, options
        self._data, self._inputs = inputs[0], inputs[first:first + _ALL]
        self._gates = [gate for gate in range(4) if self._has(_OF_STATE + gate)]
        """Of 4; the input gate may be missing, and is then what the forget gate leaves."""

    def _has(self, place):
        return self._inputs[place] >= 0

    def _numbers(self, place):
        tensor = self._converter.graph.tensors[self._inputs[place]]
        if tensor.constant is None:
            raise Refusal("model", "the weights %s of an LSTM are no constants, which is not "
                          "supported" % tensor.name)
        return (tensor.quantized.to_numbers(tensor.constant) if tensor.quantized is not None
                else tensor.constant.astype(np.float32))

    def _constant(self, array):
        return self._converter.exp_tab.new_const(np.ascontiguousarray(array))

    def _activated(self, x):
        return self._converter.convert_fused_activation_function(
            x, self._options.FusedActivationFunction())

    def _bounded(self, x, bound):
        return relay.clip(x, -bound, bound) if bound > 0 else x

    def run(self, backwards):
        """The outputs at each time, in the order of time."""
        converter = self._converter
        shape, x = converter.shape_of(self._data), converter.value(self._data)
        if not self._options.TimeMajor():
            x, shape = relay.transpose(x, (1, 0, 2)), [shape[1], shape[0], shape[2]]
        times, batch, width = shape
        if times > MOST_ITERATIONS:
            raise Refusal("model", "it has an LSTM of %d steps, and up to %d are unrolled; give it "
                          "fewer" % (times, MOST_ITERATIONS))
        of_input, of_state, biases = (np.concatenate([self._numbers(base + gate)
                                                      for gate in self._gates])
                                      for base in (_OF_INPUT, _OF_STATE, _BIASES))
        sums = relay.nn.dense(relay.reshape(x, (times * batch, width)), self._constant(of_input))
        sums = relay.reshape(relay.add(sums, self._constant(biases)), (times, batch, -1))
        of_state = self._constant(of_state)
        hidden = cell = None
        made = []
        for time in reversed(range(times)) if backwards else range(times):
            row = relay.squeeze(relay.strided_slice(sums, [time], [time + 1], axes=[0]), [0])
            if hidden is not None:
                row = relay.add(row, relay.nn.dense(hidden, of_state))
            hidden, cell = self._step(row, cell)
            made.append(hidden)
        return made[::-1] if backwards else made

    def _step(self, row, cell):
        """(output, state) after one time, of the gates' sums and the state before it, None of
        zeros."""
        options = self._options
        parts = dict(zip(self._gates, relay.split(row, len(self._gates), axis=1)))

        def gate(number, state):
            place = _PEEPHOLES + {0: 0, 1: 1, 3: 2}[number]
            total = parts[number]
            if state is not None and self._has(place):
                total = relay.add(total, relay.multiply(
                    state, self._constant(self._numbers(place))))
            return relay.sigmoid(total)

        forget = gate(1, cell)
        let_in = gate(0, cell) if 0 in parts else relay.subtract(
            relay.const(np.float32(1)), forget)
        made = relay.multiply(let_in, self._activated(parts[2]))
        cell = made if cell is None else relay.add(made, relay.multiply(forget, cell))
        cell = self._bounded(cell, options.CellClip())
        hidden = relay.multiply(gate(3, cell), self._activated(cell))
        if self._has(_PROJECTION):
            hidden = relay.nn.dense(hidden, self._constant(self._numbers(_PROJECTION)))
            if self._has(_PROJECTED_BIAS):
                hidden = relay.add(hidden, self._constant(self._numbers(_PROJECTED_BIAS)))
            hidden = self._bounded(hidden, options.ProjClip())
        return hidden, cell


def _svdf(converter, op):
    """Of each feature the sum of its last numbers, the newest of which is made here."""
    from tflite.SVDFOptions import SVDFOptions

    options, inputs = options_of(op, SVDFOptions), [int(index) for index in op.InputsAsNumpy()]
    data, features, times, bias, state = inputs
    if not converter.has_expr(state):
        raise Refusal("model", "the state %s of an SVDF is not its own, or a branch or loop has it"
                      % converter.graph.tensors[state].name)
    (batch, _), (count, moments) = converter.shape_of(data), converter.shape_of(times)
    before = relay.reshape(converter.value(state), (batch, count, moments))
    newest = relay.nn.dense(converter.value(data), converter.value(features))
    after = relay.concatenate([relay.strided_slice(before, [1], [moments], axes=[2]),
                               relay.expand_dims(newest, 2)], 2)
    del converter.exp_tab.exprs[converter.names[state]]
    converter.keep(state, relay.reshape(after, (batch, count * moments)))
    after = relay.reshape(converter.value(state), (batch, count, moments))
    made = relay.sum(relay.multiply(after, converter.value(times)), 2)
    made = relay.sum(relay.reshape(made, (batch, -1, options.Rank())), 2)
    if bias >= 0:
        made = relay.add(made, converter.value(bias))
    return converter.convert_fused_activation_function(made, options.FusedActivationFunction())


CONVERTERS = {"SVDF": _svdf, "UNIDIRECTIONAL_SEQUENCE_LSTM": _one_way,
              "BIDIRECTIONAL_SEQUENCE_LSTM": _both_ways}
"""By operators' names, functions of the importer's converter and one operator."""
