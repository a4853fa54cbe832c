"""Cases: how a program is run and judged, in files. Known codes have their cases in envs/suites/codes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pagewise.core.errors import FormatError, SelectionError, SetupError
from pagewise.core.fields import SomeText, SomeTexts
from pagewise.core.reading import checked_document, parse_yaml, read_file
from pagewise.core.structure import Form, Limits, from_data, to_data
from pagewise.core.text import choose_of
from pagewise.stack import lmod
from pagewise.stack.catalog import module_files
from pagewise.stack.paths import module_tree, needed_checkout, project_root
from pagewise.stack.setup import setup_facts
from pagewise.workloads.program.output import (
    CodeMetric,
    OutputCheck,
    Pattern,
    distinct,
    parse_check,
    pattern_of,
)
from pagewise.workloads.program.service import check_ready

ENVIRONMENT = "suites"
#: The range of a ratio; None: no limit.
TargetRange = tuple[float | None, float | None]


def _check_glob(text: str) -> None:
    """Raises ValueError for a text that does not name files."""
    try:
        # In a file there are none.
        list(Path(os.devnull).glob(text.lstrip("/")))
    except NotImplementedError as fault:
        raise ValueError(str(fault)) from fault


@dataclass(frozen=True)
class CasesPart:
    """Cases of a code; in all texts {case} stands for the named case, {name} for a group of the pattern."""

    default: str
    pattern: SomeText


@dataclass(frozen=True)
class LoadPart:
    """How a program that serves is loaded; {port}: a free port, {bin}: the folder of the program."""

    load: Annotated[SomeText, shlex.split, "the command whose time and output are measured"]
    ready: (
        Annotated[
            SomeText, check_ready, "tcp:PORT; '| command' that must exit with 0; or a pattern of its output"
        ]
        | None
    ) = None
    fill: Annotated[tuple[SomeText, ...], "shell commands before the load"] = ()


@dataclass(frozen=True, kw_only=True)
class SuiteFile:
    """How a program is run, and what its output reports: a known code, or a case of the user (--case)."""

    schema: Literal["pagewise.suite/1"]
    name: Annotated[str, Form("[a-z][a-z0-9_-]*"), "that of its Spack package, module and file"] | None = None
    title: SomeText | None = None
    summary: SomeText | None = None
    source: Annotated[str, Form("https://.*")] | None = None
    programs: Annotated[
        tuple[SomeText, ...], "names, paths or absolute globs of its program; the first that is found is run"
    ] = ()
    cases: CasesPart | None = None
    packages: Annotated[
        tuple[Annotated[str, Form("[a-z0-9][a-z0-9.+-]+")], ...],
        Limits(1),
        "packages of Debian that have its programs; it is then not a package of Spack",
    ] = ()
    obtain: Annotated[SomeText, "how to get it, if no environment here builds it"] | None = None
    start: Annotated[
        tuple[str, ...], Limits(1), "words before the program, if another program starts it"
    ] = ()
    arguments: Annotated[tuple[str, ...], "{threads} stands for the number of threads"] = ()
    module: Annotated[SomeText, "first part of the names of its modules, if not its name"] | None = None
    relative_to: Annotated[SomeText, "another code, with its case, measured in the same session"] | None = (
        None
    )
    policies: Annotated[
        SomeTexts, "page policies to compare by default: those that can reach its memory"
    ] = ()
    setup: Annotated[
        tuple[SomeText, ...],
        "shell commands in the folder of each run, before it starts; {bin}: as below",
    ] = ()
    input: (
        Annotated[
            Mapping[str, str],
            "files of the fresh folder in which it runs, by name; {ranks} stands for the number of MPI ranks",
        ]
        | None
    ) = None
    inputs: Annotated[
        tuple[SomeText, ...], "files and folders that are copied there, relative to this file"
    ] = ()
    reads: Annotated[
        tuple[Annotated[SomeText, _check_glob], ...],
        "files that it writes and that count as its output; globs",
    ] = ()
    service: Annotated[LoadPart, "the program serves (docs/how-to/services.md)"] | None = None
    exit_codes: Annotated[tuple[int, ...], Limits(1), "good ones"] = (0,)
    metrics: tuple[CodeMetric, ...] = ()
    checks: Annotated[
        tuple[SomeText, ...], "patterns of its output; `! pattern`: not in it; `| command`: must exit with 0"
    ] = ()
    memory_budget: (
        Annotated[str, Form(r"\d+(\.\d+)?%"), "how much more peak memory than the baseline a policy may need"]
        | None
    ) = None

    @property
    def budget(self) -> float | None:
        """The memory budget as a share of the baseline's peak."""
        return None if self.memory_budget is None else float(self.memory_budget.rstrip("%")) / 100.0


@dataclass(frozen=True)
class SuiteCode:
    """A program as its file describes it, for one of its cases.

    option: the option that names it. case: which of its cases, empty without cases. targets: by metric, of
    its value relative to that of the code in `relative_to`.
    """

    file: Path
    option: str
    part: SuiteFile
    case: str
    metrics: tuple[Pattern, ...]
    checks: tuple[OutputCheck, ...]
    targets: Mapping[str, TargetRange] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name, which is also that of the file."""
        return self.part.name or self.file.stem

    @property
    def title(self) -> str:
        """How people call it."""
        return self.part.title or self.name

    @property
    def label(self) -> str:
        """The name with the case: `npb:cg.B`."""
        return f"{self.name}:{self.case}" if self.case else self.name

    def with_folder(self, folder: Path) -> SuiteFile:
        """Its file with the folder of the program, for {bin}."""
        return from_data(SuiteFile, _fill(to_data(self.part), {"bin": str(folder)}))

    @property
    def is_known(self) -> bool:
        """Whether it is one of envs/suites, not a file of the user."""
        return self.option.startswith("--suite")

    @property
    def obtain(self) -> str:
        """How to get its program."""
        if self.part.obtain is not None:
            return self.part.obtain
        if self.part.packages:
            return f"apt-get install --no-install-recommends {' '.join(self.part.packages)}"
        return "make stack ENV=suites" if self.is_known else "install it, or name its path in `programs`"


def known_codes(root: Path | None = None) -> dict[str, Path]:
    """The files of the codes by name."""
    folder = (root or project_root()) / "envs" / "suites" / "codes"
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def read_code(file: Path, case: str = "", option: str | None = None) -> SuiteCode:
    """Reads a file, for one of its cases or its default. Raises FormatError that lists every fault.

    option: how the user named it. Raises SelectionError for a case that it does not have.
    """
    try:
        data = parse_yaml(read_file(file))
    except (OSError, ValueError) as fault:
        raise FormatError(
            f"this case cannot be read: {fault}",
            where=file,
            remedy="correct it; for an example: pagewise list case",
        ) from fault
    read = _document(data, file)
    cases = read.cases or CasesPart("", "")
    option = option or f"--suite {file.stem}"
    named = re.fullmatch(cases.pattern, case := case or cases.default)
    if named is None:
        known = f"its cases match {cases.pattern}" if cases.pattern else "it has no cases"
        raise SelectionError(
            f"{file.stem} has no case {case!r}: {known}",
            where=f"{option}:{case}",
            remedy=option + (f":{cases.default}" if cases.default else ""),
        )
    read = _document(_fill(data, {"case": case, **named.groupdict("")}), file)
    metrics = [pattern_of(row, str(file)) for row in read.metrics]
    targets = {
        pattern.metric.field: (row.target[0], row.target[1])
        for pattern, row in zip(metrics, read.metrics, strict=True)
        if row.target
    }
    if bool(targets) != (read.relative_to is not None):
        raise FormatError(
            "relative_to and the target of a metric belong together",
            where=file,
            remedy="name the other code in relative_to, and give a metric its target",
        )
    checks = tuple(parse_check(text) for text in read.checks)
    return SuiteCode(file, option, read, case, distinct(metrics), checks, targets)


def _document(data: object, file: Path) -> SuiteFile:
    """The content of a file. Raises FormatError."""
    remedy = "correct these fields; for an example: pagewise list case"
    read = checked_document(SuiteFile, data, file, remedy)
    if read.name not in (None, file.stem):
        raise FormatError(f"name: {read.name!r} is not the file's name", where=file, remedy=remedy)
    return read


def _fill(value: Any, words: Mapping[str, str]) -> Any:
    """The content of a file with the words for `{case}` and the parts of the case that its pattern names."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda name: words.get(name[1], name[0]), value)
    if isinstance(value, list):
        return [_fill(item, words) for item in value]
    return {name: _fill(item, words) for name, item in value.items()} if isinstance(value, dict) else value


def find_code(name: str) -> SuiteCode:
    """The code of this name, with a case as `npb:cg.B`. Raises SelectionError, FormatError."""
    name, colon, case = name.partition(":")
    codes = known_codes()
    if not codes:
        needed_checkout(f"the code {name}")
    if name not in codes:
        remedy = choose_of(name, codes) if codes else "use a checkout whose envs/suites/codes has it"
        raise SelectionError(f"there is no code {name!r}", where="--suite", remedy=remedy)
    if colon and not case:
        raise SelectionError(f"{name} does not name a case", where="--suite", remedy=f"--suite {name}")
    return read_code(codes[name], case)


def example() -> str:
    """A commented case."""
    return Path(__file__).with_name("case.yaml").read_text(encoding="utf-8")


@dataclass(frozen=True)
class ProgramBuild:
    """A build of codes that is compared with others: its name, and the folder or module of its programs."""

    name: str
    folder: Path | None = None
    module: str | None = None


def parse_builds(texts: Sequence[str]) -> list[ProgramBuild]:
    """Reads `old=DIR` or `tuned=MODULE`, a module by glob. Raises SelectionError."""
    builds: dict[str, ProgramBuild] = {}
    for text in texts:
        name, _, place = text.partition("=")
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) is None or not place or name in builds:
            raise SelectionError(
                f"{text!r} is not a further build",
                where="--build",
                remedy="write --build NAME=DIR or NAME=MODULE, each with another name",
            )
        folder = Path(place).expanduser()
        builds[name] = (
            ProgramBuild(name, folder.absolute()) if folder.is_dir() else ProgramBuild(name, module=place)
        )
    return list(builds.values())


def find_program(
    code: SuiteCode, environment: str | None, modules: Path | None, build: ProgramBuild | None = None
) -> tuple[str, dict[str, str], str]:
    """Path of the code's program, the environment it runs in, and the module or `PATH` that has it.

    Modules of the environments for suites come first, then PATH; only those of a build, if one is named.
    Raises SetupError if it is missing.
    """
    for place, variables in _environments(code, environment, modules, build):
        for name in code.part.programs:
            # The last of several versions.
            of_glob = map(str, Path("/").glob(name[1:])) if name.startswith("/") else ()
            search = variables.get("PATH", "")
            if build is not None and build.folder is not None:
                search = str(build.folder)
            # What another program starts need not be executable.
            mode = os.F_OK if code.part.start else os.F_OK | os.X_OK
            path = shutil.which(max(of_glob, default=name), mode, search)
            if path is not None:
                return path, variables, place
    if build is not None:
        raise SetupError(
            f"the build {build.name} has no program of {code.title}: {' or '.join(code.part.programs)}",
            where=f"--build {build.name}={build.folder or build.module}",
            remedy="name its folder, or its module (module avail, by glob)",
        )
    raise SetupError(
        f"the program of {code.title} is missing: {' or '.join(code.part.programs)}",
        where=f"PATH, and the modules of {ENVIRONMENT}"
        if code.is_known and not code.part.packages
        else "PATH",
        remedy=f"{code.obtain}; or name it: compare {code.option} -- PROGRAM",
    )


def _environments(
    code: SuiteCode, environment: str | None, modules: Path | None, build: ProgramBuild | None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Of the module trees named, or else of those built for suites, the code's last module; then `PATH`.

    Of a build: its folder alone, or the last of its modules.
    """
    if build is not None and build.folder is not None:
        path = f"{build.folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        yield str(build.folder), {**os.environ, "PATH": path}
        return
    if modules is not None or environment is not None:
        trees = [module_tree(environment or ENVIRONMENT, modules)]
    elif build is None and (code.part.packages or not code.is_known):
        trees = []
    else:
        built = project_root() / ".pagewise" / "modules" / ENVIRONMENT
        trees = [built] if built.is_dir() else []
    for tree in trees:
        first = code.part.module or code.name
        names = [name for name in module_files(tree) if name.split("/", maxsplit=1)[0] == first]
        if build is not None:
            names = [name for name in names if fnmatchcase(name, build.module or "")]
        for loaded in lmod.load_each(lmod.find_init(setup_facts()), tree, names[-1:]):
            yield loaded.name, loaded.environment or {}
    if build is None:
        yield "PATH", dict(os.environ)
