"""A comparison on the nodes of a cluster, as a test of ReFrame (docs/how-to/cluster.md).

    reframe -C envs/sites/rocky/reframe.py -c runners/pagewise/cluster/reframe_nodes.py \\
        --distribute=idle -S options='--env quick --rounds 7' -r
"""

from __future__ import annotations

import json
import shlex
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable

_PROGRAM = Path(__file__).resolve().parents[3] / "pagewise"
_VERDICTS = "verdicts.json"


@rfm.simple_test
class compare_nodes(rfm.RunOnlyRegressionTest):  # noqa: N801
    """A complete comparison on one node; the class's name is the test's.

    options: those of `pagewise kernels`, as in a shell; with a program, those of `pagewise compare`. results:
    the folder of all nodes' results.
    """

    pagewise = variable(str, value=str(_PROGRAM) if _PROGRAM.is_file() else "pagewise")
    options = variable(str, value="")
    results = variable(str, value=f"results/{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-nodes")

    descr = "comparison on one node"
    valid_systems = ["*"]  # noqa: RUF012  (ReFrame's own variables, copied for each test)
    valid_prog_environs = ["builtin"]  # noqa: RUF012
    sourcesdir = None
    keep_files = [_VERDICTS]  # noqa: RUF012
    num_tasks = 1
    num_tasks_per_node = 1
    exclusive_access = True
    time_limit = "1h"

    @run_after("init")
    def set_command(self) -> None:
        """One folder per node, because many nodes begin in the same second."""
        folder = shlex.quote(str(Path(self.results).absolute()))
        self.executable = shlex.quote(self.pagewise)
        has_program = {"--", "--suite", "--case"} & {*shlex.split(self.options)}
        self.executable_opts = [
            "compare" if has_program else "kernels",
            *("--json", "--output", f'{folder}/"$(uname -n)"', self.options, ">", _VERDICTS),
        ]

    def _verdicts(self) -> Any:
        text = Path(self.stagedir, _VERDICTS).read_text(encoding="utf-8")
        return json.loads(text or "{}")

    @sanity_function
    def is_complete(self) -> object:
        """Whether the comparison was completed; its report lists what is excluded."""
        state = self._verdicts().get("state", "not started")
        return sn.assert_eq(state, "complete", f"the comparison is {state}: its error is in {self.stderr}")

    @run_before("performance")
    def set_performance_variables(self) -> None:
        """The median time per pass of each configuration, for ReFrame's log and references."""
        self.perf_variables = {
            f"{row['kernel']}/{row['measured_as']}": sn.make_performance_function(sn.defer(seconds), "s")
            for kernel in self._verdicts()["kernels"]
            for row in kernel["configurations"]
            if (seconds := row["pass_seconds_median"]) is not None and row["invalid"] is None
        }
