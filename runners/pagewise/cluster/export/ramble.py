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

import jinja2
import yaml

from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import BASELINE
from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.files import write_inside
from pagewise.core.plan import subject
from pagewise.core.result import RECORDS
from pagewise.stack.catalog import Entry

_NUMBER = r"(?P<value>-?[0-9.]+(?:[eE][-+]?[0-9]+)?)"
_RECORD = f"{{experiment_run_dir}}/{RECORDS}"
# The output of `pagewise results show` on the record: by the rules of comparisons.
_CHECKED = "{experiment_run_dir}/checked.json"
# What the record contains for every kernel, in addition to its metrics.
_COMMON = (
    ("huge_coverage", "", "share of the arrays on huge pages"),
    ("page_size_observed_bytes", "B", "page size observed"),
    ("first_touch", "s", "first-touch time"),
)

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class RambleSelection:
    """What is exported: kernels, configurations and their module tree.

    `init` starts Lmod in a job, `pagewise` is the program that checks records there, `runs` is the number of
    runs of an experiment.
    """

    kernels: Sequence[Benchmark]
    entries: Sequence[Entry]
    tree: Path
    init: Path
    pagewise: Path
    threads: int
    runs: int


def write_ramble(folder: Path, selection: RambleSelection) -> list[Path]:
    """Writes applications for the kernels and a workspace with their distinct configurations; the files.

    Raises SelectionError if the folder is not empty, RefusedError if it cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SelectionError("this folder is not empty", where=folder, remedy="name a new one")
    files = {
        Path("repo/repo.yaml"): yaml.safe_dump({"repo": {"namespace": "pagewise"}}),
        Path("configs/ramble.yaml"): _yaml(workspace(selection)),
        Path("configs/execute_experiment.tpl"): _template("execute_experiment.tpl.jinja").render(),
    }
    for kernel in selection.kernels:
        files[Path("repo/applications") / name_of(kernel) / "application.py"] = application(kernel)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            write_inside(folder, str(file), text)
    except OSError as fault:
        raise RefusedError(f"the export cannot be written: {fault.strerror}", where=folder) from fault
    return [folder / file for file in files]


def name_of(kernel: Benchmark) -> str:
    """The application of a kernel: `pagewise-stream-triad`."""
    return f"pagewise-{kernel.name.replace('_', '-')}"


def application(kernel: Benchmark) -> str:
    """The source of a kernel's application: its command, figures of merit and success criteria."""
    figures = [
        (metric.field, metric.unit, f"{metric.label}, estimated" if metric.estimated else metric.label)
        for metric in kernel.metrics
    ]
    return _template("application.py.jinja").render(
        kernel=kernel,
        name=name_of(kernel),
        class_name="".join(part.title() for part in re.split(r"[-_]", name_of(kernel))),
        arguments=shlex.join(kernel.arguments),
        run_line=f"{kernel.executable} {{arguments}} {{pages}} --threads {{n_threads}} --record {_RECORD}",
        record=_RECORD,
        figures=[
            {"field": field, "unit": unit, "label": label, "pattern": rf'.*"{field}":\s*{_NUMBER}'}
            for field, unit, label in (*figures, *_COMMON)
        ],
        checked=_CHECKED,
    )


def workspace(selection: RambleSelection) -> dict[str, object]:
    """The content of ramble.yaml: an experiment for each kernel and each of its distinct configurations."""
    applications = {}
    for kernel in selection.kernels:
        provided = [entry.configuration for entry in selection.entries if kernel.name in entry.kernels]
        measured = [cell.measured for cell in subject(kernel, provided, BASELINE).cells]
        experiments = {
            re.sub(r"[^A-Za-z0-9_.-]", "_", f"{configuration.compiler}_{configuration.label}"): {
                "n_repeats": str(selection.runs),
                "variables": {
                    "configuration": configuration.module,
                    "build_hash": configuration.hash,
                    "hugepages": configuration.hugepages,
                    "prefetch": configuration.prefetch,
                    "stores": configuration.stores,
                    "loop": configuration.loop,
                    "compiler_used": configuration.compiler,
                },
            }
            for configuration in measured
        }
        if experiments:
            applications[name_of(kernel)] = {"workloads": {"compare": {"experiments": experiments}}}
    return {
        "ramble": {
            "variables": {
                "mpi_command": "",
                "batch_submit": "{execute_experiment}",
                "processes_per_node": 1,
                "n_nodes": 1,
                "n_ranks": 1,
                "n_threads": selection.threads,
                "module_init": str(selection.init),
                "module_tree": str(selection.tree.absolute()),
                "pagewise": str(selection.pagewise),
            },
            "applications": applications,
        }
    }


def _template(name: str) -> jinja2.Template:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.filters["python"] = repr
    return templates.get_template(name)


def _yaml(data: Any) -> str:
    # Through JSON, to avoid anchors and Python types.
    return yaml.safe_dump(json.loads(json.dumps(data)), sort_keys=False, width=110)
