"""Kernels of TIR -> the text of programs for a GPU, in what GLSL and C++ with a few names of GLSL's
(cuda_text.py) have in common.

What is not known raises Unknown; nothing is passed through as text.  Here are the whole, buffers
and statements; expressions.py has what is computed.  Vectors are computed number by number, except
that numbers side by side in a buffer are loaded or stored together where their place is certain to
be a multiple of their number.
"""

import re

from run_model_tools.inside_tvm import called_operator
from run_model_tools.inside_tvm.devices.code.expressions import TYPES, Expressions, Unknown

_TAGS = {"%s.%s" % (word, axis): "int(%s.%s)" % (builtin, axis)
         for word, builtin in (("blockIdx", "gl_WorkGroupID"), ("threadIdx",
                                                               "gl_LocalInvocationID"))
         for axis in "xyz"}
_IGNORED_ATTRIBUTES = ("volatile_scope", "storage_alignment", "pragma_auto_unroll_max_step",
                       "pragma_unroll_explicit", "hand_threaded", "realize_scope", "reduce_scope")


class Writer(Expressions):
    """Of one lowered kernel: what is the same in both languages.

    CALLS are a language's functions by TIR's names of operators, HELPERS the texts of those that it
    has not, and UNROLL is what stands before a loop that is to be unrolled.
    """

    CALLS = {}  # type: dict
    HELPERS = {}  # type: dict
    UNROLL = ""
    PLACE = "%s"
    """How a place in a buffer is said that is a number of 64 bits."""

    def __init__(self, tvm, function):
        self._tvm, self._tir, self._function = tvm, tvm.tir, function
        self._lines, self._depth, self._count = [], 1, 0
        self._names, self._buffers, self._shared = {}, {}, []
        self._helpers, self._types, self._stored = [], set(), set()
        self._extents, self._guarded = {}, 0
        self._analyzer = tvm.arith.Analyzer()
        self._own, self._bound = {}, set()

    def _survey(self, body):
        """Notes how buffers are used, before anything is written."""
        tir, uses = self._tir, {}

        def visit(node):
            if isinstance(node, (tir.BufferLoad, tir.BufferStore)):
                known = self._buffers.get(node.buffer.data)
                if known is None or known.scope != "global":
                    return
                is_store = isinstance(node, tir.BufferStore)
                known.stored |= is_store
                known.loaded |= not is_store
                uses.setdefault(node.buffer.data, []).append(
                    (is_store, self._vector_place(node)))

        tir.stmt_functor.post_order_visit(body, visit)
        for data, found in uses.items():
            buffer = self._buffers[data]
            stores = {place for is_store, place in found if is_store}
            # A buffer is seen as numbers and as vectors only where nothing is written to it.
            if not stores:
                buffer.may_load_vectors = True
            elif not buffer.loaded and len(stores) == 1 and None not in stores:
                buffer.vector_lanes = stores.pop()

    def _vector_place(self, node):
        """How many numbers side by side, from a multiple of that on; None where it is not so."""
        tir = self._tir
        index = node.indices[-1]
        if len(node.indices) != 1 or not isinstance(index, tir.Ramp):
            return None
        lanes = int(index.lanes)
        known = self._buffers[node.buffer.data]
        if lanes not in (2, 4) or known.element not in ("float32", "int32", "uint32"):
            return None
        if not self._is_one(index.stride):
            return None
        modular = self._analyzer.modular_set(index.base)
        if int(modular.coeff) % lanes == 0 and int(modular.base) % lanes == 0:
            return lanes
        return None

    def _is_one(self, value):
        return isinstance(value, self._tir.IntImm) and int(value) == 1

    # The whole.

    def _arguments(self):
        """(types, buffers, types of scalars) of the parameters, which get names."""
        arguments, buffers, scalars = [], [], []
        for parameter in self._function.params:
            kind = str(parameter.dtype)
            arguments.append(kind)
            if kind == "handle":
                element = str(parameter.type_annotation.element_type.dtype)
                buffers.append(self._add_buffer(parameter, element, "global"))
            else:
                self._names[parameter] = self._scalar_name(len(scalars))
                scalars.append(self._type(kind))
        return arguments, buffers, scalars

    def _scalar_name(self, index):
        return "n%d" % index

    # Names and types.

    def _type(self, kind):
        if kind not in TYPES:
            raise Unknown("numbers of %s" % kind)
        self._types.add(kind)
        return TYPES[kind]

    def _fresh(self, letter):
        self._count += 1
        return "%s%d" % (letter, self._count)

    def _add_buffer(self, data, element, scope):
        buffer = _Buffer(self._fresh({"global": "g", "shared": "s", "local": "l"}[scope]), element,
                         scope)
        if element not in TYPES:
            raise Unknown("a buffer of %s" % element)
        if element != "bool":
            self._types.add(element)
        self._buffers[data] = buffer
        return buffer

    def _helper(self, name):
        if name in self.HELPERS and name not in self._helpers:
            self._helpers.append(name)
        return name

    # Statements.

    def _write(self, line):
        self._lines.append("  " * self._depth + line)

    def _block(self, body):
        self._depth += 1
        self._statement(body)
        self._depth -= 1
        self._write("}")

    def _statement(self, node):
        kind = type(node).__name__
        method = getattr(self, "_do_" + kind, None)
        if method is None:
            raise Unknown("the statement %s" % kind)
        method(node)

    def _do_SeqStmt(self, node):
        for one in node.seq:
            self._statement(one)

    def _do_AttrStmt(self, node):
        key = str(node.attr_key)
        if key == "thread_extent":
            tag = str(node.node.thread_tag)
            if tag not in _TAGS:
                raise Unknown("the thread axis %s" % tag)
            if tag.startswith("threadIdx"):
                if not isinstance(node.value, self._tir.IntImm):
                    raise Unknown("a group of threads of no fixed size")
                extent = int(node.value)
                if self._extents.setdefault(tag, extent) != extent:
                    raise Unknown("groups of different sizes")
            self._names[node.node.var] = _TAGS[tag]
            if isinstance(node.value, self._tir.IntImm):
                self._bind(node.node.var, 0, node.value)
        elif key not in _IGNORED_ATTRIBUTES:
            raise Unknown("the attribute %s" % key)
        self._statement(node.body)

    def _bind(self, variable, low, extent):
        if variable not in self._bound:
            self._bound.add(variable)
            self._analyzer.bind(variable, self._tvm.ir.Range.from_min_extent(low, extent))

    def _do_Allocate(self, node):
        scope = str(node.buffer_var.type_annotation.storage_scope) or "local"
        if scope not in ("local", "shared"):
            raise Unknown("memory of the scope %s" % scope)
        kind = self._tvm.DataType(node.dtype)
        element = re.sub(r"x\d+$", "", str(node.dtype))
        count = kind.lanes
        for extent in node.extents:
            if not isinstance(extent, self._tir.IntImm):
                raise Unknown("memory of no fixed size")
            count *= int(extent)
        buffer = self._add_buffer(node.buffer_var, element, scope)
        line = "%s %s[%d];" % ("bool" if element == "bool" else TYPES[element], buffer.name,
                               count)
        if scope == "shared":
            self._shared.append("shared " + line)
        else:
            self._write(line)
        self._statement(node.body)

    def _do_DeclBuffer(self, node):
        self._statement(node.body)

    def _do_LetStmt(self, node):
        name = self._fresh("v")
        value = self._expression(node.value)
        self._write("%s %s = %s;" % (self._type(str(node.var.dtype)), name, value))
        self._names[node.var] = name
        self._statement(node.body)

    def _do_For(self, node):
        if int(node.kind) not in (0, 3):
            raise Unknown("a loop that is neither serial nor unrolled")
        name = self._fresh("i")
        kind = self._type(str(node.loop_var.dtype))
        low, extent = self._expression(node.min), self._expression(node.extent)
        self._names[node.loop_var] = name
        if isinstance(node.min, self._tir.IntImm) and isinstance(node.extent, self._tir.IntImm):
            self._bind(node.loop_var, node.min, node.extent)
        unroll = self.UNROLL if int(node.kind) == 3 else ""
        self._write("%sfor (%s %s = %s; %s < %s + %s; ++%s) {" % (
            unroll, kind, name, low, name, low, extent, name))
        self._block(node.body)

    def _do_While(self, node):
        self._write("while (%s) {" % self._later(node.condition, 0))
        self._block(node.body)

    def _do_IfThenElse(self, node):
        self._write("if (%s) {" % self._expression(node.condition))
        self._block(node.then_case)
        if node.else_case is not None:
            self._write("else {")
            self._block(node.else_case)

    def _do_AssertStmt(self, node):
        self._statement(node.body)

    def _do_Evaluate(self, node):
        value = node.value
        if isinstance(value, self._tir.IntImm):
            return
        if called_operator(value) == "tir.tvm_storage_sync":
            scope = str(value.args[0].value)
            if scope != "shared":
                raise Unknown("a barrier of the scope %s" % scope)
            if any(b.stored and b.loaded for b in self._buffers.values()):
                self._write("memoryBarrierBuffer();")
            self._write("barrier();")
            return
        raise Unknown("the call %s as a statement" % getattr(
            getattr(value, "op", None), "name", type(value).__name__))

    def _do_BufferStore(self, node):
        buffer = self._buffer(node.buffer)
        lanes = self._tvm.DataType(node.value.dtype).lanes
        own = self._tvm.DataType(str(node.buffer.dtype)).lanes
        if getattr(node, "predicate", None) is not None:
            raise Unknown("a masked store")
        if len(node.indices) != 1:
            raise Unknown("a buffer of %d axes" % len(node.indices))
        index = node.indices[0]
        if buffer.vector_lanes is not None and own == 1:
            values = [self._lane(node.value, i) for i in range(lanes)]
            base = self._place_at(index.base, 0)
            self._write("%s[%s / %d] = %s(%s);" % (
                buffer.name, base, lanes, buffer.vector_type(lanes), ", ".join(values)))
            return
        # All numbers are computed before the first is stored: they may be of the same buffer.
        if lanes == 1:
            values = [self._expression(node.value)]
        else:
            values = []
            for i in range(lanes):
                values.append(self._fresh("t"))
                self._write("%s %s = %s;" % (self._scalar_type(node.value.dtype), values[-1],
                                             self._lane(node.value, i)))
        for i, value in enumerate(values):
            if buffer.element == "bool" and buffer.scope == "global":
                value = "int8_t((%s) ? 1 : 0)" % value
            self._write("%s[%s] = %s;" % (buffer.name, self._place(index, own, i), value))

    def _place(self, index, own, lane):
        """The number's place in a buffer whose elements are `own` numbers."""
        if own == 1:
            return self._place_at(index, lane)
        index_lanes = self._tvm.DataType(index.dtype).lanes
        if index_lanes != 1:
            return "%s * %d + %d" % (self._place_at(index, lane // own), own, lane % own)
        return "%s * %d + %d" % (self._place_at(index, 0), own, lane)

    def _place_at(self, index, lane):
        text = self._lane(index, lane)
        return self.PLACE % text if "64" in str(index.dtype).partition("x")[0] else text

    def _buffer(self, buffer):
        known = self._buffers.get(buffer.data)
        if known is None:
            raise Unknown("the buffer %s that nothing declares" % buffer.name)
        element = re.sub(r"x\d+$", "", str(buffer.dtype))
        if element != known.element and {element, known.element} != {"bool", "int8"}:
            raise Unknown("a buffer of %s that is taken for %s" % (known.element, element))
        return known


class _Buffer:
    def __init__(self, name, element, scope):
        self.name, self.element, self.scope = name, element, scope
        self.stored = self.loaded = False
        self.may_load_vectors, self.vector_lanes, self._lanes_seen = False, None, set()

    def vector_type(self, lanes):
        return {"float32": "vec", "int32": "ivec", "uint32": "uvec"}[self.element] + str(lanes)

    def as_vectors(self, lanes):
        self._lanes_seen.add(lanes)
        return "%sx%d" % (self.name, lanes)

    def vectors(self):
        """(name, type) of the vectors that it is seen as, beside numbers."""
        return [("%sx%d" % (self.name, lanes), self.vector_type(lanes))
                for lanes in sorted(self._lanes_seen)]

    def stored_type(self):
        if self.vector_lanes is not None:
            return self.vector_type(self.vector_lanes)
        return "int8_t" if self.element == "bool" else TYPES[self.element]
