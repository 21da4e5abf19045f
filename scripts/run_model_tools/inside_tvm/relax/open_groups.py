"""Which operators on numbers and rows of open extents run together.

An operator that only operators of one group read is part of that group, if its result has the
group's extents, or one number for each row.  A group becomes a program, and so one function.
"""

from run_model_tools.inside_tvm.relax.open_operators import (
    ALONG,
    EACH,
    REDUCED,
    extents_of,
    is_float32,
    operator_of,
)

_MOST_NODES = 60
_MOST_INPUTS = 12
_MOST_AXES = 8
"""open.h's."""
_MOST_REDUCTIONS = 5
"""One less than the passes of row_passes.h."""


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

    def one_a_row(self, expr):
        """Whether a tensor has one number for each row."""
        extents = extents_of(expr)
        return not is_one(self.extents[-1]) and (not extents or is_one(extents[-1]))


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
        name = str(getattr(getattr(value, "op", None), "name", ""))
        if name != "relax.reshape":
            return None
        inner, extents = self.array_of(value.args[0]), extents_of(value)
        if inner is None or extents is None or not all(map(_is_known, extents)):
            return None
        return inner.reshape([int(e.value) for e in extents])


def find_groups(bindings):
    """The groups, by the numbers of their roots."""
    groups, group_of = {}, {}
    for index in reversed(range(len(bindings.all))):
        binding = bindings.all[index]
        call = getattr(binding, "value", None)
        operator = operator_of(call) if hasattr(call, "op") else None
        if operator is None or binding.var in bindings.arrays:
            continue
        known = {group_of.get(reader) for reader in bindings.readers[binding.var]}
        group = known.pop() if len(known) == 1 else None
        if group is None or not _can_join(bindings, group, index, operator):
            domain = operator.arguments[0] if operator.kind == REDUCED else call
            group = Group(index, extents_of(domain))
            if not 0 < len(group.extents) <= _MOST_AXES or not _fit(bindings, group, operator):
                continue
            groups[index] = group
        group.members.append(index)
        group.reductions += operator.reductions
        group_of[index] = group
    return groups


def _can_join(bindings, group, index, operator):
    call = bindings.all[index].value
    if (group.reductions + operator.reductions > _MOST_REDUCTIONS
            or len(group.members) >= _MOST_NODES // 6 or not _fit(bindings, group, operator)):
        return False
    if operator.kind == REDUCED:
        if not same_extents(extents_of(operator.arguments[0]), group.extents):
            return False
        result = extents_of(call)
        if len(result) != len(group.extents) or not is_one(result[-1]):
            return False
    is_row = not same_extents(extents_of(call), group.extents)
    if is_row and (not group.one_a_row(call) or operator.kind == ALONG
                   or not same_extents(extents_of(call)[:-1], group.extents[:-1])):
        return False
    # What goes along rows wants them, and only as its first argument.
    for reader in bindings.readers[bindings.all[index].var]:
        other = operator_of(bindings.all[reader].value)
        wants_rows = other.kind != EACH
        if wants_rows and (is_row or any(a.same_as(bindings.all[index].var)
                                         for a in other.arguments[1:])):
            return False
    inputs = {a for m in (*group.members, index) for a in _inputs(bindings, m)}
    return len(inputs) <= _MOST_INPUTS


def _inputs(bindings, index):
    return [a for a in operator_of(bindings.all[index].value).arguments
            if bindings.array_of(a) is None or bindings.array_of(a).size > 1]


def _fit(bindings, group, operator):
    """Whether the arguments have numbers for all of the group's rows, or one each."""
    for argument in operator.arguments:
        extents = extents_of(argument)
        if len(extents) > len(group.extents) or not is_float32(argument):
            return False
        for own, whole in zip(reversed(extents), reversed(group.extents)):
            if not is_one(own) and not same_extents([own], [whole]):
                return False
    return True


def program_of(bindings, group, inputs, given=None):
    """(program, whether each input has columns) of a group, None where it cannot be one.

    `inputs`, a list, gets what the program reads.  `given`: (variable, operator), the node that a
    variable is instead of an input.
    """
    from run_model_tools.kernels.programs import Program

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
        operator = operator_of(binding.value)
        result = operator.append(program, [node_of(a) for a in operator.arguments])
        if result is None:
            return None
        nodes[binding.var] = result
    if len(program.nodes) > 2 * _MOST_NODES:
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
