"""Known third-party codes (envs/suites/codes): how they are run and read, and where their programs are."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
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
from pagewise.workloads.program.output import Check, Pattern, calculated, distinct, metric, parse_check

ENVIRONMENTS = ("suites", "suites-system")
#: Stands for the folder of a service's program.
BIN = "{bin}"
#: The range of a ratio; None: no limit.
Target = tuple[float | None, float | None]


@dataclass(frozen=True)
class Code:
    """A code as its file describes it.

    packages: of Debian, if these have its programs. start: words before the program. setup: shell commands in
    the folder of a run. policies: those to compare by default. service: for one that serves, the values of
    --load, --ready and --fill. case: which of its cases, empty without cases. module: the first part of the
    names of its modules. relative_to: the code, with its case, that it is compared with; targets: by metric,
    of its value relative to that of the other code.
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
    module: str = ""
    relative_to: str | None = None
    targets: Mapping[str, Target] = field(default_factory=dict)

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
    wrong = faults("suite", data)
    if not wrong and data["name"] != file.stem:
        wrong = [f"name: {data['name']!r} is not the file's name"]
    if wrong:
        text = "this file does not follow pagewise.suite/1:\n    " + "\n    ".join(wrong)
        raise FormatError(text, where=file, remedy="correct these fields")
    cases = data.get("cases", {"default": "", "pattern": ""})
    named = re.fullmatch(cases["pattern"], case := case or cases["default"])
    if named is None:
        known = f"its cases match {cases['pattern']}" if cases["pattern"] else "it has no cases"
        raise SelectionError(
            f"{data['name']} has no case {case!r}: {known}",
            where=f"--suite {data['name']}:{case}",
            remedy=f"--suite {data['name']}" + (f":{cases['default']}" if cases["default"] else ""),
        )
    data = _filled(data, {"case": case, **named.groupdict("")})
    metrics = [_metric(row, str(file)) for row in data["metrics"]]
    targets = {
        pattern.field: tuple(row["target"])
        for pattern, row in zip(metrics, data["metrics"], strict=True)
        if "target" in row
    }
    if bool(targets) != ("relative_to" in data):
        raise FormatError(
            "relative_to and the target of a metric belong together",
            where=file,
            remedy="name the other code in relative_to, and give a metric its target",
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
        case,
        data.get("module", data["name"]),
        data.get("relative_to"),
        targets,
    )


def _metric(row: Mapping[str, Any], where: str) -> Pattern:
    """A metric of a file. Raises SelectionError for a wrong pattern or formula."""
    pattern = metric(row["label"], row["unit"], row["better"], row["pattern"], where)
    pattern = replace(pattern, optional=row.get("optional", False))
    return calculated(pattern, row["value"], where) if "value" in row else pattern


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    """The content of a file with the words for `{case}` and the parts of the case that its pattern names."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda name: words.get(name[1], name[0]), value)
    if isinstance(value, list):
        return [_filled(item, words) for item in value]
    return {name: _filled(item, words) for name, item in value.items()} if isinstance(value, dict) else value


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
            # What another program starts need not be executable.
            mode = os.F_OK if code.start else os.F_OK | os.X_OK
            path = shutil.which(max(of_glob, default=name), mode, search)
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
        names = [name for name in module_files(tree) if name.split("/", maxsplit=1)[0] == code.module]
        if build is not None:
            names = [name for name in names if fnmatchcase(name, build.module or "")]
        for loaded in lmod.load_each(lmod.find_init(setup_facts()), tree, names[-1:]):
            yield loaded.name, loaded.environment or {}
    if build is None:
        yield "PATH", dict(os.environ)
