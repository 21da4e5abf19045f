"""The results of the bench against TVM, as a table and as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from trials import Sample, paired_ratio

SCHEMA_VERSION = 1
MIB = 1 << 20

#: Largest allowed ratio of our time of an inference to TVM's; any figure that is not listed: 1.
_STEADY_TARGETS = {("squeezenet1_1", "threads 2"): 0.95, ("shufflenet_v2", "threads 2"): 0.95}
_AS_INSTALLED_TARGET = 0.55
_FIRST_RESULT_TARGET = 0.4


@dataclass(frozen=True)
class Row:
    """One figure of both runtimes; `target` is the largest ratio or value allowed, if any is."""

    figure: str
    tvm: float
    run_model: float
    ratio: float
    unit: str
    target: float | None = None
    target_is_ratio: bool = True

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        if self.target_is_ratio:
            # As precise as the target is stated, which is about as precise as times repeat.
            return round(self.ratio, 2) <= self.target
        return self.run_model <= self.target

    def as_json(self) -> dict[str, object]:
        return {"figure": self.figure, "unit": self.unit, "tvm": self.tvm,
                "run_model": self.run_model, "ratio": self.ratio, "target": self.target,
                "target_is_ratio": self.target_is_ratio, "reached": self.reached}


def _row(figure: str, tvm: Sample, run_model: Sample, unit: str,
         target: float | None = None) -> Row:
    return Row(figure, tvm.median, run_model.median, paired_ratio(run_model, tvm), unit, target)


def rows_of_model(name: str, model: dict) -> list[Row]:
    rows = []
    on_cpu = model["target"] == "native"
    for label, samples in model["steady"].items():
        target = (_AS_INSTALLED_TARGET if label == "as installed" and on_cpu
                  else _STEADY_TARGETS.get((name, label), 1.0))
        rows.append(_row(f"{name}: inference, {label}", samples["tvm"], samples["run_model"], "ms",
                         target))
    starts = model["starts"]
    runtimes = [tvm for tvm in starts if tvm != "run_model"]
    for tvm in runtimes:
        theirs, ours = starts[tvm], starts["run_model"]
        rows.append(_row(f"{name}: load + parameters + first result, {tvm}", theirs["first_ms"],
                         ours["first_ms"], "ms",
                         _FIRST_RESULT_TARGET if on_cpu else 1.0))
        rows.append(_row(f"{name}: whole process, {tvm}", theirs["process_ms"],
                         ours["process_ms"], "ms"))
    memory = model["memory"]
    allowed = (memory["params_mapped"] + memory["params_copied"] + memory["activations"]) / MIB + 8
    for tvm in runtimes:
        theirs, ours = _mib(starts[tvm]), _mib(starts["run_model"])
        rows.append(Row(f"{name}: peak resident memory, {tvm}", theirs, ours, ours / theirs, "MiB",
                        allowed if on_cpu else None, False))
    return rows


def rows_of_sizes(sizes: dict) -> list[Row]:
    if "run_model" not in sizes:
        return []
    ours = sizes["run_model"] / MIB
    needs = sum(sizes["run_model_needs"].values()) / MIB
    tvm = sizes["libtvm_runtime"] / MIB
    tvm_needs = sum(sizes["libtvm_runtime_needs"].values()) / MIB
    return [Row(f"copied to a machine: {what}", theirs, mine, mine / theirs, "MiB", 1.5e6 / MIB,
                False)
            for what, theirs, mine in (("the runtime itself", tvm, ours),
                                       ("with what it needs", tvm + tvm_needs, ours + needs))]


def print_rows(machine: dict, rows: list[Row]) -> None:
    """The machine and a Markdown table."""
    print(f"{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}; other programs "
          f"used {machine['busy']:.0%} of them at the start\n")
    print("| figure (medians) | TVM | run_model | ratio | to reach | |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        target = "" if row.target is None else (
            f"≤ {row.target:.2f}×" if row.target_is_ratio else f"≤ {row.target:.2f} {row.unit}")
        verdict = {None: "", True: "reached", False: "not reached"}[row.reached]
        print(f"| {row.figure} | {row.tvm:.2f} {row.unit} | {row.run_model:.2f} {row.unit} | "
              f"{row.ratio:.3f}× | {target} | {verdict} |")


def print_table(machine: dict, models: dict, sizes: dict) -> None:
    print_rows(machine, _all_rows(models, sizes))
    for name, model in models.items():
        memory = model["memory"]
        print(f"\n{name}: parameters {memory['params_mapped'] / MIB:.1f} MiB in place + "
              f"{memory['params_copied'] / MIB:.1f} MiB copied, activations "
              f"{memory['activations'] / MIB:.1f} MiB")
    if sizes["libtvm_runtime_needs"]:
        needs = ", ".join(f"{name} {size / MIB:.1f}"
                          for name, size in sizes["libtvm_runtime_needs"].items())
        print(f"\nlibtvm_runtime.so needs (MiB): {needs}")


def as_json(machine: dict, models: dict, sizes: dict) -> dict[str, object]:
    return {"schema_version": SCHEMA_VERSION, "machine": machine,
            "rows": [row.as_json() for row in _all_rows(models, sizes)],
            "models": {name: _plain(model) for name, model in models.items()}, "sizes": sizes}


def _all_rows(models: dict, sizes: dict) -> list[Row]:
    return [row for name, model in models.items() for row in rows_of_model(name, model)] + \
        rows_of_sizes(sizes)


def _mib(samples: dict[str, Sample]) -> float:
    return samples["peak_first_kib"].median / 1024


def _plain(value: object) -> object:
    """The same with every Sample as plain JSON."""
    if isinstance(value, Sample):
        return value.as_json()
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return value
