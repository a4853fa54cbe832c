"""Page policies for regression tests of ReFrame, with verification (docs/how-to/cluster.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_before, variable

from pagewise.cluster.page_runs import RECORD, RECORDS, find_launcher, read_pages


class PagePolicies(rfm.RegressionMixin):
    """Runs the executable of a test under each page policy, and verifies the pages that it had.

    The launcher pagewise-exec precedes the executable, behind the launcher of a parallel job. A test
    whose policy was not met fails in its sanity stage. Performance variables: pages_peak (of the largest
    process), pages_coverage (of the policy), pages_coverage_<kind> (of a kind of memory).
    """

    page_policy = parameter(["none", "thp"], loggable=True)
    pagewise_exec = variable(str, value=find_launcher())

    @property
    def _test(self) -> Any:
        """This object, with the attributes of the test that inherits the mixin."""
        return self

    # The last one, because the test's own hooks may set the executable and its options.
    @run_before("run", always_last=True)
    def apply_page_policy(self) -> None:
        """Puts the launcher before the executable; removes the records of an earlier run."""
        test = self._test
        program = [test.executable, *test.executable_opts]
        test.executable = self.pagewise_exec
        test.executable_opts = ["--quiet", "--record", RECORD, self.page_policy, "--", *program]
        test.prerun_cmds = [f"rm -f {RECORDS}", *test.prerun_cmds]
        test.keep_files = [*test.keep_files, RECORDS]

    # Before the test's sanity function, which a program that did not start fails without the reason.
    @run_before("sanity")
    def verify_pages(self) -> None:
        """Whether the policy was met. Raises SanityError."""
        if not self._test.is_dry_run():
            problem = read_pages(Path(self._test.stagedir)).problem
            sn.evaluate(sn.assert_eq(problem, None, f"page policy: {problem}"))

    @run_before("performance", always_last=True)
    def add_page_figures(self) -> None:
        """Adds peak memory and coverage to the performance variables of the test."""
        pages = read_pages(Path(self._test.stagedir))
        shares = {"": pages.coverage, **{f"_{kind}": share for kind, share in pages.kinds.items()}}
        figures = {
            "pages_peak": (pages.peak_bytes, "B"),
            **{f"pages_coverage{kind}": (share, "1") for kind, share in shares.items()},
        }
        test = self._test
        if hasattr(test, "perf_patterns"):
            # ReFrame takes one kind of performance variables only.
            values = {name: sn.defer(value) for name, (value, _) in figures.items()}
            test.perf_patterns = {**test.perf_patterns, **values}
            return
        functions = {
            name: sn.make_performance_function(sn.defer(value), unit)
            for name, (value, unit) in figures.items()
        }
        test.perf_variables = {**test.perf_variables, **functions}
