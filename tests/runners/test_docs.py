"""The documents: links lead somewhere, index and site list all pages in one order, options exist."""

from __future__ import annotations

import re
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from json_schema import SCHEMAS
from scripts import called
from stage import EVENTS, ROOT
from test_options import COMMANDS

sys.path.insert(0, str(ROOT / "setup"))

import docs_site

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: The pages that setup/docs_site.py generates.
GENERATED = {f"reference/{name.removesuffix('.md')}" for name in docs_site.PAGES}
#: Files with the groups of pages, and what they are there.
GROUPS = ((ROOT / "docs" / "README.md", r"^## (.*)$"), (ROOT / "mkdocs.yml", r"^- (.*):$"))
LINKED = re.compile(r"^\| \[(\w+)\]\((\S+)\)")


def links(file: Path) -> list[tuple[Path, str]]:
    """The files that a page links, which may be itself, with the anchors."""
    actual = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", file.read_text())
    return [
        ((file.parent / link).resolve() if link else file, anchor)
        for link, anchor in actual
        if "://" not in link
    ]


@cache
def anchors(file: Path) -> set[str]:
    """The anchors of a page's headings, as the site makes them."""
    text = re.sub(r"^```.*?^```$", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", one.lower()).strip()) for one in headings}


def test_every_link_leads_to_a_file_and_a_heading():
    linked = [(file.name, *link) for file in DOCUMENTS for link in links(file)]
    broken = [one for one in linked if not one[1].exists() or (one[2] and one[2] not in anchors(one[1]))]
    assert broken == [] and sum(bool(anchor) for _, _, anchor in linked) > 100


def pages_of_the_site() -> list[str]:
    """The pages that mkdocs.yml lists, without their suffix."""
    text = (ROOT / "mkdocs.yml").read_text()
    return re.findall(r"(\S+)\.md$", text[text.index("\nnav:") :], re.MULTILINE)


def test_index_and_site_list_every_page_in_one_order():
    index = ROOT / "docs" / "README.md"
    listed = [str(link.relative_to(ROOT / "docs").with_suffix("")) for link, _ in links(index)]
    assert listed == [name for name in pages_of_the_site() if name not in ("README", *GENERATED)]
    groups = [re.findall(pattern, file.read_text(), re.MULTILINE) for file, pattern in GROUPS]
    assert groups[0] == groups[1] and len(groups[0]) == 5
    assert {ROOT / "docs" / f"{name}.md" for name in listed} == {*DOCUMENTS[1:]} - {index}


def test_the_list_of_kernels_links_each_of_them():
    rows = [line for line in docs_site.kernels() if line.startswith("| ")]
    linked = {name: ROOT / "docs/reference" / page for row in rows for name, page in LINKED.findall(row)}
    described = {file.parent.name for file in (ROOT / "kernels").glob("m*/*/kernel.yaml")}
    assert described - {*linked} == set() and len(described) > 30
    assert [page for name, page in linked.items() if name not in page.read_text()] == []


#: A command on its line, or in a text.
COMMAND = re.compile(r"(?:^ {4,}(?:\$ )?(?:sudo )?|`)\./pagewise ([a-z-]+)([^`\n]*)", re.M)


def test_the_commands_and_options_in_the_documents_are_there():
    known = {
        name: " ".join(text for one in command.params for text in (*one.opts, *one.secondary_opts))
        for name, command in COMMANDS.items()
    }
    wrong = []
    for file in DOCUMENTS:
        text = file.read_text().replace("\\\n", " ")
        for command, rest in COMMAND.findall(text):
            # What comes after -- or in quotes belongs to another program, as the command of a pipe does.
            own = re.split(r"\s--\s|[|#]", re.sub(r"'[^']*'", "", rest))[0]
            section = "".join(part for name, part in known.items() if name.split()[0] == command)
            options = re.findall(r"(?<=\s)--[a-z][a-z-]*", own)
            if command == "simulate":
                # What follows a kernel is its own.
                options = options[: own.lstrip().startswith("--")]
            missing = [one for one in options if one not in section]
            if not section or missing:
                wrong.append((file.name, command, missing))
    assert wrong == []


MICRO = ROOT / "kernels" / "micro"
_PAGE = (ROOT / "docs/reference/coverage.md").read_text()
#: The rows of the guides' coverage: experiment, command, machine, state, what is missing.
ROWS = [
    [cell.strip() for cell in line[1:-1].split("|")]
    for line in _PAGE.splitlines()
    if line.count("|") == 6 and not line.startswith(("| experiment", "|---"))
]
COVERING = [command for row in ROWS for command in re.findall(r"`([^`]+)`", row[1])]


def test_every_row_has_a_state_and_a_command_unless_it_is_missing() -> None:
    assert len(ROWS) > 60
    for experiment, command, machine, state, missing in ROWS:
        assert state in {"complete", "in part", "missing"} and machine, experiment
        assert bool(command) == (state != "missing"), experiment
        assert missing or state != "in part", experiment
    _, *guides = re.split(r"^## ", _PAGE, flags=re.MULTILINE)
    assert [any(line.count("|") == 6 for line in guide.splitlines()) for guide in guides] == [True] * 3
    studies = {command.split()[1] for command in COVERING if command.startswith("studies/fill.py")}
    assert studies == {"hager05", "power6", "a64fx"}
    assert all((ROOT / "studies" / f"{study}.yaml").is_file() for study in studies)


def test_the_kernels_that_cover_a_guide_have_the_options():
    named = [command.removeprefix("pw-") for command in COVERING if command.startswith("pw-")]
    wrong = []
    for command in named:
        kernel, shared = MICRO / command.split()[0], ROOT / "kernels" / "harness"
        text = "".join(file.read_text() for file in (*kernel.glob("*.f90"), *shared.glob("*.f90")))
        options = re.findall(r"--([a-z-]+)", command) + re.findall(r"--sweep ([a-z-]+)", command)
        wrong += [(command, option) for option in options if f"'{option}'" not in text or not kernel.is_dir()]
    assert wrong == [] and len(named) > 20


def test_the_commands_that_cover_a_guide_name_kernels_and_groups():
    groups = {group["name"] for group in yaml.safe_load((EVENTS / "a64fx.yaml").read_text())["groups"]}
    known = {"--kernels": {folder.name for folder in MICRO.iterdir()}, "--groups": groups}
    pairs = [pair for command in COVERING for pair in pairwise(command.split()) if pair[0] in known]
    wrong = [
        (option, name) for option, names in pairs for name in names.split(",") if name not in known[option]
    ]
    assert wrong == [] and {option for option, _ in pairs} == known.keys()


def test_every_command_with_json_is_reported_with_its_schema():
    """And the schemas that they name are generated."""
    table = (ROOT / "docs/reference/json.md").read_text()
    have = [name for name, one in COMMANDS.items() if any("--json" in each.opts for each in one.params)]
    assert [name for name in have if not re.search(rf"`pagewise {name}(?: [^`]+)? --json", table)] == []
    assert len(have) > 10
    assert set(re.findall(r"pagewise\.[a-z-]+/\d", table)) <= set(SCHEMAS)


def test_every_environment_variable_is_on_its_page():
    """Those that other documents name; all of them are in the sources."""
    page = ROOT / "docs/reference/environment-variables.md"
    listed = set(re.findall(r"\b[A-Z][A-Z_]+\b", page.read_text()))
    own = re.compile(r"(?<!_)PAGEWISE_[A-Z_]*[A-Z]")
    named = {name for file in DOCUMENTS for name in own.findall(file.read_text())}
    assert named - listed == set()
    assert len(named) > 30
    folders = ("ci", "containers", "kernels", "runners/pagewise", "setup", "tests/runners")
    files = (file for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file())
    read = {name for file in files for name in own.findall(file.read_text(errors="replace"))}
    assert named - read == set()


@pytest.mark.long
def test_the_site_has_every_document_and_no_broken_link(tmp_path):
    if sys.version_info < (3, 11):
        pytest.skip("zensical needs Python 3.11")
    site = tmp_path / "site"
    done = called([sys.executable, ROOT / "setup" / "docs_site.py", site], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = pages_of_the_site()
    assert len(listed) == len(set(listed))
    # The generated pages, and no others, are in the site and not in the sources.
    committed = {str(file.relative_to(ROOT / "docs"))[: -len(".md")] for file in DOCUMENTS[1:]}
    assert set(listed) == committed | GENERATED
    pages = {name: (site / name.replace("README", "index")).with_suffix(".html") for name in listed}
    assert [name for name, page in pages.items() if not page.is_file()] == []
    # They have what the program has.
    commands = pages["reference/commands"].read_text()
    shown = [name for name, actual in COMMANDS.items() if not actual.hidden]
    assert [name for name in shown if f"pagewise {name}" not in commands] == []
    kernels = pages["reference/kernels"].read_text()
    assert "schoenauer_triad" in kernels and "ember" in kernels
    names = (file.stem.rpartition("-") for file in (site / "reference/schemas").glob("*.json"))
    schemas = {f"pagewise.{name}/{version}" for name, _, version in names}
    assert schemas == set(SCHEMAS)
    # It works offline.
    start = (site / "index.html").read_text()
    assert re.findall(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)"', start) == []
