"""Each use promised in tests/promises.md has a test: in each run of CI, or before a release.

So has each block of commands on the pages for Spack, centres, containers and sites without network.
"""

from __future__ import annotations

import re
import subprocess
import sys

from conftest import ROOT, sections

#: The how-to pages whose blocks tests run as printed, each from this heading on.
PAGES = {
    "spack-user": "From your own Spack",
    "centre": "In your own Spack",
    "containers": "Container images",
    "release": "Make a bundle",
}
ROW = re.compile(r"^\| .*? \| .*? \| `(tests/\S+::\w+)` \|$", re.MULTILINE)


def collected(marks: str, tests: list[str]) -> set[str]:
    """Those of the tests that pytest selects by these marks."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-m", marks]
    actual: set[str] = set()
    # Two folders have files of one name.
    for is_runner in (True, False):
        named = [test for test in tests if test.startswith("tests/runners/") == is_runner]
        done = subprocess.run([*command, *named], cwd=ROOT, capture_output=True, text=True, check=False)
        actual |= set(re.findall(r"^\S+\.py::\w+", done.stdout, re.MULTILINE))
    return actual


def test_each_promised_use_has_a_test_in_its_part() -> None:
    page = (ROOT / "tests/promises.md").read_text()
    in_ci, before_release = map(ROW.findall, page.split("## Before a release"))
    assert len(in_ci) + len(before_release) == page.count("::") > 20
    assert set(in_ci) - collected("not release", in_ci) == set()
    assert set(before_release) - collected("release", before_release) == set()


def test_each_section_with_commands_has_a_test() -> None:
    """That names page and section; it gets all blocks of the section, as printed."""
    tests = [file.read_text() for file in (ROOT / "tests/stack").glob("test_*.py")]
    for page, first in PAGES.items():
        named = [text for text in tests if f'"{page}"' in text and "printed(" in text]
        every = list(sections(ROOT, page))
        headings = every[every.index(first) :]
        assert len(headings) > 1
        assert [heading for heading in headings if not any(f'"{heading}"' in text for text in named)] == []
