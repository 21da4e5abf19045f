"""The side-by-side bench's report as tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from peers.runners import OURS, PEERS, STOCK, TITLES, TVM

ORDER = (OURS, *PEERS, STOCK, TVM)
_STATES = {"held": "held to AVX2, and the kernel saw no use of AVX-512",
           "not verified": "held to AVX2, which this kernel cannot tell",
           "not held": "NOT held to AVX2: shown, but not counted as a peer"}
_VERDICTS = {None: "", True: "reached", False: "not reached"}


def tables(report: dict) -> str:
    """Three tables, what took part and what was left out; for a terminal and for README.md."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: dict) -> Iterator[str]:
    machine = report["machine"]
    yield (f"{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}; other programs "
           f"used {machine['busy']:.0%} of them at the start")
    there = [name for name in ORDER if name in report["runners"]]
    yield ""
    precision = report["settings"].get("precision", "float32")
    yield (f"Milliseconds of an inference (median), {precision}, one picture; the best peer in "
           "bold:")
    yield ""
    yield from _table(report, there, _steady_rows, "of the best's speed")
    yield from _stock_table(report)
    yield ""
    yield "Milliseconds from the file in the page cache to the first result, in a fresh process:"
    yield ""
    yield from _table(report, there, lambda n: _start_rows(n, "first_ms", 1), "")
    yield ""
    yield "Growth of the memory until the first result over that of the idle process, MiB:"
    yield ""
    yield from _table(report, there, lambda n: _start_rows(n, "growth_kib", 1024), "")
    yield ""
    yield "The most memory of the whole process, MiB:"
    yield ""
    yield from _table(report, there, lambda n: _start_rows(n, "whole_kib", 1024), "")
    yield ""
    yield from _modern(report)
    judged = [target for target in report["targets"] if target["reached"] is not None]
    if judged:
        yield (f"- {sum(target['reached'] for target in judged)} of {len(judged)} figures that "
               "have a target reach it")
    yield from _who(report, there)
    for item in report["left_out"]:
        where = f" on {item['network']}" if item["network"] else ""
        yield f"- left out: {TITLES.get(item['runner'], item['runner'])}{where}: {item['reason']}"
    for network, reason in report["failed"].items():
        yield f"- run_model does not run {network}: {reason}"
    yield from _agreement(report)


Row = tuple[int, dict[str, float], dict]  # threads; by runner the figure; what compare() gave


def _steady_rows(network: dict) -> Iterator[Row]:
    for steady in network["steady"]:
        yield (steady["threads"],
               {name: values["median_ms"] for name, values in steady["runners"].items()}, steady)


def _start_rows(network: dict, figure: str, divide_by: float) -> Iterator[Row]:
    starts = network["starts"]
    yield (starts["threads"], {name: values[figure] / divide_by
                               for name, values in starts["runners"].items()}, starts[figure])


def _table(report: dict, there: list[str], rows: Callable[[dict], Iterator[Row]],
           percent: str) -> Iterator[str]:
    """One row a network and number of threads, one column a runner; the best peer in bold."""
    titles = ["network", "threads", *(_title(report, name) for name in there), "÷ best peer"]
    titles += [percent] * bool(percent) + ["to reach", ""]
    yield "| " + " | ".join(titles) + " |"
    yield "|---" * len(titles) + "|"
    for network in report["networks"].values():
        for threads, figures, compared in rows(network):
            cells = [network["title"], str(threads)]
            cells += [_cell(figures.get(runner), runner == compared["best_peer"])
                      for runner in there]
            cells.append(_ratio(compared))
            if percent:
                cells.append(f"{1 / compared['ratio']:.0%}" if compared["ratio"] else "")
            target = compared["target"]
            cells += ["" if target is None else f"≤ {target:.2f}", _VERDICTS[compared["reached"]]]
            yield "| " + " | ".join(cells) + " |"


def _title(report: dict, name: str) -> str:
    """Marked where a peer is not held to AVX2 as the others are."""
    state = report["runners"][name].get("held", {}).get("state")
    return TITLES[name] + {"not held": " (not held)", "not verified": " (?)"}.get(state, "")


def _stock_table(report: dict) -> Iterator[str]:
    """Ours against TVM's own schedules, where both were measured."""
    rows = [(network["title"], steady) for network in report["networks"].values()
            for steady in network["steady"] if steady["stock"]]
    if not rows:
        return
    yield ""
    yield "This project's kernels against TVM's schedules tuned, both through this runtime:"
    yield ""
    yield "| network | threads | ours | TVM tuned | ÷ TVM tuned | to reach |  |"
    yield "|---|---|---|---|---|---|---|"
    for title, steady in rows:
        stock, target = steady["stock"], steady["stock"]["target"]
        cells = [title, str(steady["threads"]),
                 _cell(steady["runners"][OURS]["median_ms"], False),
                 _cell(steady["runners"][STOCK]["median_ms"], False), _ratio(stock),
                 "" if target is None else f"≤ {target:.2f}", _VERDICTS[stock["reached"]]]
        yield "| " + " | ".join(cells) + " |"


def _cell(value: float | None, best: bool) -> str:
    if value is None:
        return "–"
    text = f"{value:.2f}" if value < 100 else f"{value:.0f}"
    return f"**{text}**" if best else text


def _ratio(compared: dict) -> str:
    if compared["ratio"] is None:
        return ""
    interval = compared["interval"]
    around = f" ({interval[0]:.2f}–{interval[1]:.2f})" if interval else ""
    return f"{compared['ratio']:.2f}{around}"


def _modern(report: dict) -> Iterator[str]:
    for found in report["modern"]:
        if found["geometric_mean"] is None:
            continue
        threads = f"{found['threads']} thread{'s' * (found['threads'] > 1)}"
        yield (f"- the {found['networks']} modern networks with {threads}: geometric mean "
               f"{found['geometric_mean']:.2f} of the best peer's time, to reach ≤ "
               f"{found['target']:.2f}: {_VERDICTS[found['reached']]}")
        if found["above"]:
            yield f"- above what each is to reach, with {threads}: {', '.join(found['above'])}"
        if found["without_peer"]:
            yield f"- taken by no peer: {', '.join(found['without_peer'])}"


def _who(report: dict, there: list[str]) -> Iterator[str]:
    for name in there:
        runner = report["runners"][name]
        version = f" {runner['version']}" if runner["version"] else ""
        held = runner.get("held")
        state = f"; {_STATES[held['state']]} ({held['how']})" if held else ""
        yield f"- {TITLES[name]}{version}: {runner['settings']}{state}"


def _agreement(report: dict) -> Iterator[str]:
    worst: dict[str, float] = {}
    for network in report["networks"].values():
        for name, found in network["agreement"].items():
            if found["agrees"]:
                worst[name] = max(worst.get(name, 0.0), found["relative"])
    if worst:
        listed = ", ".join(f"{TITLES[name]} {value:.0e}" for name, value in worst.items())
        yield ("- largest difference from the reference, of the output's largest value, with the "
               f"same top-1 everywhere: {listed}")
