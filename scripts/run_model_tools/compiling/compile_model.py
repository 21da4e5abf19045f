"""Compiles an ONNX or TensorFlow Lite model with TVM into an artifact that run_model runs.

  compile_model MODEL --name NAME --target TARGET --out artifacts

writes artifacts/NAME/TARGET/model.so, model.json, model.params and metadata.json, all or nothing.
An artifact that the same model, options and compiler made before is left alone.

TARGET is native (this machine), x86_64_v2, x86_64_v3, x86_64_v4, raspi4_aarch64, raspi5_aarch64,
raspi_armv7, pynq_z1, riscv64, c (C source, built here unless --no-build, and by make on any board),
a GPU with the CPU behind it (opencl, opencl-mali, opencl-adreno, vulkan, cuda-sm_87 ...;
opencl+raspi5_aarch64 ...), or any target string of TVM, as in --target "llvm -mcpu=skylake".
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools import tvm_process
from run_model_tools.compiling import (
    artifact,
    c_target,
    calibration_pictures,
    device_options,
    explanation,
    forms,
    relax_job,
    relay_job,
)
from run_model_tools.compiling.exact_sizes import Wanted, parse_exact
from run_model_tools.compiling.job import Job, is_up_to_date
from run_model_tools.compiling.open_shapes import open_shapes
from run_model_tools.compiling.report import print_report
from run_model_tools.errors import MALFORMED_FILE, USAGE, ToolError, command
from run_model_tools.files import json_text, write_atomically
from run_model_tools.frozen_inputs import read_frozen
from run_model_tools.kernels.convolutions import winograd_bytes
from run_model_tools.onnx_model import OnnxModel, read_model
from run_model_tools.pictures import preprocessing
from run_model_tools.pictures.preprocess import check_crop, check_levels
from run_model_tools.published.describing import Description, describe, full_masks
from run_model_tools.source_model import Shapes, SourceModel, parse_shape, resolve_shapes
from run_model_tools.targets import Target, find_target
from run_model_tools.tasks import presets
from run_model_tools.tasks.fit import Output, check_fit
from run_model_tools.tflite.model import is_tflite, read_tflite
from run_model_tools.tuning import selection
from run_model_tools.verifying import verification
from run_model_tools.verifying.agreement import AGREEMENT, ERROR, LEAST

REPORT_SCHEMA_VERSION = 1
COMPILERS = ("auto", "relay", "relax")
TVM_FAILED = (1, MALFORMED_FILE)
"""What a compilation ends with where TVM cannot take a network (tvm_process.py)."""
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL",
                        help="a file of ONNX (.onnx) or of TensorFlow Lite (.tflite)")
    _add_network_flags(parser)
    _add_artifact_flags(parser)
    _add_compiler_flags(parser)
    _add_comparison_flags(parser)
    _add_report_flags(parser)
    presets.add_flags(parser)
    parser.add_argument("--labels", type=Path, metavar="FILE",
                        help="the names of the network's own classes, one a line, in place of "
                             "those that --task brings")
    preprocessing.add_flags(parser)
    return parser.parse_args()


def _add_network_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the network")
    group.add_argument("--shape", action="append", default=[], metavar="INPUT:D0,D1,...",
                       help="shape of an input that the model leaves open; may be repeated")
    group.add_argument("--freeze", action="append", default=[], metavar="INPUT=WHAT",
                       help="make an input a constant: a number or some with commas between, or "
                            "what a file .npy, .npz (its member of that name, or its only one) "
                            "or .pb (a TensorProto) holds; may be repeated; for ONNX models")
    group.add_argument("--outputs", action="append", default=[], metavar="NAME,...",
                       help="end the network at these tensors, whatever their place in it, which "
                            "become its outputs; for ONNX models")
    group.add_argument("--input-layout", action="append", default=[], metavar="INPUT:LAYOUT",
                       help="layout of an input where its shape does not tell: "
                            f"{', '.join(preprocessing.LAYOUTS)}")
    group.add_argument("--dynamic", action="store_true",
                       help="what the model leaves open of its inputs' shapes stays open; "
                            "--shape says a shape at which it is tried")
    group.add_argument("--exact", action="append", default=[], metavar="NAME=SIZE/SIZE,...",
                       help="with --dynamic: sizes of the open extents for which the artifact has "
                            "functions of their own, as fast as those of a network of that size "
                            "(batch=1,length=16/64/128); may be repeated")


def _add_artifact_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the artifact")
    group.add_argument("--name", help="the model's name (default: the file's)")
    group.add_argument("--target", default="native", help="default: native")
    group.add_argument("--target-name", metavar="NAME",
                       help="the artifact's folder (default: after the target)")
    group.add_argument("--out", type=Path, default=Path("artifacts"), metavar="FOLDER",
                       help="default: artifacts")
    group.add_argument("--flat", action="store_true",
                       help="also write FOLDER/NAME_tvm.{so,json,params}, the older form")
    group.add_argument("--single-file", action="store_true",
                       help="also write model_single.so, which holds graph and parameters too")
    group.add_argument("--forms", metavar="F,G",
                       help="also make these forms of the artifact, below its folder's forms/: "
                            "flat, mod, tar, single, linked, mlf, or all (scripts/COMPILING.md); "
                            "what a target has none of is left out")
    group.add_argument("--cc", metavar="COMPILER",
                       help="what links the library (default: g++, or the target's cross "
                            "compiler); target c: what compiles it (default: cc)")
    group.add_argument("--cflags", metavar="FLAGS",
                       help=f"target c: how it is compiled (default: {c_target.DEFAULT_FLAGS})")
    group.add_argument("--no-build", action="store_true",
                       help="target c: write the source only, for the board's own compiler")


def _add_compiler_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it is compiled")
    group.add_argument("--compiler", choices=COMPILERS,
                       help="relay (default): TVM 0.18, which makes a graph and its parameters; "
                            "relax (default with --dynamic): today's TVM, which makes one library "
                            "(it is installed into build/relax when it is needed first); auto: "
                            "relay, and relax where that cannot take the network")
    group.add_argument("--opt-level", type=int, default=3, choices=range(5), metavar="0..4",
                       help="TVM's optimisation level (default: 3)")
    group.add_argument("--kernels", choices=("auto", "ours", "stock"), default="auto",
                       help="what computes convolutions and the like: ours, this project's "
                            "kernels; stock, TVM's own schedules; auto (default): ours where they "
                            "are of use")
    group.add_argument("--optimize-for", choices=tuple(winograd_bytes.GOALS),
                       default=winograd_bytes.SPEED,
                       help="what our kernels' parameters may take more memory than the network's "
                            "for: speed (default), what saves time that is worth its bytes; "
                            "balance, what saves much; size, nothing")
    group.add_argument("--precision", choices=("float32", "float16", "bfloat16", "int8"),
                       default="float32",
                       help="what the layers compute in (default: float32); float16 needs an Arm "
                            "CPU with fast half precision, bfloat16 Intel's AMX, int8 "
                            "--calibration, all of them our kernels")
    group.add_argument("--calibration", type=Path, metavar="FOLDER",
                       help="with --precision int8: pictures like those that the network will "
                            "see, some dozens; on each of them the network is judged with the "
                            "ranges of activations that others have")
    group.add_argument("--agreement", type=float, metavar="X",
                       help="with --precision int8: the share of pictures like these for which "
                            "the best class has to be expected to be that of the float32 network; "
                            f"layers stay float32 until it is (default: {AGREEMENT:g}, or "
                            f"{LEAST:g} where more would take much time)")
    group.add_argument("--tuning", choices=("auto", "none"), default="auto",
                       help="auto (default): use the tuning records of kernels/records/ that are "
                            "for this target; none: use none")
    group.add_argument("--tuning-records", type=Path, metavar="FILE",
                       help="use these records instead: of AutoTVM (also a whole log of TopHub), "
                            "the auto-scheduler, or a file that tune_model wrote")
    group.add_argument("--tvm-python", metavar="PYTHON",
                       help="an interpreter that has its own TVM (0.8 to 0.19) and onnx, instead "
                            f"of build/tvm; also {tvm_process.OWN_TVM_VARIABLE}")


def _add_comparison_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it is compared")
    group.add_argument("--no-verify", action="store_true",
                       help="do not run what was compiled, and compare it with nothing; its "
                            "metadata says so")
    group.add_argument("--verify-with", type=Path, metavar="FOLDER",
                       help="also compare on pictures of this folder, the first "
                            f"{calibration_pictures.MOST_TRIED} by name: trained detectors find "
                            "nothing in random inputs")
    group.add_argument("--tolerance", type=float, metavar="X",
                       help="allowed difference from the reference, relative to an element's own "
                            "value or to those around it (default: "
                            f"{verification.TOLERANCE:g}); with --precision float16 or bfloat16 "
                            "the root mean square of such differences (default: "
                            f"{verification.HALF_TOLERANCE:g}), with int8 the root mean "
                            "square of the differences, relative to the float32 network's output "
                            f"(default: {ERROR:g})")


def _add_report_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is done, and said of it")
    group.add_argument("--check", action="store_true",
                       help="only say by the exit status whether the artifact is up to date")
    group.add_argument("--force", action="store_true", help="compile even if it is")
    group.add_argument("--json", action="store_true", help="report as one JSON object")
    group.add_argument("--explain", action="store_true",
                       help="say what became of the network, node by node, under the names that "
                            "run_model --profile shows")
    group.add_argument("--report", type=Path, metavar="FILE.json",
                       help="also write the report to a file, with all that --explain says")


def parse_layout(text: str) -> tuple[str, str]:
    name, _, layout = text.rpartition(":")
    if not name or layout not in preprocessing.LAYOUTS:
        raise ToolError(USAGE, f"--input-layout {text} is not of the form INPUT:LAYOUT, with one "
                               f"of {', '.join(preprocessing.LAYOUTS)}.")
    return name, layout


def check_flags(args: argparse.Namespace, target: Target) -> None:
    """Raises ToolError (2) where flags do not go together, whatever the model."""
    args.compiler = args.compiler or ("relax" if args.dynamic else "relay")
    device_options.check(args, target, forms.parse(args.forms))
    if args.no_build and args.flat:
        raise ToolError(USAGE, "--flat needs a library, and --no-build makes none: leave one out.")
    if (args.precision == "int8") != (args.calibration is not None):
        raise ToolError(USAGE, "--precision int8 and --calibration FOLDER go together: name both "
                               "or neither.")
    if args.precision != "float32" and args.kernels == "stock":
        raise ToolError(USAGE, f"--precision {args.precision} is for our kernels, and --kernels "
                               "stock leaves them out: leave one out.")
    if args.agreement is not None and args.calibration is None:
        raise ToolError(USAGE, "--agreement is for --precision int8: leave it out.")
    if args.agreement is not None and not 0 <= args.agreement <= 1:
        raise ToolError(USAGE, f"--agreement {args.agreement:g} is no share: name a number from 0 "
                               "to 1.")
    if args.verify_with is not None and (args.no_verify or args.calibration is not None):
        raise ToolError(USAGE, "--verify-with goes neither with --no-verify nor with --precision "
                               "int8, which is judged on its --calibration pictures: leave it out.")


def _source(args: argparse.Namespace, published: dict[str, np.ndarray]) -> SourceModel:
    """published: further inputs that are constants."""
    frozen = {**read_frozen(args.freeze), **published}
    if not is_tflite(args.model):
        return read_model(args.model, frozen, args.outputs)
    for flag, value in (("--freeze", frozen), ("--outputs", args.outputs)):
        if value:
            raise ToolError(USAGE, f"{flag} is for ONNX models: leave it out.")
    return read_tflite(args.model)


def _described(args: argparse.Namespace, model: SourceModel, given: Shapes) -> Description:
    """How pictures are prepared and what the outputs mean; `given`: --shape."""
    said = describe(args, model, given)
    tasks = said.tasks
    if args.labels is not None:
        tasks = presets.with_labels(tasks, args.labels)
    if tasks:
        check_fit(tasks, [Output(*one) for one in zip(
            model.outputs, model.output_shapes, model.output_dtypes)], str(args.model))
    return replace(said, tasks=tasks)


def _shapes(args: argparse.Namespace, model: SourceModel, given: Shapes, exact: Wanted,
            ) -> tuple[Shapes, Shapes]:
    """Of the inputs, and where extents stay open also those of an example; `given`: --shape,
    `exact`: --exact."""
    if args.dynamic and args.compiler != "relax":
        raise ToolError(USAGE, f"--dynamic is not for --compiler {args.compiler}: graphs of TVM "
                               "0.18 have fixed shapes; leave one of the two out.")
    if args.dynamic and args.verify_with is not None and not given:
        raise ToolError(USAGE, "--verify-with needs a size for pictures with --dynamic: name one "
                               "with --shape.")
    if exact and not args.dynamic:
        raise ToolError(USAGE, "--exact is for --dynamic: add it, or name one size with --shape.")
    if args.dynamic and isinstance(model, OnnxModel):
        # Without an example, its own shape, of which an open first extent alone is a batch of 1.
        return open_shapes(model), resolve_shapes(model, given) if given else {}
    return resolve_shapes(model, given), {}


def make_job(args: argparse.Namespace) -> Job:
    """What the flags ask for; raises ToolError where they do not go together or with the model."""
    name = args.name or args.model.stem
    if not _FILE_NAME.fullmatch(name):
        raise ToolError(USAGE, f"--name '{name}' becomes a file name: use letters, digits and "
                               "._+- only, and start with a letter or digit.")
    target = find_target(args.target, args.target_name)
    if not _FILE_NAME.fullmatch(target.name):
        raise ToolError(USAGE, f"--target-name '{target.name}' becomes a folder's name: use "
                               "letters, digits and ._+- only.")
    check_flags(args, target)
    given = dict(parse_shape(text) for text in args.shape)
    model = _source(args, {})
    masks = full_masks(args, model, given)
    if masks:
        model = _source(args, masks)
    layouts = dict(parse_layout(text) for text in args.input_layout)
    for item in layouts:
        if item not in [i.name for i in model.inputs]:
            raise ToolError(USAGE, f"--input-layout names '{item}', and the model's inputs are "
                                   f"{', '.join(i.name for i in model.inputs)}.")
    said = _described(args, model, given)
    said.notes.extend(f"{name} is no input but ones, since a picture fills the other one "
                      f"(--shape {name}:... keeps it)" for name in masks)
    described = said.preprocessing
    if args.verify_with is not None:
        calibration_pictures.stated(described, "--verify-with")
    exact = parse_exact(args.exact)
    shapes, examples = _shapes(args, model, given, exact)
    job = Job(
        name=name, model=model, target=target, out=args.out,
        shapes=shapes, dynamic=args.dynamic, examples=examples, exact=exact,
        compiler="relax" if args.compiler == "relax" else "relay",
        preprocessing=described, labels=said.labels, tasks=said.tasks, notes=tuple(said.notes),
        layouts=layouts,
        opt_level=args.opt_level,
        records=selection.choose(args.tuning, args.tuning_records, target),
        kernels="ours" if args.precision != "float32" else args.kernels,
        optimize_for=args.optimize_for, precision=args.precision, calibration=args.calibration,
        agreement=args.agreement,
        cc=args.cc,
        flat=args.flat, single_file=args.single_file, forms=forms.parse(args.forms),
        build_c=not args.no_build,
        c_flags=args.cflags, verified=not args.no_verify,
        verify_with=args.verify_with, tolerance=args.tolerance,
        tvm_python=tvm_process.own_tvm_python(args.tvm_python))
    if described is not None and len(shapes) == 1:
        ((item, shape),) = shapes.items()
        check_crop(described, shape, job.layout(item))
        (taken,) = [one for one in model.inputs if one.name == item]
        check_levels(described, taken.dtype, taken.scale)
    return job


def compile_with(compiler: str, job: Job) -> tuple[Job, dict[str, Any]]:
    """The job that was done, and its report: "auto" takes the other compiler where the first one
    cannot take the network."""
    if compiler == "relax":
        return job, relax_job.compile_job(job)
    try:
        return job, relay_job.compile_job(job)
    except ToolError as error:
        if job.target.device:
            raise
        # What is wrong with the file, the options or the machine is so for both.
        if compiler != "auto" or error.code not in TVM_FAILED:
            raise
        other = replace(job, compiler="relax")
        try:
            report = relax_job.compile_job(other)
        except ToolError as second:
            raise ToolError(error.code, f"with --compiler relay, {error}\n"
                                        f"with --compiler relax, {second}") from None
        return other, {**report, "other_compilers": {"relay": str(error)}}


@command
def main() -> int:
    args = parse_arguments()
    job = make_job(args)
    ready = is_up_to_date(job)
    if args.compiler == "auto" and not ready and is_up_to_date(replace(job, compiler="relax")):
        job, ready = replace(job, compiler="relax"), True
    if args.check:
        return 0 if ready else 1
    report: dict[str, Any]
    if ready and not args.force:
        metadata = artifact.read_metadata(job.directory / artifact.METADATA) or {}
        report = {"metadata": metadata, "verification": metadata["verification"], "seconds": {}}
    else:
        job, report = compile_with(args.compiler, job)
    report = {"schema_version": REPORT_SCHEMA_VERSION, "directory": str(job.directory),
              "up_to_date": ready and not args.force, "notes": list(job.notes), **report}
    metadata = report["metadata"]
    explained = (explanation.of_functions(metadata["kernels"]) if job.compiler == "relax" else
                 explanation.explain((job.directory / artifact.GRAPH).read_text(),
                                     metadata.get("plain_schedules", [])))
    if args.report:
        text = json_text({**report, "explanation": explained})
        write_atomically(args.report, text.encode())
    if args.json:
        print(json.dumps({**report, "explanation": explained} if args.explain else report,
                         indent=2))
    else:
        print_report(job, report)
        if args.explain:
            print("\n".join(f"  {line}" for line in explanation.as_text(explained)))
    return 0
