"""Programs over tensors: elementwise chains, softmax, normalisations, moves (c/f32-rows.c.in)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.programs import tables, transposed
from run_model_tools.kernels.programs.code import Operand, Sources, operand, passes
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.programs.transposed import Factors
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import common_factors, joined_factors

_TASK = 40_000
"""Additions that are worth a task of their own: some microseconds, as in parts.py."""


def output_shape(program: Program) -> tuple[int, ...]:
    """Of the tensor that a program makes."""
    return program.shape[:-1] if program.gives_rows else program.shape


def can_run(program: Program) -> bool:
    """Whether the kernel can go over its places."""
    return math.prod(program.shape) > 0 and domain(program) is not None


def transposes(program: Program, isa: Isa) -> bool:
    """Whether some of its rows lie beside each other and are gone through as if they did not."""
    laid = _Laid.of(program, isa)
    return laid is not None and laid.beside is not None


def options(program: Program, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: how many tasks."""
    laid = _Laid.of(program, isa)
    if laid is None:
        return []
    count = laid.units
    work = math.prod(program.shape) * (program.cost + 2) / isa.lanes
    tasks = max(1, min(16, count, int(work * isa.lanes / _TASK)))
    return [{"parts": tasks}] + [{"parts": n} for n in (1, 2, 4, 8) if n != tasks and n <= count]


def make(program: Program, isa: Isa, parts: int) -> Layer:
    """A layer with these parameters.  Its inputs are Program.tensors() without constants."""
    laid = _Laid.of(program, isa) or _Laid([], [], [], None)
    sources = Sources.of(program.inputs)
    program, found = tables.tabulated(program)
    width = laid.width
    padded = -(-width // isa.lanes) * isa.lanes
    code = passes(program, laid.read())
    kept = padded * code.kept
    defines = {**isa.defines(), **code.defines, **tables.defines(found, len(sources.constants)),
               "ROWS": math.prod(c for c, _ in laid.rows), "COLUMNS": width, "PASSES": code.count,
               "PARTS": parts, "KEPT_STRIDE": padded}
    if program.gives_rows:
        defines["OUTPUT_ROW"] = 1
    if laid.beside is not None:
        copies = width if program.is_copy else None
        defines.update(laid.beside.defines(laid.operands, kept, copies))
        kept += 0 if program.is_copy else laid.beside.scratch
    name = "rows" if program.reduces else "elementwise"
    return Layer(name, "f32-rows.c.in", defines, (Phase("rows", parts),),
                 tuple((t.shape, "float32") for t in sources.inputs),
                 (*sources.constants, *(table.numbers for table in found)),
                 output_shape(program), scratch_bytes=4 * kept,
                 variant=isa.variant(), note={"kernel": name, "parts": parts})


def of_view(factors: Factors, index: int) -> list[tuple[int, int]]:
    """Of factors of all views (domain()), one's."""
    return [(count, strides[index]) for count, strides in factors]


def domain(program: Program) -> tuple[Factors, Factors] | None:
    """(rows, columns) as factors of all inputs; None where there are no such."""
    found: list[Factors] = []
    for axes in zip(*(view.axes for view in program.inputs), strict=True):
        factors = common_factors(axes)
        if factors is None:
            return None
        found.append(factors)
    if not program.inputs:
        found = [[(size, ())] for size in program.shape]
    if program.reduces:
        columns = _as_they_lie(found[-1]) if program.gives_rows else found[-1]
        return joined_factors([f for axis in found[:-1] for f in axis]), columns
    return joined_factors([f for axis in found for f in axis]), []


def _as_they_lie(columns: Factors) -> Factors:
    """Columns in the order in which the inputs have them in memory.  Where a row is only summed up
    or the like, any order will do, and numbers in blocks are in a row in that of memory only."""
    return joined_factors(sorted(columns, key=lambda factor: -sum(map(abs, factor[1]))))


@dataclass(frozen=True)
class _Laid:
    """How the kernel goes over a program's places."""

    rows: Factors
    columns: Factors
    operands: list[Operand]
    beside: transposed.Transposed | None

    @staticmethod
    def of(program: Program, isa: Isa) -> _Laid | None:
        places = domain(program)
        if places is None:
            return None
        rows, columns = _shared_out(places, program, isa)
        laid = _Laid._over(rows, columns, program, isa)
        if laid.beside is not None or program.reduces or not columns:
            return laid
        cut = transposed.cut_columns(rows, columns)
        shorter = None if cut is None else _Laid._over(*cut, program, isa)
        return shorter if shorter is not None and shorter.beside else laid

    @staticmethod
    def _over(rows: Factors, columns: Factors, program: Program, isa: Isa) -> _Laid:
        sources = Sources.of(program.inputs)
        operands = [operand(view, of_view(rows, i), of_view(columns, i), sources, isa.lanes)
                    for i, view in enumerate(program.inputs)]
        width = math.prod(c for c, _ in columns)
        beside = transposed.of(rows, operands, width, isa.lanes, program.is_copy)
        return _Laid(rows, columns, operands, beside)

    @property
    def width(self) -> int:
        return math.prod(c for c, _ in self.columns)

    @property
    def units(self) -> int:
        """Rows, or tiles of them, which tasks share out."""
        count = math.prod(c for c, _ in self.rows)
        return count if self.beside is None else self.beside.tiles(count)

    def read(self) -> list[Operand]:
        """The operands as the program finds them."""
        read = list(self.operands)
        if self.beside is not None:
            for place, which in enumerate(self.beside.inputs):
                read[which] = self.beside.operand(place, self.width)
        return read


def _shared_out(places: tuple[Factors, Factors], program: Program, isa: Isa
                ) -> tuple[Factors, Factors]:
    """Where no row has to stay whole: the inner factor makes rows that are long, but many.  Of one
    that fills no vector the next one makes rows with it."""
    rows, columns = places
    if program.reduces or not rows:
        return rows, columns
    short = rows[-1:] if len(rows) > 1 and 2 * rows[-1][0] <= isa.lanes else []
    *rows, (count, strides) = rows[:len(rows) - len(short)]
    width = math.prod(c for c, _ in short)
    if math.prod(c for c, _ in rows) >= 16 or count * width < 64 * isa.lanes:
        return rows, [(count, strides), *short]
    for cut in (16, 14, 12, 15, 13, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2):
        inner = count // cut
        if count % cut == 0 and inner * width % isa.lanes == 0:
            return ([*rows, (cut, tuple(s * inner for s in strides))],
                    [(inner, strides), *short])
    return rows, [(count, strides), *short]


def inputs_of(program: Program) -> list[Tensor]:
    """The tensors that a step with the program reads."""
    return Sources.of(program.inputs).inputs
