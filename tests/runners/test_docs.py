"""The documents: every link leads somewhere, docs/README.md lists them all, options in commands exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pagewise.cli import root
from stage import ROOT, RUNNERS

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def links(file: Path) -> list[Path]:
    found = re.findall(r"\]\(([^)#\s]+)[^)]*\)", file.read_text())
    return [(file.parent / link).resolve() for link in found if "://" not in link]


def test_every_link_leads_somewhere():
    broken = [(str(file.relative_to(ROOT)), str(link)) for file in DOCUMENTS for link in links(file)]
    assert [(file, link) for file, link in broken if not Path(link).exists()] == []


def test_the_index_names_every_document():
    named = {ROOT / "docs" / "README.md", *links(ROOT / "docs" / "README.md")}
    pages = [file for file in DOCUMENTS[1:] if file.parent.name != "kernels"]
    assert [file.name for file in pages if file not in named] == []


def test_the_commands_and_options_in_the_documents_are_there():
    """Those of the manual page, which is made of the command line itself."""
    manual = subprocess.run(
        [sys.executable, "-m", "pagewise", "manual"],
        env={"PYTHONPATH": str(RUNNERS)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.replace("\\-", "-")
    known = {part.split("\n")[0]: part for part in re.split(r"^\.SS ", manual, flags=re.MULTILINE)[1:]}
    wrong = []
    for file in DOCUMENTS:
        text = file.read_text().replace("\\\n", " ")
        for command, rest in re.findall(r"^ {4,}(?:\$ )?(?:sudo )?\./pagewise ([a-z-]+)(.*)$", text, re.M):
            # What comes after -- belongs to another program, and so does the command of a pipe.
            # So do options within the quotes of --service and --load.
            own = re.sub(r"'[^']*'", "", rest)
            options = re.findall(r"(?<=\s)--[a-z][a-z-]*", re.split(r"\s--\s|[|#]", own)[0])
            section = "".join(part for name, part in known.items() if name.split()[0] == command)
            if command == "simulate":
                options = [one for one in options if one in section]
            missing = [one for one in options if f"{one}" not in section]
            if not section or missing:
                wrong.append((file.name, command, missing))
    assert wrong == []


def leaves(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """The commands below a group, with what is typed for each."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from leaves(found, f"{path} {name}")
        else:
            yield f"{path} {name}", found


def test_every_command_with_json_is_reported_with_its_schema():
    """And the schemas that they name are files."""
    table = (ROOT / "docs/reference/json.md").read_text()
    have = [
        path
        for path, command in leaves(root, "pagewise")
        if any("--json" in one.opts for one in command.params)
    ]
    assert [path for path in have if not re.search(rf"`{path}(?: [^`]+)? --json", table)] == []
    assert len(have) > 10
    for name, version in re.findall(r"pagewise\.([a-z-]+)/(\d)", table):
        assert (RUNNERS / "pagewise" / "core" / "schema" / f"{name}-{version}.json").is_file()


def test_the_site_has_every_document_and_no_broken_link(tmp_path):
    if sys.version_info < (3, 11):
        pytest.skip("zensical needs Python 3.11")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (ROOT / "mkdocs.yml").read_text()
    listed = re.findall(r"(\S+\.md)$", text[text.index("\nnav:") :], re.MULTILINE)
    documents = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(documents)
    # It works offline.
    start = (tmp_path / ".pagewise" / "docs" / "index.html").read_text()
    assert re.findall(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)"', start) == []
