"""Known third-party codes (envs/suites/codes): how they are run and read, and where their programs are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import FormatError, SelectionError, SetupError
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults
from pagewise.core.suggestions import choose_of
from pagewise.stack import lmod
from pagewise.stack.catalog import module_files
from pagewise.stack.paths import module_tree, needed_checkout, project_root
from pagewise.stack.setup import setup_facts
from pagewise.workloads.program.output import Check, Pattern, distinct, metric, parse_check

ENVIRONMENTS = ("suites", "suites-system")
#: Stands for the number of MPI ranks in a code's input.
RANKS = "{ranks}"
#: Stands for the folder of a service's program.
BIN = "{bin}"


@dataclass(frozen=True)
class Code:
    """A code as its file describes it.

    packages: of Debian, if these have its programs. start: words before the program. setup: shell commands in
    the folder of a run. policies: those to compare by default. service: for one that serves, the values of
    --load, --ready and --fill.
    """

    name: str
    title: str
    summary: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    obtain: str
    start: tuple[str, ...]
    arguments: tuple[str, ...]
    policies: tuple[str, ...]
    setup: tuple[str, ...]
    input: Mapping[str, str]
    reads: tuple[str, ...]
    exit_codes: tuple[int, ...]
    metrics: tuple[Pattern, ...]
    checks: tuple[Check, ...]
    service: Mapping[str, Any] | None = None


def known_codes(root: Path | None = None) -> dict[str, Path]:
    """The files of the codes by name."""
    folder = (root or project_root()) / "envs" / "suites" / "codes"
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def read_code(file: Path) -> Code:
    """Reads a code's file. Raises FormatError that lists every fault."""
    try:
        data = parse_yaml(read_file(file))
    except (OSError, ValueError) as fault:
        raise FormatError(
            f"this code's file cannot be read: {fault}",
            where=file,
            remedy="correct it, as in the files beside it",
        ) from fault
    wrong = faults("suite", data)
    if not wrong and data["name"] != file.stem:
        wrong = [f"name: {data['name']!r} is not the file's name"]
    if wrong:
        text = "this file does not follow pagewise.suite/1:\n    " + "\n    ".join(wrong)
        raise FormatError(text, where=file, remedy="correct these fields")
    metrics = (
        metric(row["label"], row["unit"], row["better"], row["pattern"], str(file)) for row in data["metrics"]
    )
    packages = tuple(data.get("packages", ()))
    by_packages = f"apt-get install --no-install-recommends {' '.join(packages)}"
    return Code(
        data["name"],
        data["title"],
        data["summary"],
        tuple(data["programs"]),
        packages,
        data.get("obtain", by_packages if packages else "make stack ENV=suites, or ENV=suites-system"),
        tuple(data.get("start", ())),
        tuple(data.get("arguments", ())),
        tuple(data.get("policies", ())),
        tuple(data.get("setup", ())),
        data.get("input", {}),
        tuple(data.get("reads", ())),
        tuple(data.get("exit_codes", (0,))),
        distinct(metrics),
        tuple(parse_check(text) for text in data["checks"]),
        data.get("service"),
    )


def find_code(name: str) -> Code:
    """The code of this name. Raises SelectionError, FormatError."""
    codes = known_codes()
    if not codes:
        needed_checkout(f"the code {name}")
    if name not in codes:
        remedy = choose_of(name, codes) if codes else "use a checkout whose envs/suites/codes has it"
        raise SelectionError(f"there is no code {name!r}", where="--suite", remedy=remedy)
    return read_code(codes[name])


def find_program(
    code: Code, environment: str | None, modules: Path | None
) -> tuple[str, dict[str, str], str]:
    """Path of the code's program, the environment it runs in, and the module or `PATH` that has it.

    Modules of the environments for suites come first, then PATH. Raises SetupError if it is missing.
    """
    for place, variables in _environments(code, environment, modules):
        for name in code.programs:
            # The last of several versions.
            of_glob = map(str, Path("/").glob(name[1:])) if name.startswith("/") else ()
            path = shutil.which(max(of_glob, default=name), path=variables.get("PATH", ""))
            if path is not None:
                return path, variables, place
    raise SetupError(
        f"the program of {code.title} is missing: {' or '.join(code.programs)}",
        where="PATH" if code.packages else "PATH, and the modules of " + ", ".join(ENVIRONMENTS),
        remedy=f"{code.obtain}; or name it: compare --suite {code.name} -- PROGRAM",
    )


def _environments(
    code: Code, environment: str | None, modules: Path | None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Of the module trees named, or else of those built for suites, the code's last module; then `PATH`."""
    if modules is not None or environment is not None:
        trees = [module_tree(environment or ENVIRONMENTS[0], modules)]
    elif code.packages:
        trees = []
    else:
        built = (project_root() / ".pagewise" / "modules" / name for name in ENVIRONMENTS)
        trees = [tree for tree in built if tree.is_dir()]
    for tree in trees:
        names = [name for name in module_files(tree) if name.split("/", maxsplit=1)[0] == code.name]
        for loaded in lmod.load_each(lmod.find_init(setup_facts()), tree, names[-1:]):
            yield loaded.name, loaded.environment or {}
    yield "PATH", dict(os.environ)
