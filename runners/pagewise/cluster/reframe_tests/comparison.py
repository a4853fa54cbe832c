"""A comparison as a ReFrame test: all of it runs on one node, so that it can be compared.

    tests=runners/pagewise/cluster/reframe_tests
    reframe -C $tests/settings.py -C envs/sites/<site>/reframe.yaml -c $tests -r

`-n 'comparison%env=quick'` chooses an environment, `-S options='--rounds 7'` sets options of `pagewise
compare`, `-P node:n1,n2` runs it on each of these nodes, as does ReFrame's `--distribute` with Slurm.
"""

import os
import shlex
import sys
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)

RUNNERS = Path(__file__).resolve().parents[3]
if str(RUNNERS) not in sys.path:
    sys.path.append(str(RUNNERS))
if (START := RUNNERS / "start.py").is_file():
    os.environ.setdefault("PAGEWISE_ROOT", str(RUNNERS.parent))

from pagewise.cluster.campaign import newest, seconds_by_configuration  # noqa: E402  (the path comes first)
from pagewise.cluster.engine import python_command  # noqa: E402
from pagewise.cluster.schedulers import pin  # noqa: E402
from pagewise.stack.paths import built_environments, checkout  # noqa: E402

_INHERITED = ("PAGEWISE_ROOT", "PAGEWISE_MODULES")


@rfm.simple_test
class comparison(rfm.RunOnlyRegressionTest):  # noqa: N801
    """`pagewise compare` of an environment's configurations on one node; the class's name is the test's."""

    env = parameter(
        ["default"] if os.environ.get("PAGEWISE_MODULES") or checkout() is None else built_environments()
    )
    node = variable(str, value="", loggable=True)
    options = variable(str, value="")
    results = variable(str, value="")

    descr = "pagewise compare on one node"
    valid_systems = ["*"]  # noqa: RUF012  (ReFrame's own variables, copied for each test)
    valid_prog_environs = ["builtin"]  # noqa: RUF012
    sourcesdir = None
    num_tasks = 1
    num_tasks_per_node = 1
    exclusive_access = True
    time_limit = "1h"

    @run_after("setup")
    def choose_node(self) -> None:
        """The node: `node`, else the one that ReFrame distributes to, else the scheduler's choice."""
        distributed = getattr(self, ".nid", [""])
        self.node = self.node or distributed[0]
        if self.node:
            pin(self.job, self.current_partition, self.node)

    @run_before("run")
    def set_command(self) -> None:
        """The command, with this process's Python and checkout: nodes share the file system."""
        root = Path(self.results or "results/nodes").absolute()
        self.folder = root / (self.node or "any")
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self.env_vars |= inherited | {"COLUMNS": "120"}
        start = python_command("from pagewise.cli import main; main()")
        self.executable, *words = [sys.executable, "-I", str(START)] if START.is_file() else start
        chosen = [] if "--modules" in self.options else ["--env", self.env]
        self.executable_opts = [
            *map(shlex.quote, words),
            "compare",
            *chosen,
            "--output",
            shlex.quote(str(self.folder)),
        ]
        self.executable_opts += [shlex.quote(word) for word in shlex.split(self.options)]

    @sanity_function
    def is_complete(self) -> object:
        """Whether the comparison was completed; the report lists excluded rows."""
        attempt = newest(self.folder)
        state = "no result" if attempt is None else attempt.manifest.state
        return sn.assert_eq(state, "complete", f"the comparison was not completed: {state}")

    @run_before("performance")
    def name_figures(self) -> None:
        """The median time per pass of each configuration, for ReFrame's log and references."""
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(seconds), "s")
            for name, seconds in seconds_by_configuration(newest(self.folder)).items()
        }
