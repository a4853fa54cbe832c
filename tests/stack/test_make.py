"""The variables of `make`: their names, their origin and their switches."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, copy_checkout

#: The programs that the Makefile starts, replaced by programs that record their arguments.
STARTED = (
    "setup/bootstrap", "setup/build", "setup/lock", "setup/bundle", "setup/publish", "setup/deploy",
    "setup/undeploy", "setup/image", "setup/gallery", "setup/test-packages", "ci/regression", "ci/packages",
    "pagewise",
)  # fmt: skip
NOTE = """#!/usr/bin/env python3
import json, os, pathlib, sys
root = pathlib.Path(__file__).resolve().parent
root = root if (root / "Makefile").exists() else root.parent
with (root / "started").open("a") as file:
    names = ("GROUP", "DEFAULT", "ACCEPT", "PAGEWISE_PYTHON", "ENV", "STUBS", "FIRST_LOOK",
        "PAGEWISE_REQUIRE_SPACK")
    kept = {name: os.environ.get(name) for name in names}
    name = pathlib.Path(sys.argv[0]).name
    file.write(json.dumps([name, sys.argv[1:], kept]) + "\\n")
sys.exit(int(os.environ.get("CODE_OF_" + name, "0")))
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_checkout(tmp_path_factory.mktemp("make") / "project", "setup", "ci", "Makefile", "pagewise")
    for name in STARTED:
        (root / name).write_text(NOTE)
    return root


@pytest.fixture
def project(copied: Path) -> Path:
    """The checkout, with nothing recorded."""
    (copied / "started").unlink(missing_ok=True)
    return copied


def make(project: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", "-C", str(project), *arguments]
    return subprocess.run(command, env=kept | variables, capture_output=True, text=True, check=False)


def started(project: Path, *arguments: str, **variables: str) -> list[tuple[str, list[str], dict[str, str]]]:
    """The programs that a successful make started, with arguments and some variables."""
    done = make(project, *arguments, **variables)
    assert done.returncode == 0, done
    return [tuple(json.loads(line)) for line in (project / "started").read_text().splitlines()]


@pytest.mark.parametrize(("text", "meaning"), [("1", "1"), ("yes", "1"), ("0", ""), ("no", "")])
def test_switches_of_scripts_set_variables(project: Path, text: str, meaning: str) -> None:
    ((_, _, variables),) = started(project, "deploy", f"DEFAULT={text}")
    assert variables["DEFAULT"] == meaning
    _, (_, _, variables) = started(project, "regression", f"ACCEPT={text}")
    assert variables["ACCEPT"] == meaning
    *_, (_, _, variables) = started(project, "stack", f"STUBS={text}")
    assert variables["STUBS"] == meaning
    *_, (_, _, variables) = started(project, "stack")
    assert variables["STUBS"] == "1"


@pytest.mark.parametrize(
    ("name", "text"), [("STUBS", "maybe"), ("ACCEPT", "2"), ("NO_INSTALL", "1 0"), ("DEFAULT", "x")]
)
def test_a_wrong_switch_is_refused_before_anything_starts(project: Path, name: str, text: str) -> None:
    done = make(project, "compare", f"{name}={text}")
    assert done.returncode == 2 and f"{name}={text}" in done.stderr
    assert not (project / "started").exists()


def test_values_that_begin_like_a_switch_are_not_switches(project: Path) -> None:
    *_, (_, words, _) = started(project, "deploy", "RELEASE=0.1.0", "PREFIX=/apps")
    assert words == ["/apps", "0.1.0"]


# By target, the variables that programs get as arguments.
PASSED = {
    "compare": "ENV",
    "test-packages": "ENV",
    "lock": "ENV TARGET LOCK",
    "bundle": "ENV TARGET OUT",
    "publish": "ENV TARGET CACHE",
    "deploy": "PREFIX RELEASE",
    "undeploy": "PREFIX RELEASE",
    "image": "STAGE",
    "regression": "ENV",
    "ci-generate": "ENV",
}


HOSTILE = ("x';touch${IFS}PWNED;'", '"$(touch${IFS}PWNED)"', "a\ntouch PWNED", "`touch PWNED`")


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("target", PASSED)
def test_no_value_is_text_of_a_command(project: Path, target: str, value: str) -> None:
    words = [f"{name}={value.replace('$', '$$')}" for name in PASSED[target].split()]
    *_, (_, arguments, _) = started(project, target, *words)
    assert arguments.count(value) == len(words)
    assert not list(project.rglob("PWNED"))


def test_the_name_of_an_unknown_variable_is_not_a_command(project: Path) -> None:
    assert make(project, "compare", "x';touch${IFS}PWNED;'y=1").returncode == 2
    assert not list(project.rglob("PWNED"))


@pytest.mark.parametrize("target", ["compare", "gallery", "regression"])
def test_options_are_passed_through(project: Path, target: str) -> None:
    *_, measured = started(project, target, "ARGS=--seed 2 -k 'memory/*'", ARGS="--of-others")
    assert measured[1][-4:] == ["--seed", "2", "-k", "memory/*"]


def test_a_fresh_checkout_has_a_first_comparison(project: Path) -> None:
    for words in [], ["ENV=quick"], ["ARGS=--plan"], ["BUNDLE=x.tar"]:
        *_, build, _ = started(project, "compare", *words)
        assert (build[0], build[2]["FIRST_LOOK"]) == ("build", "" if words else "1")
    (project / "started").unlink()
    subprocess.run([project / "setup/first-look"], check=True)
    programs = [json.loads(line)[:2] for line in (project / "started").read_text().splitlines()]
    look = ["kernels", "--env", "quick", "--budget", "1m", "--no-sweep", "--name", "first-look"]
    assert programs == [["build", ["quick"]], ["pagewise", look]]
    stamp = project / ".pagewise/stamps/installed-default"
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()
    (project / "started").unlink()
    subprocess.run([project / "setup/first-look"], check=True)
    assert not (project / "started").exists()


@pytest.mark.parametrize(
    ("program", "code", "ends_with", "is_reported"),
    [("build", 1, 0, True), ("pagewise", 1, 0, False), ("pagewise", 4, 0, True), ("build", 130, 130, False)],
)
def test_a_failed_first_comparison_is_reported(
    project: Path, program: str, code: int, ends_with: int, is_reported: bool
) -> None:
    (project / ".pagewise/stamps/installed-default").unlink(missing_ok=True)
    look = [project / "setup/first-look"]
    failing = os.environ | {f"CODE_OF_{program}": str(code)}
    done = subprocess.run(look, env=failing, capture_output=True, text=True, check=False)
    assert done.returncode == ends_with and ("warning" in done.stderr) == is_reported
    *_, last = (json.loads(line)[0] for line in (project / "started").read_text().splitlines())
    assert last == program


def test_common_names_are_only_taken_from_the_command_line(project: Path) -> None:
    environment = {"ENV": "/etc/profile.d/env.sh", "GROUP": "staff"}
    *_, build, compare = started(project, "compare", **environment)
    assert build[1] == ["default"] and compare[1] == ["kernels", "--env", "default"]
    *_, deploy = started(project, "deploy", **environment)
    assert (deploy[2]["GROUP"], deploy[2]["ENV"]) == ("", "release")
    *_, build, compare = started(project, "compare", "ENV=quick", **environment)
    assert build[1] == ["quick"] and compare[1] == ["kernels", "--env", "quick"]


@pytest.mark.parametrize(
    ("given", "meant"), [("ROUND=3", ""), ("RELEASES=1", "RELEASE"), ("env=quick", "ENV")]
)
def test_an_unknown_variable_is_refused_before_anything_starts(project: Path, given: str, meant: str) -> None:
    done = make(project, "compare", given)
    assert done.returncode == 2 and re.search(rf"\b{meant}\b", done.stderr), done
    assert not (project / "started").exists()


def test_variables_of_the_set_up_are_passed_on(project: Path) -> None:
    path = "/usr/bin/python3"
    (first,) = started(project, "setup", f"PAGEWISE_PYTHON={path}", "PIP_INDEX_URL=https://example.org")
    assert first[2]["PAGEWISE_PYTHON"] == path


def test_the_help_lists_every_variable_and_command() -> None:
    text = (ROOT / "Makefile").read_text()
    used = set(re.findall(r"\$\(([A-Z_]+)\)|^([A-Z_]+) *\?=", text, re.MULTILINE))
    names = {first or second for first, second in used} | set(
        " ".join(re.findall(r"^export ([A-Z_ ]+)$", text, re.M)).split()
    )
    help_text = make(ROOT, "help").stdout
    assert {name for name in names if not name.startswith("PAGEWISE_")} <= set(
        re.findall(r"([A-Z_]+)=", help_text)
    )
    commands = set(re.findall(r"^([a-z][a-z-]+):", text, re.MULTILINE)) - {"help"}
    assert commands == set(re.findall(r"\bmake ([a-z][a-z-]+)", help_text))


@pytest.mark.parametrize(
    ("words", "required"),
    [
        (("stack",), ""),
        (("stack", "BUILDER=cmake"), ""),
        (("stack", "BUILDER=spack"), "1"),
        (("compare", "LOCK=lock"), "1"),
        (("stack", "BUNDLE=bundle.tar"), "1"),
        (("publish",), "1"),
        (("ci-generate",), "1"),
    ],
)
def test_targets_of_spack_require_it_before_installing(
    project: Path, words: tuple[str, ...], required: str
) -> None:
    # What follows the set-up may fail.
    make(project, *words, PAGEWISE_REQUIRE_SPACK="")
    name, _, kept = json.loads((project / "started").read_text().splitlines()[0])
    assert (name, kept["PAGEWISE_REQUIRE_SPACK"]) == ("bootstrap", required)
