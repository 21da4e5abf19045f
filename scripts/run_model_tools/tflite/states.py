"""Variables of a .tflite file as inputs and outputs of its network.

LiteRT keeps them from run to run, until it is told to reset them.  Compiled code computes the same
in each run, so what a run finds of a variable is an input, and what it leaves an output, as
recurrent networks in ONNX have it.  A variable that is set once, at the beginning, is a constant.
"""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

from run_model_tools.tflite.file import Malformed, TfliteFile, TfliteGraph, parse
from run_model_tools.tflite.rewriting import Front

_STATE_OF_SVDF = 4
"""Which of its inputs is the state."""


def read_network(path: Path) -> TfliteFile:
    """The file without variables; raises Malformed, or OSError."""
    file = parse(path.read_bytes())
    variables, states = _Variables(file), _states(file)
    if not variables.dropped and not states:
        return file
    front = Front(file.model)
    main = front.graphs[0]
    variables.write(front)
    main.inputs += states
    main.outputs += states
    made = parse(front.finish(variables.data()))
    return dataclasses.replace(made, notes=(
        *variables.notes, *(_note(file.tensors[i].name, file.tensors[i].name, "zeros")
                            for i in states)))


def _note(name: str, output: str, begins: str) -> str:
    return (f"the variable '{name}' is an input, whose first value is {begins}, and what a run "
            f"leaves in it the output '{output}', the input of the next")


def _states(file: TfliteFile) -> list[int]:
    """Tensors that operators keep from run to run, and nobody else sets or reads."""
    used = [i for o in file.operators for i in (*o.inputs, *o.outputs)]
    return [i for o in file.operators if o.name == "SVDF"
            for i in o.inputs[_STATE_OF_SVDF:_STATE_OF_SVDF + 1]
            if i >= 0 and used.count(i) == 1 and i not in (*file.inputs, *file.outputs)
            and file.tensors[i].constant is None]


class _Variables:
    """What becomes of the operators on variables, which have names, of the main graph."""

    def __init__(self, file: TfliteFile) -> None:
        self._file = file
        self.dropped: set[int] = set()
        """Numbers of operators."""
        self._renamed: dict[int, int] = {}
        """Tensors that are others."""
        self._constants: dict[int, tuple[int, int]] = {}
        """Of tensors, the graph and the number of the constant that they are."""
        self._inputs: dict[str, int] = {}
        self._outputs: dict[str, int] = {}
        self.notes: list[str] = []
        handles = self._handles()
        if handles:
            self._follow(handles, self._first_values())

    def _handles(self) -> dict[int, str]:
        """The names of variables, by the tensors that stand for them; empty where other operators
        than those that read and set them have one, which are refused then."""
        handles, setting = _named(self._file, self._file), {"READ_VARIABLE", "ASSIGN_VARIABLE"}
        for operator in self._file.operators:
            if operator.name not in setting and handles.keys() & set(operator.inputs):
                return {}
        return handles

    def _first_values(self) -> dict[str, tuple[int, int]]:
        """By names, the graph and the number of the constant that a variable is set to once."""
        found: dict[str, tuple[int, int]] = {}
        for operator in self._file.operators:
            if operator.name != "CALL_ONCE":
                continue
            graph = self._file.graphs[operator.graphs[0]]
            if all(o.name in ("VAR_HANDLE", "ASSIGN_VARIABLE") for o in graph.operators):
                handles = _named(self._file, graph)
                found.update((handles[handle], (graph.number, value)) for handle, value in (
                    o.inputs for o in graph.operators if o.name == "ASSIGN_VARIABLE")
                    if handle in handles and graph.tensors[value].constant is not None)
        return found

    def _follow(self, handles: dict[int, str], first: dict[str, tuple[int, int]]) -> None:
        file = self._file
        names = [handles.get(o.inputs[0], "") if o.inputs else "" for o in file.operators]
        changed = {name for o, name in zip(file.operators, names) if o.name == "ASSIGN_VARIABLE"}
        now: dict[str, int] = {}
        for number, (operator, name) in enumerate(zip(file.operators, names)):
            if operator.name == "READ_VARIABLE" and name:
                (read,) = operator.outputs
                if name in now:
                    self._renamed[read] = now[name]
                elif name in changed:
                    now[name] = self._inputs[name] = read
                elif name in first:
                    self._constants[read] = first[name]
                else:
                    continue
            elif operator.name == "ASSIGN_VARIABLE" and name:
                value = operator.inputs[1]
                now[name] = self._outputs[name] = self._renamed.get(value, value)
            elif operator.name not in ("VAR_HANDLE", "CALL_ONCE"):
                continue
            self.dropped.add(number)
        for name, read in self._inputs.items():
            given, left = (file.tensors[i] for i in (read, self._outputs[name]))
            if (given.shape, given.dtype) != (left.shape, left.dtype):
                raise Malformed(f"its variable {name} becomes a tensor of another shape or type")
            self.notes.append(_note(name, left.name, self._begins(first.get(name))))

    def _begins(self, first: tuple[int, int] | None) -> str:
        if first is None:
            return "not in the file"
        constant = self._file.graphs[first[0]].tensors[first[1]].constant
        assert constant is not None
        if not constant.any():
            return "zeros"
        return f"in the file, numbers from {constant.min()} to {constant.max()}"

    def write(self, front: Front) -> None:
        """Does it, but for what data() does."""
        main = front.graphs[0]
        main.operators = [o for number, o in enumerate(main.operators)
                          if number not in self.dropped]
        for index, (graph, constant) in self._constants.items():
            main.tensors[index] = front.graphs[graph].tensors[constant]
        for name, index in self._inputs.items():
            front.variable(main, index, self._file.tensors[index], name)
        main.inputs += self._inputs.values()
        main.outputs = [*(self._renamed.get(i, i) for i in main.outputs),
                        *(self._outputs[name] for name in self._inputs)]

    def data(self) -> bytes:
        """The file, in which operators take the tensors that others turned out to be."""
        data, graph = bytearray(self._file.data), self._file.model.Subgraphs(0)
        for number, operator in enumerate(self._file.operators):
            table: Any = graph.Operators(number)._tab
            for place, index in enumerate(operator.inputs):
                if index in self._renamed:
                    struct.pack_into("<i", data, table.Vector(table.Offset(6)) + 4 * place,
                                     self._renamed[index])
        return bytes(data)


def _named(file: TfliteFile, graph: TfliteGraph) -> dict[int, str]:
    """The names of variables, by the tensors that stand for them in a graph."""
    import tflite

    found = {}
    for number, operator in enumerate(graph.operators):
        if operator.name == "VAR_HANDLE":
            options, table = tflite.VarHandleOptions(), file.model.Subgraphs(
                graph.number).Operators(number).BuiltinOptions()
            if table is None:
                raise Malformed("an operator VAR_HANDLE does not say which variable it is")
            options.Init(table.Bytes, table.Pos)
            parts = [(part or b"").decode("utf-8", "replace")
                     for part in (options.Container(), options.SharedName())]
            found[operator.outputs[0]] = "/".join(filter(None, parts)) or "variable"
    return found
