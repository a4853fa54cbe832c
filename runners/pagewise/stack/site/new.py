"""Creates a site from facts that are detected on this machine, and from options."""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import yaml

from pagewise.core.errors import RefusedError, SetupError
from pagewise.core.reading import parse_json, read_file
from pagewise.core.schemas import validator
from pagewise.stack.paths import needed_checkout, project_root
from pagewise.stack.site.folder import Site, read_site, sites_folder, spack_toolchains, toolchain_compilers


@dataclass(frozen=True)
class Detected:
    """The facts that are detected on this machine. definitions: what environments combine toolchains with."""

    packages: dict[str, Any]
    toolchains: list[str]
    definitions: list[dict[str, Any]]
    policies: list[str]
    base_kib: int
    module_init: str | None


def fault(place: Sequence[str], answer: str) -> str | None:
    """The fault of an answer by the schema of site.yaml at this place; None for a valid answer."""
    checked = validator("site")
    part: Any = checked.schema
    for name in place:
        part = part["properties"][name]
    return next((error.message for error in checked.evolve(schema=part).iter_errors(answer)), None)


def detect(root: Path | None = None) -> Detected:
    """Detects facts on this machine, and reads those of the setup. Raises SetupError before `make setup`."""
    root = root or project_root()
    file = root / ".pagewise" / "detected" / "packages.yaml"
    try:
        packages = parse_json(read_file(file))["packages"]
        definitions = parse_json(read_file(file.with_name("definitions.yaml")))["definitions"]
        setup = parse_json(read_file(root / ".pagewise" / "setup.json"))
    except (OSError, ValueError, KeyError) as fault:
        raise SetupError("the setup has not run on this machine", where=file, remedy="make setup") from fault
    facilities = {
        "thp": "/sys/kernel/mm/transparent_hugepage/enabled",
        "hugetlbfs": "/sys/kernel/mm/hugepages",
    }
    processor = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    a64fx = "0x46" in processor and "0x001" in processor  # as machine/settings/prefetchers.py has them
    # The usual flag sets for this processor; users who want other ones name them.
    kind = "-a64fx" if a64fx else "" if platform.machine() == "x86_64" else "-other"
    usual = re.compile(f"pagewise-[a-z]+{kind}")
    toolchains = [
        name
        for name, compilers in toolchain_compilers(root).items()
        if compilers <= packages.keys() and usual.fullmatch(name)
    ]
    return Detected(
        packages,
        toolchains,
        [entry for entry in definitions if "toolchains" not in entry],
        ["none", *(policy for policy, place in facilities.items() if Path(place).exists())],
        os.sysconf("SC_PAGE_SIZE") // 1024,
        setup["lmod"]["init"],
    )


def new_folder(name: str, root: Path | None = None) -> Path:
    """The folder of a new site. Raises RefusedError if it exists."""
    folder = sites_folder(root or needed_checkout("a new site")) / name
    if folder.exists():
        raise RefusedError("this site exists", where=folder, remedy="remove it, or choose another name")
    return folder


def write(
    name: str,
    summary: str,
    detected: Detected,
    *,
    target: str | None,
    modules: Sequence[str],
    root: Path | None = None,
) -> Site:
    """Writes and checks a site, then moves it to its place. Raises as new_folder and read_site."""
    folder = new_folder(name, root)
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("pagewise.stack.site", "."),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.filters["yaml"] = json.dumps
    text = templates.get_template("site.yaml.jinja").render(
        name=name,
        summary=summary,
        target=target,
        detected=detected,
        modules=list(modules),
    )
    of_all = {"all": {"target": [target]}} if target else {}
    files = {
        "packages": {"packages": {**of_all, **detected.packages}},
        "definitions": {"definitions": [spack_toolchains(detected.toolchains), *detected.definitions]},
    }
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as aside:
        made = Path(aside, name)
        made.mkdir()
        (made / "site.yaml").write_text(text, encoding="utf-8")
        for section, content in files.items():
            (made / f"{section}.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        read_site(str(made), root)
        made.rename(folder)
    return read_site(name, root)
