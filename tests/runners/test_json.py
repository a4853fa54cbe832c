"""`--json`: one object on standard output that follows its schema, all else on standard error."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from json_schema import faults
from stage import Stage


def reported(done: subprocess.CompletedProcess[str], schema: str, code: int = 0) -> dict[str, Any]:
    """What was printed, after it was checked."""
    assert done.returncode == code, done.stderr
    data = json.loads(done.stdout)
    assert data["schema"].rpartition("/")[0] == f"pagewise.{schema}" and faults(schema, data) == []
    return data


@pytest.mark.long
def test_verdicts_of_compare_and_report_are_those_of_the_table(small: Stage):
    done = small.compare("--json", "--rounds", "4", "--no-sweep", "--seed", "5")
    data = reported(done, "verdicts")
    assert data["headline"] in done.stderr and data["state"] == "complete"
    rows = [row for one in data["kernels"] for row in one["configurations"] if one["name"] == "triad"]
    thp = next(row for row in rows if row["hugepages"] == "thp")
    assert thp["verdict"] == "faster" and thp["time_ratio"] == pytest.approx(0.8, abs=0.03)
    assert thp["page_size_observed_bytes"] == 2 << 20
    again = reported(small.run("report", data["folder"], "--json"), "verdicts")
    assert again == data | {"timing": again["timing"], "folder": data["folder"]}


@pytest.mark.long
def test_plan_list_doctor_and_survey(small: Stage):
    plan = reported(small.compare("--plan", "--json", "--rounds", "4"), "plan")
    assert plan["runs"] == 31
    assert [one["runs_a_round"] for one in plan["kernels"]] == [3, 4]
    catalog = reported(small.run("list", "--json"), "catalog")
    assert len(catalog["configurations"]) == 3
    assert [kernel["name"] for kernel in catalog["kernels"]] == ["chase", "triad"]
    assert reported(small.run("list", "--json", "kernels", "chase"), "catalog")["configurations"] == []
    findings = reported(small.run("doctor", "--json", "--no-noise"), "findings")
    assert findings["ready"] and {"Tools", "Pages", "Machine"} <= {f["topic"] for f in findings["findings"]}
    survey = reported(small.run("list", "policies", "--json", "--", "true"), "survey")
    reasons = {one["policy"]: one["lack"] for one in survey["policies"]}
    assert survey["program"].endswith("/true") and reasons["none"] is None
    assert "libhugetlbfs" in reasons and len(reasons) == len(survey["policies"])
    assert reported(small.run("list", "policies", "--json"), "survey")["program"] is None
