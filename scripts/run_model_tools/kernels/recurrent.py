"""LSTM and GRU over all steps (c/f32-recurrent.c.in), and ONNX's as such layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.tiles import even

GATES = {"rnn": 1, "lstm": 4, "gru": 3}
"""Of each kind; there is no kernel for "rnn"."""


@dataclass(frozen=True, eq=False)
class Recurrent:
    """Of ONNX's LSTM or GRU (linear_before_reset=1), with their usual activations: what follows
    the products with the inputs.

    The layer's inputs are these products with their biases, (steps, batch, directions * gates *
    hidden), the states (directions, batch, hidden) and for LSTM the cells. Its output has the
    states of all steps, (steps + 1 or 2, directions, batch, hidden): behind them the last states
    and for LSTM the last cells.
    """

    kind: str
    """"lstm" or "gru"."""
    steps: int
    batch: int
    weight: np.ndarray
    """float32 (directions, gates * hidden, hidden): ONNX's R."""
    bias: np.ndarray
    """float32 (directions, hidden): of GRU's product for the hidden gate."""
    backwards: bool
    """Whether the first direction begins at the last step; a second one always does."""
    weight_steps: np.ndarray | None = None
    """Of an LSTM whose states are quantised at every step (ONNX Runtime's DynamicQuantizeLSTM),
    float32 (directions, gates * hidden): what its weights, whole numbers then, count."""

    @property
    def directions(self) -> int:
        return self.weight.shape[0]

    @property
    def hidden(self) -> int:
        return self.weight.shape[2]

    @property
    def states(self) -> int:
        return 2 if self.kind == "lstm" else 1

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.steps + self.states, self.directions, self.batch, self.hidden

    @property
    def multiply_adds(self) -> int:
        return self.weight.size * self.batch * self.steps


def biases(kind: str, given: np.ndarray | None,
           shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Of ONNX's B, None where it is not given, for an R of `shape`: what is added to the products
    with the inputs, float32 (directions * gates * hidden), and what a GRU adds to its state's
    product for the hidden gate, float32 (directions, hidden)."""
    count, wide, hidden = shape
    if given is None:
        given = np.zeros((count, 2 * wide), np.float32)
    of_inputs, of_states = given[:, :wide], given[:, wide:]
    alone = of_states[:, -hidden:]
    if kind == "gru":
        of_states = np.where(np.arange(wide) < 2 * hidden, of_states, 0)
    return (of_inputs + of_states).reshape(-1).astype(np.float32), alone


def made_of_onnx(kind: str, steps: int, batch: int, r: np.ndarray, b: np.ndarray | None,
                 backwards: bool, isa: Isa) -> tuple[Layer, np.ndarray]:
    """The layer of a node with R and B, and what is added to the products of all its inputs with
    W before they go there."""
    of_inputs, alone = biases(kind, b, r.shape)
    return make(Recurrent(kind, steps, batch, r, alone, backwards), isa), of_inputs


def make(layer: Recurrent, isa: Isa) -> Layer:
    """The layer, whose tasks are parts of the batch in each direction; of all of it where states
    are quantised, since their range is that of all rows."""
    gates, hidden, lanes = GATES[layer.kind], layer.hidden, isa.lanes
    # See tile.h: rows x gates sums, the weights of all gates, and inputs.
    most = {16: 6, 8: 2}.get(lanes, 5 if isa.registers >= 32 else 2)
    tiles = even(layer.batch, most)
    rows = tiles.largest
    vectors = -(-hidden // lanes)
    tasks, kept_rows = (1, layer.batch) if layer.weight_steps is not None else (tiles.tiles, rows)
    weight = layer.weight.reshape(layer.directions, gates, hidden, hidden)
    weight = np.pad(weight, [(0, 0), (0, 0), (0, vectors * lanes - hidden), (0, 0)])
    weight = weight.reshape(layer.directions, gates, vectors, lanes, hidden)
    constants = [np.ascontiguousarray(weight.transpose(0, 2, 4, 1, 3), np.float32)]

    def padded(numbers: np.ndarray) -> np.ndarray:
        wide = [(0, 0)] * (numbers.ndim - 1) + [(0, vectors * lanes - hidden)]
        return np.pad(numbers, wide).astype(np.float32)

    inputs = [((layer.steps, layer.batch, layer.directions * gates * hidden), "float32"),
              *[((layer.directions, layer.batch, hidden), "float32")] * layer.states]
    if layer.kind == "gru":
        constants.append(padded(layer.bias))
    defines = {**isa.defines(), "STEPS": layer.steps, "BATCH": layer.batch, "HIDDEN": hidden,
               "DIRECTIONS": layer.directions, "REVERSED": layer.backwards, "GATES": gates,
               "ROWS": rows, "BATCH_PARTS": tiles.tiles, "TASKS": tasks}
    scratch = kept_rows * vectors * lanes if layer.kind == "lstm" else 0
    if layer.weight_steps is not None:
        defines["QUANTIZED"] = 1
        constants.append(padded(layer.weight_steps.reshape(layer.directions, gates, hidden)))
        scratch += -(-layer.batch * hidden // lanes) * lanes
    return Layer(layer.kind, "f32-recurrent.c.in", defines,
                 (Phase("recurrent", layer.directions * tasks),), tuple(inputs),
                 tuple(constants), layer.output_shape,
                 scratch_bytes=4 * scratch,
                 variant=isa.variant(rows, gates),
                 note={"kernel": layer.kind, "steps": layer.steps,
                       "multiply_adds": layer.multiply_adds})
