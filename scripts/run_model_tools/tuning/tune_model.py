"""Measures how to compile a network's layers best, and keeps what was best.

  tune_model MODEL.onnx --target x86_64_v4 --minutes 30

tries schedules of each layer on this machine, or on a board behind an RPC tracker, and puts the
fastest into kernels/records/FAMILY.TARGET.KIND, where compile_model finds them, also for other
networks with the same layers.  Every trial is kept in build/tuning/: interrupt it at any time, and
call it again to go on.

--kernels ours chooses among this project's own kernels and their parameters, layer by layer: that
takes minutes, and what makes the whole network faster goes to kernels/choices/FAMILY.TARGET.json.
--kernels stock tunes TVM's schedules, which compile_model takes for networks and targets that our
kernels are not for, and with --kernels stock.

Methods for TVM's schedules: autotvm (TVM's templates, layer by layer, and with --graph-tuner the
layouts of the whole graph), auto_scheduler (Ansor) and metaschedule; all divides the time among the
three.  Records of AutoTVM serve any network; those of the others and the graph's layouts are for
networks of just these layers, and are kept only if they make the whole network faster than the
rest.
"""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, USAGE, ToolError, command
from run_model_tools.files import copy_atomically
from run_model_tools.kernels.choices import FOLDER
from run_model_tools.onnx_model import read_model
from run_model_tools.source_model import parse_shape, resolve_shapes
from run_model_tools.targets import Target, find_target, named_targets
from run_model_tools.tuning import choices, evaluation, gpus, selection, session
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning.session import METHODS, TUNERS, TuningJob
from run_model_tools.tuning.weighing import Weighing

REPORT_SCHEMA_VERSION = 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--family", help="what the records are called after (default: the file's "
                                         "name, without seeded_)")
    parser.add_argument("--target", default="native",
                        help="a name of artifacts/targets.json (default: native, which is "
                             "x86_64_v3 or x86_64_v4)")
    parser.add_argument("--shape", action="append", default=[], metavar="INPUT:D0,D1,...",
                        help="shape of an input that the model leaves open; may be repeated")
    parser.add_argument("--kernels", choices=("ours", "stock", "both"), default="both",
                        help="whose kernels to measure: this project's, those that TVM's schedules "
                             "make, or both (default; ours only where this machine runs them)")
    parser.add_argument("--json", action="store_true", help="report as one JSON object")
    _add_kernels_flags(parser)
    _add_search_flags(parser)
    _add_measurement_flags(parser)
    _add_records_flags(parser)
    args = parser.parse_args()
    if args.records_dir is None:
        is_gpu = find_target(args.target).device is not None
        args.records_dir = args.log_dir / "records" if is_gpu else selection.COMMITTED
    return args


def _add_kernels_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("our kernels")
    group.add_argument("--options", type=int, default=12, metavar="N",
                       help="ours: kernels tried of one layer at most (default: 12)")
    group.add_argument("--real-time", action="store_true",
                       help="ours: measure above all other programs' priority, for machines that "
                            "are not idle (needs the right to, as root has it)")
    group.add_argument("--choices-dir", type=Path, default=FOLDER, metavar="FOLDER",
                       help="ours: where choices go (default: kernels/choices)")


def _add_search_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("TVM's schedules")
    group.add_argument("--method", default="autotvm", choices=(*METHODS, "all"),
                       help="default: autotvm")
    group.add_argument("--minutes", type=float, default=30, metavar="M",
                       help="time to measure for, in all (default: 30); 0 measures nothing and "
                            "works on the trials that are there")
    group.add_argument("--trials", type=int, metavar="N",
                       help="at most so many trials for each method")
    group.add_argument("--tasks", metavar="I,J", default="",
                       help="tune only these tasks, numbered as --list does")
    group.add_argument("--list", action="store_true", help="list the tasks and measure nothing")
    group.add_argument("--graph-tuner", action="store_true",
                       help="also choose the layouts of the whole graph from AutoTVM's trials")
    group.add_argument("--any-layout", action="store_true",
                       help="autotvm: also try blocks of channels other than one vector; each may "
                            "cost conversions before and after its layer, which --graph-tuner "
                            "weighs")
    group.add_argument("--tuner", choices=TUNERS, default="guided",
                       help="how to search: by a model of this layer and of what was measured of "
                            "others (guided, the default, which also ends a layer that nothing is "
                            "to be gained of), by gradient-boosted trees (xgb; installs "
                            "xgboost-cpu into build/tuning/site), a genetic algorithm (ga), one "
                            "that deep Q-networks steer (ga-dqn), at random or in order; "
                            "auto_scheduler and metaschedule learn with xgb unless it is random")
    group.add_argument("--history", type=Path, action="append", default=[], metavar="LOG",
                       help="guided: a log of AutoTVM's of other machines to learn from before "
                            "the first trial, as TopHub's; of several machines in it, those of "
                            "the target's architecture count where there are any; may be repeated")
    group.add_argument("--seed", type=int, metavar="N",
                       help="guided and ga-dqn: makes what is proposed repeatable")
    group.add_argument("--layout", choices=("NCHW", "NHWC"), default="NHWC",
                       help="to which auto_scheduler and metaschedule convert convolutions "
                            "(default: NHWC, for which they have the better rules)")


def _add_measurement_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where and how it is measured")
    group.add_argument("--tracker", metavar="HOST:PORT",
                       help="measure on a device behind an RPC tracker")
    group.add_argument("--device-key", metavar="KEY", help="the device's key at the tracker")
    group.add_argument("--device", metavar="KIND[:0]",
                       help="measure on this machine's GPU, for a --target of its kind: opencl, "
                            "vulkan or cuda")
    group.add_argument("--cc", metavar="COMPILER",
                       help="what links for the device (default: the target's compiler)")
    group.add_argument("--threads", type=int, metavar="N",
                       help="threads that a measured kernel runs on (default: the cores)")
    group.add_argument("--repeat", type=int, default=3, metavar="N",
                       help="measurements of one trial (default: 3)")
    group.add_argument("--min-repeat-ms", type=int, default=20, metavar="MS",
                       help="how long one measurement lasts at least (default: 20)")


def _add_records_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is kept")
    group.add_argument("--from", dest="foreign", type=Path, action="append", default=[],
                       metavar="LOG",
                       help="also take the trials of another log, for this network's layers and "
                            "this target; may be repeated")
    group.add_argument("--records-dir", type=Path, metavar="FOLDER",
                       help="where the best records go (default: kernels/records; of a GPU, the "
                            "folder records in --log-dir, for compile_model --tuning-records)")
    group.add_argument("--log-dir", type=Path, default=session.TUNING_DIR, metavar="FOLDER",
                       help="where trials are kept (default: build/tuning)")
    group.add_argument("--replace", action="store_true",
                       help="replace records that were measured on another machine or with "
                            "another number of threads")
    group.add_argument("--evaluate", action=argparse.BooleanOptionalAction, default=None,
                       help="compile with and without the records, compare the times of the "
                            "whole network, and put into place only what is faster (default: "
                            "where this machine or a board behind --tracker runs the target)")
    group.add_argument("--evaluate-seconds", type=float, default=10, metavar="S",
                       help="how long the versions are run in turn (default: 10)")


def make_job(args: argparse.Namespace) -> TuningJob:
    target = find_target(args.target)
    if target.device:
        check_gpu(args, target)
    elif args.device is not None:
        raise ToolError(USAGE, f"--device {args.device} is for GPUs, and '{args.target}' is none.")
    else:
        name = selection.record_target(target)
        if name is None:
            raise ToolError(USAGE, (
                f"records are kept by the target's name, and '{args.target}' has none: give one of "
                f"{', '.join(n for n in named_targets() if n not in ('native', 'c'))}."))
        target = find_target(name)
    if (args.tracker is None) != (args.device_key is None):
        raise ToolError(USAGE, "--tracker HOST:PORT and --device-key KEY belong together.")
    if args.tracker is not None and not args.tracker.rpartition(":")[2].isdigit():
        raise ToolError(USAGE, f"--tracker {args.tracker} is not of the form HOST:PORT.")
    if args.minutes < 0 or (args.trials is not None and args.trials < 1):
        raise ToolError(USAGE, "--minutes takes no negative number, and --trials none below 1.")
    if args.options < 1:
        raise ToolError(USAGE, "--options takes no number below 1.")
    if args.kernels == "ours" and (args.list or why_not_ours(args, target)):
        raise ToolError(USAGE, "--kernels ours is not possible: " + (
            why_not_ours(args, target) or "--list lists what is tuned of TVM's schedules") + ".")
    here = target.device is not None or evaluation.can_run_here(target)
    if args.tracker is None and not here and args.minutes and not args.list:
        raise ToolError(USAGE, (
            f"this machine does not run code for {target.name}: measure on a board that does, with "
            "--tracker and --device-key."))
    try:
        tasks = tuple(int(text) for text in args.tasks.split(",") if text)
    except ValueError:
        raise ToolError(
            USAGE, f"--tasks {args.tasks} is not a list of numbers, as 0,3,4.") from None
    for path in (*args.foreign, *args.history):
        if not path.is_file():
            raise ToolError(MISSING_FILE, f"{path} is not there.")
    check_history(args)
    model = read_model(args.model)
    tracker = (args.tracker, args.device_key) if args.tracker else None
    return TuningJob(
        model=model, family=args.family or session.family_of(args.model.stem),
        target=target, shapes=resolve_shapes(model, dict(parse_shape(text) for text in args.shape)),
        minutes=args.minutes, trials=args.trials, tasks=tasks, tuner=args.tuner, seed=args.seed,
        history=tuple(args.history),
        any_layout=args.any_layout or args.graph_tuner,
        threads=args.threads or session.physical_cores(),
        layout=args.layout if args.layout != "NCHW" else None,
        tracker=tracker,
        cc=args.cc or target.compiler(), log_dir=args.log_dir,
        measure={"repeat": args.repeat, "min_repeat_ms": args.min_repeat_ms})


def check_gpu(args: argparse.Namespace, target: Target) -> None:
    """Raises ToolError where a GPU's target cannot be tuned for in the way that is asked."""
    kind, _, number = (args.device or "").partition(":")
    if args.method != "autotvm" or args.graph_tuner:
        raise ToolError(USAGE, "layers of GPUs are tuned with --method autotvm, and without "
                               "--graph-tuner.")
    if args.list:
        return
    if (args.device is None) == (args.tracker is None):
        raise ToolError(USAGE, f"'{args.target}' is a GPU: measure on this machine's with --device "
                               f"{target.device}, or on a board's with --tracker and --device-key.")
    if args.device is not None and (kind != target.device or number not in ("", "0")):
        raise ToolError(USAGE, f"--device {args.device} is not {target.device} or "
                               f"{target.device}:0: TVM measures on the first GPU of its kind.")
    machine = tuning_records.target_words(target.host or "")["machine"]
    if args.device is not None and machine != platform.machine():
        raise ToolError(USAGE, f"'{args.target}' has its kernels started by code for {machine}, "
                               "which this machine does not run: name another target, or measure "
                               "on a board with --tracker and --device-key.")


def check_history(args: argparse.Namespace) -> None:
    """Raises ToolError where --history would be of no use."""
    if args.history and args.tuner != "guided":
        raise ToolError(USAGE, "--history is what --tuner guided learns from, and "
                               f"{args.tuner} does not: leave one of them out.")
    for path in args.history:
        if not any(record.template for record in tuning_records.read(path)[1]):
            raise ToolError(MALFORMED_FILE, f"{path} has no record of AutoTVM.")


def why_not_ours(args: argparse.Namespace, target: Target) -> str | None:
    """Why our kernels cannot be measured; None if they can."""
    if target.device:
        return "they are for CPUs"
    if args.tracker is not None:
        return "our kernels are measured on this machine only, not behind a tracker"
    if not evaluation.can_run_here(target):
        return f"this machine does not run code for {target.name}"
    if not args.minutes and args.kernels == "both":
        return "--minutes 0 measures nothing"
    return None


def choose_kernels(job: TuningJob, args: argparse.Namespace) -> dict:
    """The report's "kernels": our kernels measured, or why they were not."""
    reason = why_not_ours(args, job.target)
    if reason is None:
        try:
            return choices.choose(job, args.choices_dir, args.options, args.evaluate_seconds,
                                  args.real_time)
        except ToolError as error:
            # A network that they are not for is no failure of the rest.
            if args.kernels == "ours" or error.code != USAGE:
                raise
            reason = str(error)
    return {"skipped": reason}


def tune_schedules(job: TuningJob, args: argparse.Namespace) -> dict:
    """The report's "methods", "evaluation" and "outcome": TVM's schedules tuned."""
    methods = list(METHODS) if args.method == "all" else [args.method]
    candidates = job.log_dir / "candidates"
    candidates.mkdir(parents=True, exist_ok=True)
    # What is in place competes too; what is left of another session does not.
    for kind in tuning_records.KINDS:
        job.records(candidates, kind).unlink(missing_ok=True)
        if job.records(args.records_dir, kind).exists():
            copy_atomically(job.records(args.records_dir, kind), job.records(candidates, kind))
    job = replace(job, minutes=job.minutes / len(methods))
    report: dict[str, Any] = {
        "methods": [run_method(job, method, args, candidates) for method in methods]}
    evaluate = args.evaluate
    if evaluate is None:
        evaluate = bool(job.tracker or job.device_name) or evaluation.can_run_here(job.target)
    if evaluate:
        report["evaluation"] = evaluation.evaluate(job, candidates, args.evaluate_seconds,
                                                   args.records_dir)
        report["outcome"] = evaluation.settle(job, candidates, args.records_dir,
                                              report["evaluation"])
    else:
        report["outcome"] = put_into_place(job, candidates, args.records_dir)
    return report


def run_method(job: TuningJob, method: str, args: argparse.Namespace, candidates: Path) -> dict:
    """Tunes by one method, and writes its candidates: the records that are there, and its own."""
    if job.minutes:
        report = session.tune(job, method)
    else:
        report = {**session.list_tasks(job, method), "method": method, "trials": 0,
                  "failed": 0}
    records = session.read_trials(job, method)
    keys = {key for task in report["tasks"] for key in task["keys"]}
    for path in args.foreign:
        records += session.read_foreign(path, keys, report["target"])
    if keys:
        records = [record for record in records if record.key in keys]
    if records:
        report["records"] = session.merge(
            job.records(candidates, method),
            session.header(job, method, report["network"]), records, Weighing(report["tasks"]),
            args.replace)
    if method == "autotvm" and args.graph_tuner:
        report["graph"] = choose_layouts(job, records, report["network"], candidates)
    return report


def choose_layouts(job: TuningJob, records: list, network: str, candidates: Path) -> dict:
    """Runs the graph tuner over all trials, and writes its candidate."""
    trials = job.log_dir / f"{job.family}.{job.target.name}.all.trials"
    tuning_records.write(trials, {}, records)
    result = session.tune_graph(job, trials)
    tuning_records.write(job.records(candidates, "graph"),
                         session.header(job, "graph", network),
                         tuning_records.read(job.log("graph"))[1])
    return {"chosen": result["chosen"], "tuner": result["tuner"]}


def print_tasks(report: dict) -> None:
    total = sum(task["weight"] for task in report["tasks"]) or 1
    print(f"{'task':>4}  {'share':>5}  {'times':>5}  {'MFLOP':>8}  {'choices':>8}  layer")
    for task in report["tasks"]:
        print(f"{task['index']:4}  {task['weight'] / total:5.1%}  {task['occurrences']:5}  "
              f"{task['flops'] / 1e6:8.1f}  {task['space'] or '':>8}  {task['name']}")


def print_report(report: dict) -> None:
    if "kernels" in report:
        choices.print_report(report["kernels"])
    for method in report.get("methods", ()):
        print(f"{method['method']}: {method['trials']} trials, {method['failed']} of them failed, "
              f"of {len(method['tasks'])} tasks")
        for task in method["tasks"]:
            if task.get("trials"):
                speed = f"{task['gflops']:7.1f} GFLOP/s" if task["gflops"] else "  none worked"
                print(f"  {task['trials']:5} trials {speed}  {task['name']}")
        if "records" in method:
            records = method["records"]
            print(f"  best records: {records['new']} new, {records['faster']} faster than before, "
                  f"{records['kept']} not")
    for name, times in report.get("evaluation", {}).items():
        print(f"{name}: {times['median_ms']:.3f} ms a run (least {times['min_ms']:.3f}), "
              f"{times['ratio']:.3f} of the untuned time")
    for kind, outcome in report.get("outcome", {}).items():
        print(f"{kind}: {outcome}")


def put_into_place(job: TuningJob, candidates: Path, folder: Path) -> dict:
    """Without an evaluation, only what is chosen layer by layer is likely to be a gain."""
    outcome = {}
    for kind in tuning_records.KINDS:
        candidate = job.records(candidates, kind)
        if not candidate.exists():
            continue
        if kind == "autotvm":
            copy_atomically(candidate, job.records(folder, kind))
            outcome[kind] = f"in {job.records(folder, kind)}"
        else:
            outcome[kind] = f"not evaluated: left in {candidate}"
    return outcome


@command
def main() -> int:
    args = parse_arguments()
    job = make_job(args)
    if args.list:
        method = METHODS[0] if args.method == "all" else args.method
        report = session.list_tasks(job, method)
        if args.json:
            print(json.dumps({"schema_version": REPORT_SCHEMA_VERSION, **report}, indent=2))
        else:
            print_tasks(report)
        return 0
    with gpus.reached(job) as job:
        report = {"schema_version": REPORT_SCHEMA_VERSION, "family": job.family,
                  "target": job.target.name, "threads": job.threads,
                  "measured_on": session.machine_name(job)}
        if args.kernels != "stock":
            report["kernels"] = choose_kernels(job, args)
        if args.kernels != "ours":
            report |= tune_schedules(job, args)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        print_report(report)
    return 0
