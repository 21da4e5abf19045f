"""ONNX's own backend tests through the compiler and run_model.

Each case passes, or stands in onnx_exceptions.json under the reason why it cannot; one that begins
to pass has to leave that list.  What became of all of them is in build/conformance/onnx.json.

Measured last: of the 1,282 node cases 1,116 pass, which is 91 % of the 1,221 that have tensors in
and out; the others are refused by a sentence, but for four whose expected outputs wrap around and
one that divides means by numbers that are not there.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from cases import Case, all_cases

from conformance import Result, operators, run_cases
from run_model_tools.environment import BUILD_DIR
from run_model_tools.files import json_text, write_atomically

EXCEPTIONS = json.loads((Path(__file__).parent / "onnx_exceptions.json").read_text())
REASONS = {case: reason for reason, names in EXCEPTIONS["reasons"].items() for case in names}
# Operators that are handed on as they are: one of each sort is enough in the quick test.
PLAIN = {"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Exp",
         "Floor", "Greater", "Less", "Log", "Mul", "Neg", "Or", "Reciprocal", "Relu", "Sin",
         "Sinh", "Sqrt", "Sub", "Tan", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
REPORT = BUILD_DIR / "conformance" / "onnx.json"


def sample() -> list[Case]:
    """For each operator the first node case that has it and is not an exception."""
    found: dict[str, Case] = {}
    for case in sorted(all_cases(("node",)), key=lambda c: (len(c.name), c.name)):
        if case.name not in REASONS and "_expanded" not in case.name:
            for operator in operators(case) - PLAIN:
                found.setdefault(operator, case)
    return list({case.name: case for case in found.values()}.values())


def complaints(results: dict[str, Result]) -> list[str]:
    """What differs from the list of exceptions."""
    said = []
    for name, result in results.items():
        if result.outcome == "passes" and name in REASONS:
            said.append(f"{name} passes: take it off onnx_exceptions.json")
        if result.outcome != "passes" and name not in REASONS:
            said.append(f"{name}: {result.outcome}: {result.why}")
        if "Traceback" in result.why:
            said.append(f"{name} ends in a Python traceback: {result.why[-300:]}")
    return said


def table(cases: list[Case], results: dict[str, Result]) -> str:
    """By kind: how many there are, have tensors only, pass; and the exceptions by reason."""
    lines = [f"{'':22}{'cases':>7}{'tensors':>9}{'pass':>6}{'of them':>9}"]
    for kind in dict.fromkeys(case.kind for case in cases):
        of_kind = [case for case in cases if case.kind == kind]
        tensors = [case for case in of_kind if case.has_tensors_only]
        passed = sum(results[case.name].outcome == "passes" for case in tensors)
        lines.append(f"{kind:22}{len(of_kind):7}{len(tensors):9}{passed:6}"
                     f"{100 * passed / max(len(tensors), 1):8.1f}%")
    reasons = Counter(REASONS.get(name, f"not listed: {result.outcome}")
                      for name, result in results.items() if result.outcome != "passes")
    lines += [f"  {count:4} {reason}" for reason, count in reasons.most_common()]
    return "\n".join(lines)


def test_every_operator_once(tmp_path):
    cases = sample()
    assert len({o for case in cases for o in operators(case)}) > 110
    assert complaints(run_cases(cases, tmp_path)) == []


def test_exceptions_are_cases():
    assert set(REASONS) <= {case.name for case in all_cases()}


@pytest.mark.slow
def test_all(tmp_path):
    cases = list(all_cases())
    results = run_cases(cases, tmp_path)
    print(table(cases, results))
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(REPORT, json_text({
        "schema_version": 1,
        "cases": {case.name: {"kind": case.kind, "tensors_only": case.has_tensors_only,
                              "frozen": sorted(case.frozen), "exception": REASONS.get(case.name),
                              **vars(results[case.name])} for case in cases}}).encode())
    assert complaints(results) == []
