"""Results from elsewhere: nothing that they name is loaded or executed; their command is printed as text."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from builders import a_manifest
from pagewise.core.manifest import Modules
from pagewise.core.result import read_result
from pagewise.core.text import command_text
from pagewise.report.verdicts import BuildAdvice, PolicyAdvice
from pagewise.report.views.applying import commands
from scripts import called, write_script
from stage import Stage

# Arguments that a shell or a terminal could interpret.
HOSTILE = (
    "a b", "", "-n", "'", '"', "\\", "$(touch x)", "`touch x`", ";touch x", "a\nb", "\t",
    "\x1b]0;t\x07", "\x1b[2J", "\u202eexe", "\r# ", "~", "*", "!!", "a'\nb\\", "\x9b2J", "größe",
    os.fsdecode(b"a\xffb"), "\x011",
)  # fmt: skip


@pytest.mark.long
def test_nothing_that_a_received_result_names_is_executed(compared: tuple[Stage, Any], tmp_path: Path):
    stage, mark = Stage(compared[0].folder, loads_modules=True), tmp_path / "executed"
    # Lua that leaves the mark.
    tree = str(shutil.copytree(stage.modules, tmp_path / "evil"))
    for file in Path(tree).rglob("*.lua"):
        file.write_text(f'os.execute("touch {mark}")\n' + file.read_text())
    checks = ["pagewise", "compare", "--check", f"| touch {mark}", "--policies", "none", "--", "/bin/echo"]
    planted: dict[str, dict[str, Any]] = {
        "tree": {"modules": {"environment": "default", "tree": tree}},
        "option": {"command": ["pagewise", "kernels", "--modules", tree]},
        "program": {"command": ["pagewise", "compare", "--", "touch", str(mark)]},
        "check": {"command": checks},
        "setting": {"command": ["pagewise", "compare", "--vary", "LD_PRELOAD=/e.so", "--", "/bin/echo"]},
        "folder": {"started_in": tree},
    }
    for name, changes in planted.items():
        received = tmp_path / name
        shutil.copytree(stage.result(), received)
        file = received / "manifest.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes, "state": "interrupted"}))
        for command in (("results", "show"), ("results", "list"), ("report",)):
            # 1: the compared runs had an excluded one, on a busy machine.
            assert stage.run(*command, str(received)).returncode in (0, 1)
        for more in ((), ("--plan",), ("--check", f"| touch {mark}", "--", "/bin/echo")):
            assert stage.run("kernels", "--resume", str(received), *more).returncode == 2
    assert not mark.exists()


def parsed(folder: Path, line: str) -> list[str]:
    """The arguments of `pagewise`, its folder and MARK, as bash passes them."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    write_script(tools / "pagewise", '#!/bin/bash\nprintf "%s\\0" "$PWD" "$MARK" "$@"\n')
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env={"PATH": f"{tools}:{os.environ['PATH']}"}, capture_output=True,
        check=True,
    )  # fmt: skip
    return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]


@pytest.mark.parametrize("sign", HOSTILE)
def test_a_results_command_line_has_folder_environment_and_options(sign: str, tmp_path: Path):
    started = tmp_path / f"in {sign.replace('/', '')}"
    started.mkdir(exist_ok=True)
    manifest = a_manifest(
        command=("pagewise", "compare", "--check", sign, "--", "./app", sign), started_in=str(started),
        programs={"app": {"environment": {"passed": {"MARK": sign}, "removed": {}}}},
    )  # fmt: skip
    line = manifest.command_line("--resume", sign)
    assert all(character.isprintable() for character in line)
    words = parsed(tmp_path, line)
    assert words == [str(started), sign, "compare", "--resume", sign, "--check", sign, "--", "./app", sign]
    assert {*tmp_path.iterdir()} == {tmp_path / "tools", started}


def test_the_command_line_of_kernels_names_their_modules():
    line = a_manifest(modules=Modules("mine", "/a b")).command_line()
    assert "PAGEWISE_ENV=mine" in line and "'PAGEWISE_MODULES=/a b'" in line


@pytest.mark.long
def test_the_command_line_of_a_result_measures_the_same(small: Stage):
    small.compare("--rounds", "3", "--no-sweep", "--seed", "5", code=0)
    first = small.result()
    line = json.loads(small.run("results", "show", str(first), "--json").stdout)["command_line"]
    variables = {name: value for name, value in small.variables().items() if name != "PAGEWISE_MODULES"}
    command = command_text(small.command())
    functions = f'pagewise() {{ {command} "$@"; }}; env() {{ export "$1" "$2"; shift 2; "$@"; }}'
    done = called(["bash", "-c", f"{functions}; {line}"], cwd="/", env=variables)
    assert done.returncode == 0, done.stderr
    old, new = (read_result(folder).manifest for folder in (first, small.result()))
    assert old.id != new.id
    for name in ("command", "seed", "rounds", "configurations", "subjects", "executables", "started_in"):
        assert getattr(new, name) == getattr(old, name)


@pytest.mark.parametrize("sign", HOSTILE)
def test_advice_of_a_received_result_is_commands_with_its_names_as_words(sign: str, tmp_path: Path):
    build = BuildAdvice(
        compiler="gcc-12",
        module=f"m{sign}",
        command=("module", "load", f"m{sign}"),
        arguments=(sign,),
        spec=f"p@1{sign}",
        compiler_options=sign,
        kernels=("k",),
    )
    policy = PolicyAdvice(
        policy="thp", command=("pagewise", "exec", "thp", "--", f"m{sign}"), module=f"m{sign}"
    )
    for title, text in commands(policy, [build], of_program=False):
        assert all(character.isprintable() for character in text)
        line = text if text.startswith(("pagewise", "module", "spack")) else f"echo {text}"
        for name in ("module", "spack", "echo"):
            line = re.sub(f"^{name} ", "pagewise ", line)
        words = parsed(tmp_path, line)[2:]
        named = {"In": f"p@1{sign}".split(), "Compiler": sign.split()}
        expected = named.get(title.split()[0], [f"m{sign}"])
        assert "first" in title or words[len(words) - len(expected) :] == expected
    assert list(tmp_path.iterdir()) == [tmp_path / "tools"]
