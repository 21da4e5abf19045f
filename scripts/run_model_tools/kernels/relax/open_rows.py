"""Programs over rows whose extents are open, as functions that Relax calls
(c/f32-open-rows.c.in)."""

from __future__ import annotations

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import c_defines
from run_model_tools.kernels.programs.code import Operand, passes
from run_model_tools.kernels.programs.program import Program

_ANY = 1 << 20
"""An extent that nothing depends on."""


def operand(index: int, has_columns: bool) -> Operand:
    """An input: one number a row, or as many as there are columns."""
    return Operand(f"c->in[{index}]", f"at[{index}]", ((_ANY, int(has_columns)),))


def source(name: str, program: Program, has_columns: list[bool], widest: int, gives_rows: bool,
           axes: int, isa: Isa) -> str:
    """C code, to follow ffi_c's, of the function `name` (inputs ..., [result]).

    has_columns: of each input; `widest` is one that has all of a row's.  gives_rows: the result is
    one number a row.  axes: how many of the last ones are a row.
    """
    code = passes(program, [operand(i, has) for i, has in enumerate(has_columns)])
    defines: dict[str, object] = {
        **isa.defines(), **code.defines, "PASSES": code.count, "KEPT": code.kept,
        "FUNCTION": f"__tvm_ffi_{name}", "INPUTS": len(has_columns), "WIDEST": widest,
        "INPUT_COLUMNS": [int(has) for has in has_columns], "REDUCES": program.reduces,
        "COLUMN_AXES": axes,
        "COST": int(program.cost) + 2}
    if gives_rows:
        defines["OUTPUT_ROW"] = 1
    return c_defines(defines) + '#include "f32-open-rows.c.in"\n'
