"""Page policies for applications of Ramble, verified (pagewise: docs/how-to/ramble.md)."""

import shutil
import subprocess
import sys
from pathlib import Path

from ramble.modkit import *

# The runner of the checkout in which this file is; elsewhere PYTHONPATH names it, as after
# `spack load pagewise`. Ramble's loader sets no __file__.
_HERE = Path(sys._getframe().f_code.co_filename).resolve().parent
sys.path.append(str(_HERE / "../../../../runners"))

from pagewise.cluster.page_runs import RECORD, RECORDS, find_launcher, prefix_programs, read_pages  # noqa: E402
from pagewise.workloads.program.policy import IN_MODULES, meaning  # noqa: E402

_SELECTED = "policy"
_SUMMARY = "{experiment_run_dir}/pagewise-pages.txt"
#: Name, unit, and pattern of its value.
_FIGURES = (
    ("pages_policy", "", r"\S+"),
    ("pages_met", "", "[01]"),
    ("pages_problem", "", ".+"),
    ("pages_processes", "", "[0-9]+"),
    ("pages_peak", "B", "[0-9]+"),
    ("pages_coverage", "", "[0-9.]+"),
    ("pages_coverage_{kind}", "", "[0-9.]+"),
)


class PagewisePages(BasicModifier):
    """Run the programs of an experiment under a page policy, and verify the pages that they had.

    Each mode is a page policy; in the mode `policy` (the default) the variable page_policy names
    it. The launcher pagewise-exec precedes the program of each executable that uses MPI, of
    all executables if none does, or of those in on_executable. An experiment whose policy was not
    met fails.
    """

    name = "pagewise-pages"

    tags("memory", "huge-pages", "verification")

    mode(_SELECTED, description="the page policy that the variable page_policy names")
    default_mode(_SELECTED)
    for policy in IN_MODULES:
        mode(policy, description=meaning(policy))
        variable_modification("page_policy", policy, method="set", modes=[policy])

    modifier_variable(
        "pagewise_exec",
        default=find_launcher(),
        description="The launcher pagewise-exec",
        modes=[_SELECTED, *IN_MODULES],
    )

    archive_pattern(f"{{experiment_run_dir}}/{RECORDS}")

    register_builtin("remove_page_records", required=True, injection_method="prepend")

    def remove_page_records(self):
        """Remove the records of an earlier run, because the launcher appends."""
        return [f'rm -f "{{experiment_run_dir}}"/{RECORDS}']

    executable_modifier("apply_page_policy")

    def apply_page_policy(self, executable_name, executable, app_inst=None):
        """Put the launcher before the programs of an executable."""
        self._check_policy(app_inst)
        if self._is_measured(executable, app_inst):
            if any("{pagewise_exec}" in line for line in executable.template):
                logger.die(f"{self.name} is applied twice to {executable_name}: name it once")
            record = f'"{{experiment_run_dir}}/{RECORD}"'
            launcher = f"{{pagewise_exec}} --quiet --record {record} {{page_policy}} --"
            executable.template = [prefix_programs(line, launcher) for line in executable.template]
        return [], []

    def _check_policy(self, app_inst):
        if self._usage_mode != _SELECTED:
            return
        if "page_policy" not in app_inst.variables:
            logger.die(
                f"{self.name}: no page policy is chosen: define the variable page_policy, "
                f"or name a mode: {', '.join(IN_MODULES)}"
            )
        launcher = shutil.which(find_launcher())
        if launcher is None:
            logger.die(f"{self.name}: {find_launcher()} is missing: add it to PATH")
        command = [launcher, "--module", app_inst.expander.expand_var_name("page_policy")]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            logger.die(f"{self.name}: the variable page_policy: {asked.stderr.strip()}")

    def _is_measured(self, executable, app_inst):
        if executable.mpi or self._on_executables != ["*"]:
            return True
        known = {**app_inst.executables, **app_inst.custom_executables}
        used = app_inst.internals.get("executables")
        used = used or app_inst.workloads[app_inst.expander.workload_name].executables
        return not any(known[name].mpi for name in used if name in known)

    def _archive_experiments(self, workspace):
        # Ramble 0.5.0 keeps the criteria of the experiment before.
        workspace.success_list.flush_scope("modifier_definition")

    def _prepare_analysis(self, workspace):
        # As above.
        workspace.success_list.flush_scope("modifier_definition")
        folder = Path(self.expander.expand_var("{experiment_run_dir}"))
        if not folder.is_dir():
            return
        pages = read_pages(folder)
        figures = {
            "pages_policy": pages.policy,
            "pages_met": int(pages.problem is None),
            "pages_problem": pages.problem,
            "pages_processes": pages.processes,
            "pages_peak": pages.peak_bytes,
            "pages_coverage": f"{pages.coverage:.6f}",
            **{f"pages_coverage_{kind}": f"{share:.6f}" for kind, share in pages.kinds.items()},
        }
        lines = [f"{name} {value}\n" for name, value in figures.items() if value is not None]
        Path(self.expander.expand_var(_SUMMARY)).write_text("".join(lines), encoding="utf-8")
        if pages.problem:
            logger.warn(f"{self.name}: {pages.problem}")

    for figure, unit, pattern in _FIGURES:
        figure_of_merit(
            figure,
            fom_regex=f"{figure.replace('{kind}', '(?P<kind>[a-z]+)')} (?P<value>{pattern})$",
            group_name="value",
            units=unit,
            log_file=_SUMMARY,
        )

    success_criteria("page-policy-met", mode="string", match="pages_met 1$", file=_SUMMARY)
