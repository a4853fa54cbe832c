"""The ReFrame mixin: a user's regression tests under page policies, run by ReFrame."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from own_program import needs_thp
from scripts import called
from stage import RUNNERS

#: Tests as a user has them, with hooks that change what is run.
TESTS = """
import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import *

from pagewise.cluster.reframe_pages import PagePolicies


class Memory(rfm.RunOnlyRegressionTest, PagePolicies):
    way = variable(str, value="large")
    valid_systems = ["here:serial"]
    valid_prog_environs = ["*"]
    executable = "{program}"
    sourcesdir = None

    @run_before("run")
    def choose(self):
        self.executable_opts = [self.way]

    @sanity_function
    def has_finished(self):
        return sn.assert_found(r"sum: -?\\d+", self.stdout)


@rfm.simple_test
class met(Memory):
    @performance_function("GB/s")
    def rate(self):
        return sn.extractsingle(r"rate: (\\S+)", self.stdout, 1, float)


@rfm.simple_test
class ranks(Memory):
    page_policy = parameter(["thp"])
    valid_systems = ["here:parallel"]
    num_tasks = 2


@rfm.simple_test
class patterns(Memory):
    page_policy = parameter(["none"])
    reference = {{"*": {{"rate": (1.5, -0.1, 0.1, "GB/s")}}}}

    @run_before("performance")
    def figures(self):
        self.perf_patterns = {{"rate": sn.extractsingle(r"rate: (\\S+)", self.stdout, 1, float)}}


@rfm.simple_test
class too_small(Memory):
    page_policy = parameter(["thp"])
    way = "short"


@rfm.simple_test
class refused(Memory):
    page_policy = parameter(["nosuch"])


@rfm.simple_test
class wrong(Memory):
    page_policy = parameter(["none"])
    way = "wrong"
"""


needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="MPI is not installed")
pytestmark = [pytest.mark.long, needs_thp]

#: Open MPI refuses to run as root without these two.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SETTINGS = """
site_configuration = {
    "systems": [{"name": "here", "hostnames": [".*"], "partitions": [
        {"name": "serial", "scheduler": "local", "launcher": "local", "environs": ["builtin"]},
        {"name": "parallel", "scheduler": "local", "launcher": "mpirun", "environs": ["builtin"]},
    ]}],
    "environments": [{"name": "builtin"}],
}
"""


@pytest.fixture(scope="module")
def cases(programs: Path, installed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """The cases of ReFrame's report, by test and policy."""
    folder = tmp_path_factory.mktemp("reframe")
    (folder / "tests.py").write_text(TESTS.format(program=programs / "memory"))
    (folder / "settings.py").write_text(SETTINGS)
    report = folder / "report.json"
    command = [sys.executable, "-c", "from reframe.frontend.cli import main; main()", "-r"]
    command += ["-c", folder / "tests.py", "-C", folder / "settings.py", "-S", f"pagewise_exec={installed}"]
    done = called(
        [*command, "--prefix", folder, "--report-file", report],
        env={**os.environ, **AS_ROOT, "PYTHONPATH": str(RUNNERS), "HOME": str(folder)},
        cwd=folder,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    tests = json.loads(report.read_text())["runs"][0]["testcases"]
    return {f"{test['unique_name'].partition('_')[0]}-{test['page_policy']}": test for test in tests}


def values(case: dict) -> dict[str, float | None]:
    return {name.rpartition(":")[2]: value[0] for name, value in case["perfvalues"].items()}


def records(case: dict) -> list[dict]:
    (file,) = Path(case["outputdir"]).glob("pagewise-pages.*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("policy", ["none", "thp"])
def test_a_test_under_its_policy_passes_and_has_its_pages_as_performance_variables(
    cases: dict[str, dict], policy: str
) -> None:
    case = cases[f"met-{policy}"]
    assert case["result"] == "pass", case["fail_reason"]
    (record,) = records(case)
    assert record["policy"] == policy and record["met"] is True
    used = record["kinds"]["anonymous"]
    assert values(case) == {
        # The test's own.
        "rate": 1.5,
        "pages_peak": record["peak_bytes"],
        "pages_coverage": record["coverage"],
        "pages_coverage_anonymous": pytest.approx(used["huge_bytes"] / used["resident_bytes"]),
    }
    assert values(case)["pages_peak"] > 64 << 20
    assert (values(case)["pages_coverage_anonymous"] > 0.8) == (policy == "thp")


@needs_mpi
def test_each_rank_is_under_the_policy(cases: dict[str, dict]) -> None:
    case = cases["ranks-thp"]
    assert case["result"] == "pass", case["fail_reason"]
    assert {record["rank"]: record["met"] for record in records(case)} == {0: True, 1: True}


def test_patterns_of_the_test_keep_their_references(cases: dict[str, dict]) -> None:
    case = cases["patterns-none"]
    assert case["result"] == "pass", case["fail_reason"]
    assert values(case)["rate"] == 1.5 and values(case)["pages_peak"] > 64 << 20


@pytest.mark.parametrize("name", ["too-thp", "refused-nosuch", "wrong-none"])
def test_a_test_with_a_wrong_policy_or_output_fails_in_its_sanity_stage(
    cases: dict[str, dict], name: str
) -> None:
    """By the policy in the first two, by the test's own sanity function in the last."""
    assert cases[name]["result"] == "fail" and cases[name]["fail_phase"] == "sanity"
    assert ("sum: " in cases[name]["fail_reason"]) == (name == "wrong-none")
