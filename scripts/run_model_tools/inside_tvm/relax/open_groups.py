"""Which operators on numbers and rows of open extents run together.

An operator that only operators of one group read is part of that group, if its result has the
group's extents, or one number for each row.  A group becomes a program, and so one function.
"""

import numpy as np

from run_model_tools.inside_tvm import called_operator
from run_model_tools.inside_tvm.relax.open_operators import (
    ALONG,
    EACH,
    REDUCED,
    extents_of,
    is_float32,
    operator_of,
)
from run_model_tools.kernels.programs.program import MOST_PASSES, Program

_MOST_NODES = 120
_MOST_MEMBERS = 40
_MOST_INPUTS = 12
_MOST_REDUCTIONS = MOST_PASSES - 1
MOST_AXES = 8
"""open.h's."""


class Group:
    """Operators that run together."""

    def __init__(self, root, extents):
        self.root = root
        """The binding whose value is the result."""
        self.extents = extents
        """Of what the program goes over."""
        self.members = []
        """Numbers of bindings, the last one first."""
        self.reductions = 0
        self.axes = 1
        """How many of the last axes are a row."""

    def one_a_row(self, expr):
        """Whether a tensor has one number for each row."""
        return not all(map(is_one, self.extents[-self.axes:])) and all(
            map(is_one, extents_of(expr)[-self.axes:]))


class Bindings:
    """The bindings of a function, and who reads what."""

    def __init__(self, blocks, result):
        self.all = [binding for block in blocks for binding in block.bindings]
        self.at = {b.var: i for i, b in enumerate(self.all)}
        self.readers = {b.var: set() for b in self.all}
        """Numbers of bindings; None stands for what is outside."""
        for index, binding in enumerate(self.all):
            for variable in variables_of(getattr(binding, "value", binding)):
                self.readers.get(variable, set()).add(index)
        for variable in variables_of(result):
            self.readers.get(variable, set()).add(None)
        self.arrays = {}
        """Constants that bindings are."""
        for binding in self.all:
            array = self._array(getattr(binding, "value", None))
            if array is not None:
                self.arrays[binding.var] = array
        self.operators = [operator_of(b.value) if b.var not in self.arrays and hasattr(
            getattr(b, "value", None), "op") else None for b in self.all]
        """What each binding does to rows, or None."""

    def array_of(self, expr):
        """The numbers of a constant, or None."""
        if type(expr).__name__ == "GenericConst":
            return expr.value.numpy()
        return self.arrays.get(expr) if is_variable(expr) else None

    def value_of(self, expr):
        """What a variable is bound to, None where it is none of these."""
        at = self.at.get(expr) if is_variable(expr) else None
        return None if at is None else getattr(self.all[at], "value", None)

    def is_read_by(self, expr, members):
        """Whether nothing but these bindings reads it."""
        readers = self.readers.get(expr) if is_variable(expr) else None
        return bool(readers) and readers <= set(members)

    def _array(self, value):
        """The array that importers compute from constants; None of anything else."""
        name = called_operator(value).removeprefix("relax.")
        compute = _FOLDED.get(name)
        extents = extents_of(value) if compute else None
        if extents is None or not all(map(_is_known, extents)):
            return None
        tensors = [a for a in value.args if hasattr(getattr(a, "ty", None), "dtype")]
        arrays = [self.array_of(a) for a in tensors]
        if any(array is None for array in arrays):
            return None
        return compute(*arrays).reshape([int(e.value) for e in extents])


_FOLDED = {"reshape": np.asarray, "isnan": np.isnan, "where": np.where}


def find_groups(bindings):
    """The groups, by the numbers of their roots."""
    groups, group_of = {}, {}
    for index in reversed(range(len(bindings.all))):
        binding = bindings.all[index]
        operator = bindings.operators[index]
        if operator is None:
            continue
        known = {group_of.get(reader) for reader in bindings.readers[binding.var]}
        group = known.pop() if len(known) == 1 else None
        axes = group and _axes_with(bindings, group, index, operator)
        if not axes:
            domain = operator.arguments[0] if operator.kind == REDUCED else binding.value
            group, axes = Group(index, extents_of(domain)), operator.axes
            if not 0 < len(group.extents) <= MOST_AXES or not _fit(group, operator, operator.axes):
                continue
            groups[index] = group
        group.axes = axes
        group.members.append(index)
        group.reductions += operator.reductions
        group_of[index] = group
    return groups


def _axes_with(bindings, group, index, operator):
    """How many axes are a row of the group with one more operator; 0 if it cannot join."""
    call = bindings.all[index].value
    axes = operator.axes if operator.kind != EACH else group.axes
    is_row = not same_extents(extents_of(call), group.extents)
    if is_row and operator.kind == EACH and not group.reductions:
        # A number a row, of rows that nothing has been said of yet.
        axes = next((n for n, one in enumerate(reversed(extents_of(call))) if not is_one(one)),
                    len(extents_of(call)))
    if (not axes or group.reductions + operator.reductions > _MOST_REDUCTIONS
            or len(group.members) >= _MOST_MEMBERS
            or not _fit(group, operator, axes)):
        return 0
    if axes != group.axes and (group.reductions or not all(
            _fit(group, bindings.operators[m], axes) for m in group.members)):
        return 0
    if operator.kind == REDUCED:
        if not same_extents(extents_of(operator.arguments[0]), group.extents):
            return 0
        if len(extents_of(call)) != len(group.extents):
            return 0
    if is_row and (operator.kind == ALONG or not all(map(is_one, extents_of(call)[-axes:]))
                   or not same_extents(extents_of(call)[:-axes], group.extents[:-axes])):
        return 0
    # What goes along rows wants them, and only as its first argument.
    variable = bindings.all[index].var
    for reader in bindings.readers[variable]:
        other = bindings.operators[reader]
        if other.kind != EACH and (is_row or any(a.same_as(variable) for a in other.arguments[1:])):
            return 0
    inputs = {a for m in (*group.members, index) for a in bindings.operators[m].arguments
              if bindings.array_of(a) is None or bindings.array_of(a).size > 1}
    return axes if len(inputs) <= _MOST_INPUTS else 0


def _fit(group, operator, axes):
    """Whether the arguments have numbers for all of the group's rows of so many axes, or one
    each."""
    for argument in operator.arguments:
        extents = extents_of(argument)
        if len(extents) > len(group.extents) or not is_float32(argument):
            return False
        extents = [None] * (len(group.extents) - len(extents)) + extents
        is_same = [own is not None and same_extents([own], [whole])
                   for own, whole in zip(extents, group.extents)]
        is_single = [own is None or is_one(own) for own in extents]
        if not all(a or b for a, b in zip(is_same, is_single)) or not (
                all(is_same[-axes:]) or all(is_single[-axes:])):
            return False
    return True


def program_of(bindings, group, inputs, given=None):
    """(program, whether each input has columns) of a group, None where it cannot be one.

    `inputs`, a list, gets what the program reads.  `given`: (variable, operator), the node that a
    variable is instead of an input.
    """
    program, nodes, columns = Program((), []), {}, []
    if given:
        nodes[given[0]] = program.add(given[1])

    def node_of(argument):
        if is_variable(argument) and argument in nodes:
            return nodes[argument]
        array = bindings.array_of(argument)
        if array is not None and array.size == 1:
            return program.add("constant", value=float(array.reshape(())))
        for index, known in enumerate(inputs):
            if known.same_as(argument):
                return program.add("input", value=index)
        inputs.append(argument)
        columns.append(not group.one_a_row(argument))
        return program.add("input", value=len(inputs) - 1)

    for member in sorted(group.members):
        binding = bindings.all[member]
        operator = bindings.operators[member]
        result = operator.append(program, [node_of(a) for a in operator.arguments])
        if result is None:
            return None
        nodes[binding.var] = result
    if len(program.nodes) > _MOST_NODES:
        return None
    if result != len(program.nodes) - 1:
        # Equal nodes became one before the end.
        program.nodes.append(program.nodes[0].__class__("identity", (result,)))
    return program, columns


def is_one(extent):
    """Whether an extent is known to be 1."""
    return _is_known(extent) and int(extent.value) == 1


def _is_known(extent):
    return type(extent).__name__ == "IntImm"


def same_extents(a, b):
    """Whether extents are known to be equal."""
    import tvm_ffi

    return len(a) == len(b) and all(tvm_ffi.structural_equal(x, y) for x, y in zip(a, b))


def is_variable(expr):
    """Whether it names a value."""
    from tvm import relax

    return isinstance(expr, relax.Var)


def variables_of(expr):
    """All that an expression reads."""
    from tvm import relax

    found = []
    relax.analysis.post_order_visit(
        expr, lambda e: found.append(e) if isinstance(e, relax.Var) else None)
    return found
