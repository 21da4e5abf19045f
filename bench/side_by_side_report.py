"""The side-by-side bench's results, as a table and as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from trials import Sample

SCHEMA_VERSION = 1
MIB = 1 << 20


@dataclass(frozen=True)
class Row:
    """One figure of both runtimes; `target` is the largest ratio or value allowed, if any is."""

    figure: str
    tvm: float
    run_model: float
    unit: str
    target: float | None = None
    target_is_ratio: bool = True

    @property
    def ratio(self) -> float:
        return self.run_model / self.tvm

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return (self.ratio if self.target_is_ratio else self.run_model) <= self.target

    def as_json(self) -> dict[str, object]:
        return {"figure": self.figure, "unit": self.unit, "tvm": self.tvm,
                "run_model": self.run_model, "ratio": self.ratio, "target": self.target,
                "target_is_ratio": self.target_is_ratio, "reached": self.reached}


def rows_of_model(name: str, model: dict) -> list[Row]:
    rows = []
    for label, samples in model["steady"].items():
        target = 0.55 if label == "as installed" else 1.0
        rows.append(Row(f"{name}: inference, {label}", samples["tvm"].median,
                        samples["run_model"].median, "ms", target))
    starts = model["starts"]
    for tvm, target in (("tvm", 0.5), ("tvm-lean", 0.5)):
        rows.append(Row(f"{name}: load + parameters + first result, {tvm}",
                        starts[tvm]["first_ms"].median, starts["run_model"]["first_ms"].median,
                        "ms", target))
        rows.append(Row(f"{name}: whole process, {tvm}", starts[tvm]["process_ms"].median,
                        starts["run_model"]["process_ms"].median, "ms"))
    memory = model["memory"]
    allowed = (memory["params_mapped"] + memory["params_copied"] + memory["activations"]) / MIB + 8
    for tvm in ("tvm", "tvm-lean"):
        rows.append(Row(f"{name}: peak resident memory, {tvm}", _mib(starts[tvm]),
                        _mib(starts["run_model"]), "MiB", allowed, False))
    return rows


def rows_of_sizes(sizes: dict) -> list[Row]:
    if "run_model" not in sizes:
        return []
    ours = sizes["run_model"] / MIB
    needs = sum(sizes["run_model_needs"].values()) / MIB
    tvm = sizes["libtvm_runtime"] / MIB
    tvm_needs = sum(sizes["libtvm_runtime_needs"].values()) / MIB
    return [Row("copied to a machine: the runtime itself", tvm, ours, "MiB", 1.5e6 / MIB, False),
            Row("copied to a machine: with what it needs", tvm + tvm_needs, ours + needs, "MiB",
                1.5e6 / MIB, False)]


def print_table(machine: dict, models: dict, sizes: dict) -> None:
    print(f"{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}, load average "
          f"{machine['load_average']:.2f} at the start\n")
    print("| figure (medians) | TVM | run_model | ratio | to reach | |")
    print("|---|---|---|---|---|---|")
    for row in _all_rows(models, sizes):
        target = "" if row.target is None else (
            f"≤ {row.target:.2f}×" if row.target_is_ratio else f"≤ {row.target:.1f} {row.unit}")
        verdict = {None: "", True: "reached", False: "not reached"}[row.reached]
        print(f"| {row.figure} | {row.tvm:.2f} {row.unit} | {row.run_model:.2f} {row.unit} | "
              f"{row.ratio:.3f}× | {target} | {verdict} |")
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
