"""LSTM layers of TensorFlow Lite in one operator, held to LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_test import compile_many, litert_or_skip, outputs_of

from tflite_networks import TfliteNetwork

pytestmark = pytest.mark.full  # layers that few networks have

TIMES, WIDTH, CELLS = 4, 5, 6
RELU6, TANH = 3, 4
ONE_WAY, BOTH_WAYS = "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"


class Lstm(TfliteNetwork):
    """One layer; without `input_gate` it has the three others.  hybrid: weights of bytes."""

    def __init__(self, code: str = ONE_WAY, outputs: int = CELLS, peepholes: bool = False,
                 input_gate: bool = True, hybrid: bool = False, normalised: bool = False,
                 activation: int = TANH, time_major: bool = False, batch: int = 2, **options):
        super().__init__(12)
        self.hybrid = hybrid
        shape = (TIMES, batch) if time_major else (batch, TIMES)
        x = self.tensor((*shape, WIDTH), name="x")
        directions = 1 if code == ONE_WAY else 2
        inputs = [x]
        for _ in range(directions):
            inputs += self.parameters(outputs, peepholes, input_gate)
        self.states = [self.tensor((batch, size), variable=True, name=f"state_{size}_{way}")
                       for way in range(directions) for size in (outputs, CELLS)]
        inputs += self.states + ([self.weights(CELLS) if normalised else -1] * 4
                                 if code == ONE_WAY else [-1] * 9)
        self.inputs = [x]
        if code == BOTH_WAYS:
            options["MergeOutputs"] = True
        kind = "".join(word.capitalize() for word in code.split("_")[:2]) + "LSTMOptions"
        self.outputs = [self.add(
            code, inputs, [self.tensor((*shape, outputs * directions))], kind,
            FusedActivationFunction=activation, TimeMajor=time_major, **options)]

    def weights(self, *shape: int) -> int:
        values = self.random.standard_normal(shape).astype(np.float32)
        if not self.hybrid or len(shape) < 2:
            return self.constant(values)
        scale = np.abs(values).max() / 127
        return self.constant(np.rint(values / scale).astype(np.int8), scale=scale)

    def parameters(self, outputs: int, peepholes: bool, input_gate: bool) -> list[int]:
        def each(*shape: int) -> list[int]:
            return [self.weights(*shape) if input_gate or gate else -1 for gate in range(4)]

        projected = outputs != CELLS
        return [*each(CELLS, WIDTH), *each(CELLS, outputs),
                *[self.weights(CELLS) if peepholes and (input_gate or gate) else -1
                  for gate in range(3)], *each(CELLS),
                *[self.weights(*shape) if projected else -1
                  for shape in ((outputs, CELLS), (outputs,))]]


NETWORKS = {
    "plain": Lstm(), "bytes": Lstm(hybrid=True),
    "projected": Lstm(outputs=3, peepholes=True, CellClip=0.4, ProjClip=0.7),
    "three_gates": Lstm(input_gate=False, time_major=True, activation=RELU6),
    # Of the second sample LiteRT computes something else here than where time comes first.
    "both_ways": Lstm(BOTH_WAYS, peepholes=True, batch=1),
    "both_ways_by_time": Lstm(BOTH_WAYS, outputs=4, time_major=True, ProjClip=0.3)}


def test_they_give_what_litert_gives(tmp_path):
    answers = compile_many(NETWORKS, tmp_path)
    assert not {name: a["error"] for name, a in answers.items() if "error" in a}
    for name, network in NETWORKS.items():
        shape = network.tensors[network.inputs[0]]["shape"]
        inputs = {"x": np.random.default_rng(2).standard_normal(shape).astype(np.float32)}
        model = litert_or_skip(tmp_path / name / "net.tflite")
        for _ in range(2):  # The second run begins with zeros too.
            (ours,), (theirs,) = outputs_of(tmp_path / name, inputs), model.run(inputs)
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_state_that_leaves_the_layer_and_normalised_gates_are_refused(tmp_path, command):
    given_out = Lstm()
    given_out.outputs.append(given_out.states[1])
    for network, says in ((given_out, "the state state_6_0 of an LSTM is given or used elsewhere"),
                          (Lstm(normalised=True), "an LSTM with normalised gates")):
        result = command("compile_model", network.save(tmp_path / "m.tflite"), "--out",
                         tmp_path / "out", code=4)
        assert says in result.stderr and "Traceback" not in result.stderr


def test_weights_that_are_computed_are_refused(tmp_path, command):
    network = Lstm()
    network.operators[0][1][5] = network.inputs[0]
    result = command("compile_model", network.save(tmp_path / "m.tflite"), "--out",
                     tmp_path / "out", code=4)
    assert "the weights x of an LSTM are no constants" in result.stderr
