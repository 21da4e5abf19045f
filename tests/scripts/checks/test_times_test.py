"""scripts/test.sh --times: seconds by label, and what is over its budget."""

import subprocess

from conftest import ROOT

from checks import test_times

RESULTS = """<?xml version="1.0"?>
<testsuite name="(empty)">
  <testcase name="base_test" time="1.5" status="run"/>
  <testcase name="rpc_test" time="2.25" status="run"/>
  <testcase name="kernels" time="20" status="run"/>
  <testcase name="nobody" time="1" status="run"/>
</testsuite>
"""


def test_a_test_counts_under_its_first_label(tmp_path):
    (tmp_path / "host.junit.xml").write_text(RESULTS)
    (tmp_path / "host.build_seconds").write_text("60\n")
    labels = {"base_test": "unit", "rpc_test": "unit", "kernels": "kernels"}
    assert test_times.used(tmp_path, "host", labels) == {
        "build": 60.0, "unit": 3.75, "kernels": 20.0, "no label": 1.0}


def test_more_than_the_budget_and_none_at_all_are_named(capsys):
    seconds = {"build": 60.0, "unit": 3.75, "kernels": 20.0, "no label": 1.0}
    budget = {"build": 60, "unit": 3, "kernels": 30}
    assert list(test_times.over_budget(seconds, budget, "host")) == ["host no label", "host unit"]
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[-1] for row in rows] == ["60", "30", "over", "over"]


def test_before_any_test_has_run(tmp_path):
    (tmp_path / "times.json").write_text("{}")
    done = subprocess.run(["python3", test_times.__file__, tmp_path, tmp_path / "times.json"],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no tests have run yet" in done.stderr
