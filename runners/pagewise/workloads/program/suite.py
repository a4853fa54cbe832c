"""Known third-party codes (envs/suites/codes): how they are run and read, and where their programs are."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pagewise.core.errors import FormatError, SelectionError, SetupError
from pagewise.core.fields import Better, Text, Texts
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.structure import Form, Limits, StructureError, document, unstructured
from pagewise.core.suggestions import choose_of
from pagewise.stack import lmod
from pagewise.stack.catalog import module_files
from pagewise.stack.paths import module_tree, needed_checkout, project_root
from pagewise.stack.setup import setup_facts
from pagewise.workloads.program.output import Check, Pattern, distinct, metric, parse_check

ENVIRONMENTS = ("suites", "suites-system")
#: Stands for the folder of a service's program.
BIN = "{bin}"
#: Stands for the case of a code in the names of its programs.
CASE = "{case}"


@dataclass(frozen=True)
class CasesPart:
    """Cases of a code, each a program; {case} in `programs` stands for the case that is named."""

    default: Text
    pattern: Text


@dataclass(frozen=True)
class LoadPart:
    """How a program that serves is loaded; {port}: a free port, {bin}: the folder of the program."""

    load: Annotated[Text, "the command whose time and output are measured"]
    ready: Annotated[Text, "as --ready"] | None = None
    fill: Annotated[tuple[Text, ...], "shell commands before the load"] = ()


@dataclass(frozen=True)
class MetricPart:
    """What an output reports."""

    label: Text
    unit: Text
    better: Better
    pattern: Annotated[Text, "the group of the last match is the value"]
    optional: Annotated[bool, "some runs, such as those of one process, have no such value"] = False


@dataclass(frozen=True, kw_only=True)
class SuiteFile:
    """How a third-party code is run, and what its output reports."""

    schema: Literal["pagewise.suite/1"]
    name: Annotated[str, Form("[a-z][a-z0-9_-]*"), "that of its Spack package and module"]
    title: Text
    summary: Text
    source: Annotated[str, Form("https://.*")]
    programs: Annotated[Texts, "names or absolute globs of its program; the first that is found is run"]
    cases: CasesPart | None = None
    packages: Annotated[
        tuple[Annotated[str, Form("[a-z0-9][a-z0-9.+-]+")], ...],
        Limits(1),
        "packages of Debian that have its programs; it is then not a package of Spack",
    ] = ()
    obtain: Annotated[Text, "how to get it, if no environment here builds it"] | None = None
    start: Annotated[
        tuple[str, ...], Limits(1), "words before the program, if another program starts it"
    ] = ()
    arguments: tuple[str, ...] = ()
    policies: Annotated[Texts, "page policies to compare by default: those that can reach its memory"] = ()
    setup: Annotated[
        tuple[Text, ...], "shell commands in the folder of each run, before it starts; {bin}: as below"
    ] = ()
    input: (
        Annotated[
            Mapping[str, str],
            "files of the fresh folder in which it runs, by name; {ranks} stands for the number of MPI ranks",
        ]
        | None
    ) = None
    reads: Annotated[tuple[Text, ...], "files that it writes and that count as its output; globs"] = ()
    service: Annotated[LoadPart, "the program serves (docs/how-to/services.md)"] | None = None
    exit_codes: Annotated[tuple[int, ...], Limits(1), "good ones"] = (0,)
    metrics: Annotated[tuple[MetricPart, ...], Limits(1)]
    checks: Annotated[Texts, "patterns that its output must have, or with `! ` before them must not"]


@dataclass(frozen=True)
class Code:
    """A code as its file describes it.

    packages: of Debian, if these have its programs. start: words before the program. setup: shell commands in
    the folder of a run. policies: those to compare by default. service: for one that serves, the values of
    --load, --ready and --fill. case: which of its cases, each a separate program, empty without cases.
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
    case: str = ""

    @property
    def label(self) -> str:
        """The name with the case: `npb:cg.B`."""
        return f"{self.name}:{self.case}" if self.case else self.name


def known_codes(root: Path | None = None) -> dict[str, Path]:
    """The files of the codes by name."""
    folder = (root or project_root()) / "envs" / "suites" / "codes"
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def read_code(file: Path, case: str = "") -> Code:
    """Reads a code's file, for one of its cases or its default. Raises FormatError that lists every fault.

    Raises SelectionError for a case that it does not have.
    """
    try:
        data = parse_yaml(read_file(file))
    except (OSError, ValueError) as fault:
        raise FormatError(
            f"this code's file cannot be read: {fault}",
            where=file,
            remedy="correct it, as in the files beside it",
        ) from fault
    try:
        read = document(SuiteFile, data)
        wrong = [] if read.name == file.stem else [f"name: {read.name!r} is not the file's name"]
    except StructureError as error:
        wrong = error.texts
    if wrong:
        text = "this file does not follow pagewise.suite/1:\n    " + "\n    ".join(wrong)
        raise FormatError(text, where=file, remedy="correct these fields")
    metrics = (
        replace(metric(row.label, row.unit, row.better, row.pattern, str(file)), optional=row.optional)
        for row in read.metrics
    )
    cases = read.cases
    if case and (cases is None or re.fullmatch(cases.pattern, case) is None):
        known = "it has no cases" if cases is None else f"its cases match {cases.pattern}"
        raise SelectionError(
            f"{read.name} has no case {case!r}: {known}",
            where=f"--suite {read.name}:{case}",
            remedy=f"--suite {read.name}" + (f":{cases.default}" if cases else ""),
        )
    case = case or ("" if cases is None else cases.default)
    by_packages = f"apt-get install --no-install-recommends {' '.join(read.packages)}"
    by_stack = "make stack ENV=suites, or ENV=suites-system"
    return Code(
        read.name,
        read.title,
        read.summary,
        tuple(program.replace(CASE, case) for program in read.programs),
        read.packages,
        read.obtain or (by_packages if read.packages else by_stack),
        read.start,
        read.arguments,
        read.policies,
        read.setup,
        read.input or {},
        read.reads,
        read.exit_codes,
        distinct(metrics),
        tuple(parse_check(text) for text in read.checks),
        None if read.service is None else unstructured(read.service),
        case,
    )


def find_code(name: str) -> Code:
    """The code of this name, with a case as `npb:cg.B`. Raises SelectionError, FormatError."""
    name, colon, case = name.partition(":")
    codes = known_codes()
    if not codes:
        needed_checkout(f"the code {name}")
    if name not in codes:
        remedy = choose_of(name, codes) if codes else "use a checkout whose envs/suites/codes has it"
        raise SelectionError(f"there is no code {name!r}", where="--suite", remedy=remedy)
    if colon and not case:
        raise SelectionError(f"{name}: names no case", where="--suite", remedy=f"--suite {name}")
    return read_code(codes[name], case)


@dataclass(frozen=True)
class Build:
    """A build of codes that is compared with others: its name, and the folder or module of its programs."""

    name: str
    folder: Path | None = None
    module: str | None = None


def parse_builds(texts: Sequence[str]) -> list[Build]:
    """Reads `old=DIR` or `tuned=MODULE`, a module by glob. Raises SelectionError."""
    builds: dict[str, Build] = {}
    for text in texts:
        name, _, place = text.partition("=")
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) is None or not place or name in builds:
            raise SelectionError(
                f"{text!r} is not a further build",
                where="--build",
                remedy="write --build NAME=DIR or NAME=MODULE, each with another name",
            )
        folder = Path(place).expanduser()
        builds[name] = Build(name, folder.absolute()) if folder.is_dir() else Build(name, module=place)
    return list(builds.values())


def find_program(
    code: Code, environment: str | None, modules: Path | None, build: Build | None = None
) -> tuple[str, dict[str, str], str]:
    """Path of the code's program, the environment it runs in, and the module or `PATH` that has it.

    Modules of the environments for suites come first, then PATH; only those of a build, if one is named.
    Raises SetupError if it is missing.
    """
    for place, variables in _environments(code, environment, modules, build):
        for name in code.programs:
            # The last of several versions.
            of_glob = map(str, Path("/").glob(name[1:])) if name.startswith("/") else ()
            search = variables.get("PATH", "")
            if build is not None and build.folder is not None:
                search = str(build.folder)
            path = shutil.which(max(of_glob, default=name), path=search)
            if path is not None:
                return path, variables, place
    if build is not None:
        raise SetupError(
            f"the build {build.name} has no program of {code.title}: {' or '.join(code.programs)}",
            where=f"--build {build.name}={build.folder or build.module}",
            remedy="name its folder, or its module (module avail, by glob)",
        )
    raise SetupError(
        f"the program of {code.title} is missing: {' or '.join(code.programs)}",
        where="PATH" if code.packages else "PATH, and the modules of " + ", ".join(ENVIRONMENTS),
        remedy=f"{code.obtain}; or name it: compare --suite {code.name} -- PROGRAM",
    )


def _environments(
    code: Code, environment: str | None, modules: Path | None, build: Build | None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Of the module trees named, or else of those built for suites, the code's last module; then `PATH`.

    Of a build: its folder alone, or the last of its modules.
    """
    if build is not None and build.folder is not None:
        path = f"{build.folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        yield str(build.folder), {**os.environ, "PATH": path}
        return
    if modules is not None or environment is not None:
        trees = [module_tree(environment or ENVIRONMENTS[0], modules)]
    elif code.packages and build is None:
        trees = []
    else:
        built = (project_root() / ".pagewise" / "modules" / name for name in ENVIRONMENTS)
        trees = [tree for tree in built if tree.is_dir()]
    for tree in trees:
        names = [name for name in module_files(tree) if name.split("/", maxsplit=1)[0] == code.name]
        if build is not None:
            names = [name for name in names if fnmatchcase(name, build.module or "")]
        for loaded in lmod.load_each(lmod.find_init(setup_facts()), tree, names[-1:]):
            yield loaded.name, loaded.environment or {}
    if build is None:
        yield "PATH", dict(os.environ)
