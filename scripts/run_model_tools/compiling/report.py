"""What compile_model says of what it made, for people."""

from __future__ import annotations

from typing import Any

from run_model_tools.compiling import artifact
from run_model_tools.compiling.job import Job


def describe_kernels(kernels: dict[str, Any] | None) -> str:
    """What print_report says of metadata.json's "kernels"."""
    if kernels is None or kernels["method"] != "ours":
        if kernels and kernels.get("row_layers"):
            return (f"kernels: ours for {kernels['row_layers']} layers of rows and matrices, "
                    "TVM's schedules for the others")
        reason = f": {kernels['reason']}" if kernels else ""
        return f"kernels: TVM's schedules{reason}"
    left = ", ".join(f"{count} {name}" for name, count in kernels["left_to_tvm"].items())
    return (f"kernels: ours for {kernels['layers']} layers ({kernels['instruction_set']})"
            + (f", {kernels['int8_layers']} in 8 bits" if "int8_layers" in kernels else "")
            + "".join(f", {kernels[f'{name}_layers']} in {name}" for name in ("float16", "bfloat16")
                      if f"{name}_layers" in kernels)
            + (f", {len(kernels['kept_float32'])} kept in float32 for their errors"
               if kernels.get("kept_float32") else "")
            + (f"; left to TVM: {left}" if left else ""))


def describe_tuning(tuning: dict[str, Any] | None) -> str:
    """What print_report says of metadata.json's "tuning"."""
    left_out = ", ".join(f"{count} {reason.replace('_', ' ')}"
                         for reason, count in (tuning or {}).get("left_out", {}).items())
    left_out = left_out and f" (records left out: {left_out})"
    if tuning is None or not tuning["files"]:
        return f"not tuned: no records for this target and these layers{left_out}"
    files = ", ".join(entry["name"] for entry in tuning["files"])
    if "layers" not in tuning:
        return f"tuned with {files}"
    text = f"tuned: {tuning['tuned_layers']} of {tuning['layers']} distinct layers, with {files}"
    return text + left_out


def describe_verification(checked: dict[str, Any]) -> str:
    """What print_report says of metadata.json's "verification"."""
    if not checked["done"]:
        return f"NOT VERIFIED: {checked['reason']}"
    where = f"run on {checked['device']}" if "device" in checked else {
             "native": "run on this machine",
             "host plan": f"its plan run on this machine, compiled for {checked.get('host_plan')}"
             }.get(checked["where"], f"run under {checked['where']}")
    if "not_executed_because" in checked:
        where += f" ({checked['not_executed_because']})"
    pictures = checked.get("pictures_tried", 0)
    tried = f" and {pictures} pictures" if pictures else ""
    if "relative_error" in checked and "runs" in checked:
        agreement = (f", the same best class for {checked['top1_agreement']:.0%} of them"
                     if "top1_agreement" in checked else "")
        return (f"verified: {where}; on {checked['runs'] - pictures} random inputs{tried} it "
                f"differs from float32 by {checked['relative_error']:.2g} "
                f"({checked['tolerance']:g} allowed){agreement}")
    if "pictures" in checked:
        of = {"numbers": "same whole numbers in {} of those in ",
              "places": "same best class in {} of the places of "}.get(
            checked.get("agreement_of", ""), "same best class for {} of ")
        agreement = (f"the {of.format(format(checked['top1_agreement'], '.1%'))}"
                     if "top1_agreement" in checked else "on ")
        return (f"verified: {where}; {agreement}{checked['pictures']} views of the pictures"
                + (f" (at least {checked['asked_agreement']:.1%})" if "top1_agreement" in checked
                   else "")
                + f", differs from float32 by {checked['relative_error']:.2g} "
                  f"({checked['tolerance']:g} allowed)")
    # What is more has been let pass (verifying/comparison.py).
    more = ("; more where rounding alone changes the reference as much"
            if checked["relative_difference"] > checked["tolerance"] else "")
    return (f"verified: {where}{f', on random inputs{tried}' if tried else ''}; "
            f"differs from {checked['reference']} by "
            f"{checked['relative_difference']:.1e} ({checked['tolerance']:g} allowed{more})")


def print_report(job: Job, report: dict[str, Any]) -> None:
    """report: what compile_model --json prints."""
    metadata = report["metadata"]
    print(f"{job.name} for {job.target.name}: {metadata['target']['tvm']} "
          f"(TVM {metadata['tvm_version']})")
    for name, described in metadata["files"].items():
        print(f"  {job.directory / name}  {described['bytes']:,} bytes")
    print(f"  {job.directory / artifact.METADATA}")
    if job.is_c and job.build_c:
        print(f"  {job.directory / artifact.LIBRARY}, built of it for "
              f"{metadata['target']['machine']}")
    if job.flat:
        print(f"  {job.out / job.name}_tvm.so, .json, .params, .metadata.json")
    for kind in ("inputs", "outputs"):
        for item in metadata[kind]:
            print(f"  {kind[:-1]} {item['name']}: {item['dtype']} {item['shape']}"
                  + (f" {item['layout']}" if "layout" in item else ""))
    for note in (*metadata["source"].get("notes", ()), *report["notes"]):
        print(f"  {note}")
    if metadata["preprocessing"] is None:
        print("  preprocessing: none stated")
    for task in metadata.get("tasks", ()):
        print("  task: " + " ".join(task[k] for k in ("kind", "form") if k in task))
    print(f"  {describe_kernels(metadata.get('kernels'))}")
    for exact in metadata.get("kernels", {}).get("exact", ()):
        print(f"  {exact['function']}: {describe_kernels(exact)}")
    if metadata.get("kernels", {}).get("method") != "ours":
        print(f"  {describe_tuning(metadata.get('tuning'))}")
    for note in metadata.get("plain_schedules", ()):
        shapes = ", ".join("x".join(map(str, shape)) for shape in note["shapes"])
        because = note.get("because", "the code would be too large to compile")
        print(f"  slow layer: {note['operator']} ({shapes}) has a plain schedule in the place of "
              f"TVM's {note['schedule']}: {because}")
    for note in metadata.get("device_needs", {}).get("on_cpu", ()):
        shapes = ", ".join("x".join(map(str, shape)) for shape in note.get("shapes", ()))
        print(f"  on the CPU: {note['operator']}{f' ({shapes})' if shapes else ''}: "
              f"{note['because']}")
    for compiler, reason in report.get("other_compilers", {}).items():
        print(f"  compiled by Relax, since --compiler {compiler} could not: {reason}")
    checked = report["verification"]
    if report["up_to_date"]:
        print("  up to date: nothing was compiled")
    print(f"  {describe_verification(checked)}")
