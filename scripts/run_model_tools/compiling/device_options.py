"""What compile_model's options mean for a GPU: those that mean nothing there are refused."""

from __future__ import annotations

import argparse

from run_model_tools.errors import USAGE, ToolError
from run_model_tools.targets import Target

_FORMS = ("linked", "mlf")
"""Parameters in the code would be on the CPU, and Model Library Format has no GPU's code."""


def check(args: argparse.Namespace, target: Target, forms: tuple[str, ...]) -> None:
    """Raises ToolError (2) where the options ask for what there is not on a GPU."""
    if target.device is None:
        return
    refused = [
        (args.precision != "float32", f"--precision {args.precision}",
         "such layers are kernels of ours, which are for CPUs"),
        (args.kernels == "ours", "--kernels ours",
         "of ours GPUs have those for rows and matrices, without being asked"),
        (args.compiler == "relax", "--compiler relax", "code for GPUs is made by TVM 0.18"),
        (args.no_build, "--no-build", "it is for C source"),
        (args.single_file, "--single-file", "parameters would be in the CPU's memory"),
        *((form in forms, f"--forms {form}", "it has no place for a GPU's code and memory")
          for form in _FORMS if args.forms != "all")]
    for is_so, option, reason in refused:
        if is_so:
            raise ToolError(USAGE, f"{option} is not for the target {target.name}: {reason}; "
                                   "leave it out.")


def possible_forms(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the forms that an artifact for a GPU has."""
    return tuple(name for name in names if name not in (*_FORMS, "single"))
