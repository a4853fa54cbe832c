"""Build the documentation as a site: the pages of docs/, and pages generated from the program and its data.

docs_site.py TARGET

It is built in a temporary folder, because the generated pages are not in the sources. TARGET is replaced.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "runners"))

from pagewise.cli import root  # noqa: E402
from pagewise.cli.options import all_shown  # noqa: E402
from pagewise.core.kernel import read_source  # noqa: E402
from pagewise.core.page_policy import HUGEPAGES, PagePolicy  # noqa: E402
from pagewise.workloads.program.policy import (  # noqa: E402
    DEFAULT,
    IN_MODULES,
    PARTS,
)

import json_schemas  # noqa: E402


def main(target: Path) -> int:
    """Build the site; returns the exit code of zensical, which refuses broken links."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        shutil.copytree(ROOT / "docs", stage / "docs")
        shutil.copy(ROOT / "mkdocs.yml", stage)
        for name, page in PAGES.items():
            text = "\n".join(page()) + "\n"
            (stage / "docs" / "reference" / name).write_text(text, encoding="utf-8")
        json_schemas.write(stage / "docs" / "reference" / "schemas")
        build = [sys.executable, "-m", "zensical", "build", "--strict"]
        if (code := subprocess.run(build, cwd=stage, check=False).returncode) == 0:
            shutil.rmtree(target, ignore_errors=True)
            shutil.move(stage / "site", target)
        return code


def commands() -> Iterator[str]:
    """One section per command, as in `pagewise COMMAND --help`."""
    yield from ("# Commands", "")
    yield from ("Generated from the program. `pagewise COMMAND --help` shows the same in a terminal.", "")
    yield from _below(root, root.make_context("pagewise", [], resilient_parsing=True))


def _below(group: click.Group, parent: click.Context) -> Iterator[str]:
    """The commands of a group that are not hidden, groups before their commands."""
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if command is not None and not command.hidden:
            context = click.Context(command, parent=parent, info_name=name)
            yield from _command(command, context)
            if isinstance(command, click.Group):
                yield from _below(command, context)


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    yield from (f"## {context.command_path}", "", f"    {usage}", "")
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        yield from (_escape(" ".join(paragraph.split())), "")
    panels: dict[str, list[tuple[str, str]]] = {}
    with all_shown(command):
        for option in command.get_params(context):
            if record := option.get_help_record(context):
                panels.setdefault(getattr(option, "panel", None) or "Options", []).append(record)
    for panel, options in panels.items():
        yield from (f"**{_escape(panel)}**", "")
        yield from (f"- `{name}`: {_escape(text)}" if text else f"- `{name}`" for name, text in options)
        yield ""
    examples = [line.strip() for line in (command.epilog or "").splitlines()]
    if lines := [line for line in examples if line not in ("", "Examples:")]:
        yield from ("Examples:", "", *(f"    {line}" for line in lines), "")


def kernels() -> Iterator[str]:
    """All kernels by group, from their kernel.yaml files."""
    yield from ("# Kernels", "")
    yield "Generated from the files `kernel.yaml`. `pagewise list kernels` lists those that are installed."
    yield "Each run validates its result; the record has method, error and tolerance (`validation`)."
    groups: dict[str, list[dict[str, Any]]] = {}
    for file in sorted((ROOT / "kernels").glob("m*/*/*.yaml")):
        if file.read_text(encoding="utf-8").startswith("schema: pagewise.kernel/1\n"):
            kernel = read_source(file)
            groups.setdefault(kernel["group"], []).append(kernel)
    for group, members in groups.items():
        rows = (
            (
                _page(kernel["name"]),
                kernel["summary"],
                kernel.get("equation", ""),
                ", ".join(kernel["sensitive_to"]),
            )
            for kernel in members
        )
        yield from ("", f"## {group}", "")
        yield from _table(("kernel", "what it does", "equation", "sensitive to"), rows)


def _page(name: str) -> str:
    """The name of a kernel as a link: to the page of that name, or to a page with a row for it in a table."""
    reference = ROOT / "docs" / "reference"
    for file in (f"kernels/{name}.md", f"{name}.md"):
        if (reference / file).is_file():
            return f"[{name}]({file})"
    for page in (*sorted(reference.glob("kernels/*.md")), *sorted(reference.glob("*.md"))):
        if f"\n| `{name}` |" in page.read_text(encoding="utf-8"):
            return f"[{name}]({page.relative_to(reference)})"
    return name


def environments() -> Iterator[str]:
    """All environments with the comment at the head of their spack.yaml."""
    yield from ("# Environments", "")
    yield from ("Generated from the files `spack.yaml`. `make compare ENV=NAME` builds and compares one.", "")
    files = {"default": ROOT / "spack.yaml"}
    files |= {file.parent.name: file for file in sorted(ROOT.glob("envs/*/spack.yaml"))}
    yield from _table(
        ("environment", "purpose"), ((f"`{name}`", _head(file)) for name, file in files.items())
    )


def _head(file: Path) -> str:
    lines = re.match(r"(?:#.*\n)+", file.read_text(encoding="utf-8"))
    return " ".join(line.lstrip("# ") for line in lines[0].splitlines()) if lines else ""


def policies() -> Iterator[str]:
    """Page policies of builds and of programs."""
    yield from ("# Page policies", "")
    yield from ("Generated from the program. [Page policies](../explanation/pages.md) explains them.", "")
    yield from ("## Of builds", "", "Values of the variant `hugepages` of our packages:", "")
    of_builds = ((f"`{name}`", PagePolicy(name).text, PagePolicy(name).memory or "") for name in HUGEPAGES)
    yield from (*_table(("policy", "pages", "source of the memory"), of_builds), "")
    yield from ("## Of unmodified programs", "")
    yield from ("Parts for `pagewise compare -- PROGRAM` and `pagewise exec`, joined by `+`:", "")
    of_programs = ((f"`{name}`", part.meaning, "yes" if part.size else "") for name, part in PARTS.items())
    yield from (*_table(("part", "meaning", "takes a size"), of_programs), "")
    yield from (f"Compared by default: {_names(DEFAULT)}.", "")
    yield f"Available as modules `pagewise-pages/NAME`: {_names(IN_MODULES)}."


def schemas() -> Iterator[str]:
    """The fields of each file and output, from their types."""
    yield from ("# Files and schemas", "")
    yield "Generated from the program's types. The JSON Schemas have all parts."
    for name, schema in json_schemas.documents().items():
        file = json_schemas.file_name(name)
        yield from (
            "",
            f"## {name}",
            "",
            _escape(schema["description"]),
            "",
            f"JSON Schema: [{file}](schemas/{file}).",
            "",
        )
        rows = (
            (
                f"`{field}`",
                _type(one),
                "yes" if field in schema["required"] else "",
                one.get("description")
                or schema.get("$defs", {}).get(_reference(one), {}).get("description", ""),
            )
            for field, one in schema["properties"].items()
        )
        yield from _table(("field", "type", "required", "meaning"), rows)


def _reference(schema: dict[str, Any]) -> str:
    """The name of the part that a field is."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _type(schema: dict[str, Any]) -> str:
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    return _reference(schema) or str(schema.get("type", "any"))


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        # The first cell is a name or a link.
        yield f"| {' | '.join((row[0], *(_escape(cell) for cell in row[1:])))} |"


def _escape(text: str) -> str:
    """Text in which only code spans mean something to Markdown."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts = [text.replace("`", "'")]
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(r"([\\*_<>\[\]|])", r"\\\1", parts[number])
    return "`".join(parts)


#: The generated pages, in docs/reference.
PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands.md": commands,
    "environments.md": environments,
    "kernels.md": kernels,
    "policies.md": policies,
    "schemas.md": schemas,
}

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
