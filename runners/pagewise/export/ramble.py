"""For Ramble (https://googlecloudplatform.github.io/ramble): applications and a workspace.

    <folder>/repo/repo.yaml                                 for `ramble repo add <folder>/repo`
                  applications/pagewise-<kernel>/application.py
    <folder>/configs/ramble.yaml                            for `ramble workspace create -c`
                     execute_experiment.tpl                 for its -t
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pagewise.catalog import Entry
from pagewise.compare.validity import ENOUGH_COVERAGE
from pagewise.configuration import BASELINE
from pagewise.errors import RefusedError, SelectionError
from pagewise.kernel import Kernel
from pagewise.plan import subject

_NUMBER = r"(?P<value>-?[0-9.]+(?:[eE][-+]?[0-9]+)?)"
_RECORD = "{experiment_run_dir}/record.jsonl"
# What the record tells of every kernel, besides its own metrics (schema/record-1.json).
_COMMON = (
    ("huge_coverage", "", "share of the arrays on huge pages"),
    ("page_size_observed_bytes", "B", "page size observed"),
    ("populate", "s", "time of the first touch"),
)

_TEMPLATE = """\
#!/bin/bash
# One run of Ramble's; {command} loads the module and starts the kernel.
cd "{experiment_run_dir}"
rm -f record.jsonl
. {module_init}
module use {module_tree}
{command}
"""


@dataclass(frozen=True)
class Chosen:
    """What is exported: kernels, configurations and their module tree.

    `init` starts Lmod in a job, `runs` is how often an experiment is repeated.
    """

    kernels: Sequence[Kernel]
    entries: Sequence[Entry]
    tree: Path
    init: Path
    threads: int
    runs: int


def write_ramble(folder: Path, chosen: Chosen) -> list[Path]:
    """Writes applications for the kernels and a workspace with their distinct configurations; the files.

    Raises SelectionError where the folder is not empty, RefusedError when the disk refuses.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SelectionError("this folder is not empty", where=folder, remedy="name a new one")
    files = {
        Path("repo/repo.yaml"): yaml.safe_dump({"repo": {"namespace": "pagewise"}}),
        Path("configs/ramble.yaml"): _yaml(workspace(chosen)),
        Path("configs/execute_experiment.tpl"): _TEMPLATE,
    }
    for kernel in chosen.kernels:
        files[Path("repo/applications") / name_of(kernel) / "application.py"] = application(kernel)
    try:
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
    except OSError as fault:
        raise RefusedError(f"the export cannot be written: {fault.strerror}", where=folder) from fault
    return [folder / file for file in files]


def name_of(kernel: Kernel) -> str:
    """The application of a kernel: `pagewise-stream-triad`."""
    return f"pagewise-{kernel.name.replace('_', '-')}"


def application(kernel: Kernel) -> str:
    """The source of a kernel's application: how it is run, its figures of merit, when it succeeded."""
    arguments = shlex.join(kernel.arguments)
    words = "".join(part.title() for part in re.split(r"[-_]", name_of(kernel)))
    foms = [(metric.field, metric.unit, metric.label) for metric in kernel.metrics]
    lines = [
        f'"""{kernel.title}, from pagewise: {kernel.summary}"""',
        "",
        "from ramble.appkit import *",
        "",
        "",
        f"class {words}(ExecutableApplication):",
        f'    """{kernel.summary}"""',
        "",
        f"    name = {name_of(kernel)!r}",
        "",
        '    tags("pagewise", "memory", "huge-pages")',
        "",
        '    executable("load", "module load {configuration}", use_mpi=False)',
        "    executable(",
        '        "run",',
        f"        {_run_line(kernel)!r},",
        "        use_mpi=False,",
        "    )",
        '    workload("compare", executables=["load", "run"])',
        "    workload_variable(",
        '        "arguments",',
        f"        default={arguments!r},",
        '        description="Options of the kernel",',
        '        workloads=["compare"],',
        "    )",
        "    workload_variable(",
        '        "pages",',
        '        default="",',
        '        description="Further options, as --pages thp:64k",',
        '        workloads=["compare"],',
        "    )",
        "",
    ]
    for field, unit, label in (*foms, *_COMMON):
        pattern = rf'.*"{field}":\s*{_NUMBER}'
        lines += [
            f"    # {label}",
            "    figure_of_merit(",
            f"        {field!r},",
            f"        fom_regex={pattern!r},",
            '        group_name="value",',
            f"        units={unit!r},",
            f"        log_file={_RECORD!r},",
            "    )",
        ]
    lines += [
        "",
        "    # A failed check or missing pages are records of another status.",
        "    success_criteria(",
        """        "checked", mode="string", match=r'.*"status":\\s*"ok".*', """ + f"file={_RECORD!r}",
        "    )",
        "    # The pages were those asked for.",
        *_criterion("enough_huge_pages", "{value} >= {lowest_coverage}"),
        *_criterion("no_more_huge_pages", "{value} <= {highest_coverage}"),
        "",
    ]
    return "\n".join(lines)


def workspace(chosen: Chosen) -> dict[str, Any]:
    """The content of ramble.yaml: an experiment for each kernel and configuration that it can tell apart."""
    applications = {}
    for kernel in chosen.kernels:
        brought = [entry.configuration for entry in chosen.entries if kernel.name in entry.kernels]
        cells = subject(kernel, brought, BASELINE).cells
        if not cells:
            continue
        experiments = {}
        for cell in cells:
            one = cell.measured
            experiments[re.sub(r"[^A-Za-z0-9_.-]", "_", f"{one.compiler}_{one.label}")] = {
                "n_repeats": str(chosen.runs),
                "variables": {
                    "configuration": one.module,
                    "build_hash": one.hash,
                    "hugepages": one.hugepages,
                    "prefetch": one.prefetch,
                    "stores": one.stores,
                    "compiler_used": one.compiler,
                    "lowest_coverage": 0 if one.hugepages == "none" else ENOUGH_COVERAGE,
                    "highest_coverage": 0 if one.hugepages == "none" else 1,
                },
            }
        applications[name_of(kernel)] = {"workloads": {"compare": {"experiments": experiments}}}
    return {
        "ramble": {
            "variables": {
                "mpi_command": "",
                "batch_submit": "{execute_experiment}",
                "processes_per_node": 1,
                "n_nodes": 1,
                "n_ranks": 1,
                "n_threads": chosen.threads,
                "module_init": str(chosen.init),
                "module_tree": str(chosen.tree.absolute()),
            },
            "applications": applications,
            "software": {"packages": {}, "environments": {}},
        }
    }


def _criterion(name: str, formula: str) -> list[str]:
    return [
        "    success_criteria(",
        f"        {name!r},",
        '        mode="fom_comparison",',
        '        fom_name="huge_coverage",',
        f"        formula={formula!r},",
        "    )",
    ]


def _run_line(kernel: Kernel) -> str:
    return f"{kernel.executable} {{arguments}} {{pages}} --threads {{n_threads}} --record {_RECORD}"


def _yaml(data: Any) -> str:
    # Through JSON: without anchors and the types of Python.
    return yaml.safe_dump(json.loads(json.dumps(data)), sort_keys=False, width=110)
