"""Results from elsewhere: nothing that they name is loaded or executed before the user agrees."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from builders import a_manifest
from pagewise.cli import consent
from pagewise.core.errors import SelectionError
from pagewise.core.manifest import Modules
from pagewise.session.origin import is_own, seal
from pagewise.store.rerun import Begun, choose_modules
from stage import CHASE, Stage

MANIFEST = a_manifest()


@pytest.fixture
def measured(stage: Stage) -> Stage:
    """A result of two short runs, made by this user. What a module executes shows whether it is loaded."""
    stage.loads_modules = True
    stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [CHASE])
    assert stage.compare("--rounds", "1", "--no-sweep", "--name", "first").returncode == 0
    return stage


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What is there once something was executed that must not be."""
    return tmp_path / "executed"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))


def evil_tree(stage: Stage, folder: Path, mark: Path) -> Path:
    """A copy of the module tree whose Lua leaves the mark."""
    tree = folder / "evil"
    shutil.copytree(stage.modules, tree)
    for file in tree.rglob("*.lua"):
        file.write_text(f'os.execute("touch {mark}")\n' + file.read_text())
    return tree


def test_a_seal_is_of_this_user_and_of_what_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert not is_own(MANIFEST) and not (tmp_path / "state").exists()
    own = replace(MANIFEST, seal=seal(MANIFEST))
    assert is_own(own) and is_own(replace(own, name="another"))
    assert not is_own(replace(own, seal=None))
    for name, value in (
        ("id", "f" * 16),
        ("command", ("pagewise", "compare", "--check", "| false")),
        ("started_in", "/tmp"),
        ("modules", Modules(None, "/tmp")),
    ):
        assert not is_own(replace(own, **{name: value}))
    key = tmp_path / "state/pagewise/key"
    assert key.stat().st_mode & 0o777 == 0o600 and key.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in key.parent.iterdir()] == ["key"]
    for spoiled in (0o640, 0o604, 0o620):
        key.chmod(spoiled)
        assert not is_own(own) and seal(MANIFEST) is None
    key.chmod(0o600)
    key.parent.chmod(0o770)
    assert not is_own(own)
    key.parent.chmod(0o700)
    assert is_own(own)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert not is_own(own) and seal(MANIFEST) not in (None, own.seal) and not is_own(own)


def test_without_a_private_folder_nothing_is_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "shared"))
    assert seal(MANIFEST) is None and not is_own(replace(MANIFEST, seal="0" * 64))


@pytest.mark.long
@pytest.mark.parametrize("named", ["tree", "option", "environment"])
def test_the_module_tree_of_a_received_result_is_never_loaded(
    named: str, compared: tuple[Stage, Any], tmp_path: Path, mark: Path
):
    stage, received = compared[0], tmp_path / "received"
    tree = evil_tree(stage, tmp_path, mark)
    shutil.copytree(stage.result(), received)
    changes: dict[str, Callable[[dict[str, Any]], object]] = {
        "tree": lambda manifest: manifest.update(modules={"environment": "default", "tree": str(tree)}),
        "option": lambda manifest: (
            manifest["command"].extend(["--modules", str(tree)]),
            manifest.update(modules={"environment": None, "tree": str(tree)}),
        ),
        "environment": lambda manifest: manifest["command"].extend(["--env", "../../evil"]),
    }
    edit(received, changes[named])
    for arguments in (("--plan",), ("--plan", "--trust"), ("--plan", "--trust", "--anyway")):
        done = stage.run("results", "rerun", str(received), *arguments)
        accepted = "--trust" in arguments and named != "environment"
        assert done.returncode == (0 if accepted else 2), done.stderr
        assert not mark.exists()
    # The tree that the user names is another matter.
    stage.run("results", "rerun", str(received), "--plan", "--trust", "--anyway", "--modules", str(tree))
    assert mark.exists() == (named != "environment")


@pytest.mark.parametrize("kind", ["kernels", "program", "programs", "counters", "peers", "simulation"])
def test_no_kind_lets_a_received_result_choose_the_module_tree(kind: str, tmp_path: Path):
    manifest = a_manifest(kind=kind, modules=Modules(None, str(tmp_path)))
    chosen = {"environment": "default", "modules": tmp_path}
    choose_modules(chosen, Begun(tmp_path, manifest, "compare", [], is_own=False))
    assert chosen["modules"] is None


@pytest.mark.long
def test_modules_are_verified_before_one_is_executed(measured: Stage, mark: Path):
    for file in measured.modules.rglob("*.lua"):
        file.write_text(f'os.execute("touch {mark}")\n' + file.read_text())
    assert measured.run("results", "rerun", str(measured.result()), "--plan").returncode == 4
    assert not mark.exists()
    edit(measured.result(), lambda manifest: manifest.update(state="interrupted"))
    assert measured.run("compare", "--resume", str(measured.result())).returncode == 4
    assert not mark.exists()
    assert measured.run("results", "rerun", str(measured.result()), "--anyway", "--plan").returncode == 0
    assert mark.exists()


@pytest.mark.long
def test_a_check_of_a_received_result_needs_consent(stage: Stage, mark: Path):
    done = stage.run(
        "compare", "--policies", "none", "--rounds", "1", "--output", str(stage.results),
        "--check", "| cat >/dev/null", "--", "/bin/echo", "text",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    own = stage.result()
    received = stage.folder / "received"
    shutil.copytree(own, received)

    def planted(manifest: dict[str, Any]) -> None:
        place = manifest["command"].index("| cat >/dev/null")
        manifest["command"][place] = f"| touch {mark}"
        manifest["state"] = "interrupted"

    edit(received, planted)
    for command in (
        ("results", "rerun", str(received)),
        ("results", "rerun", str(received), "--anyway", "--plan"),
        ("compare", "--resume", str(received)),
    ):
        assert stage.run(*command).returncode == 2
        assert not mark.exists()
    results = ("--output", str(stage.results))
    assert stage.run("results", "rerun", str(own), *results).returncode == 0
    assert not mark.exists()
    before = set(stage.results.iterdir())
    assert stage.run("results", "rerun", str(received), "--trust", "--anyway", *results).returncode == 0
    assert mark.exists()
    # What came from elsewhere stays from elsewhere when it is repeated.
    (new,) = set(stage.results.iterdir()) - before
    assert stage.run("results", "rerun", str(new)).returncode == 2


@pytest.mark.long
def test_the_folder_of_a_received_result_is_no_installation(
    compared: tuple[Stage, Any], tmp_path: Path, mark: Path
):
    """Without PAGEWISE_ROOT the installation is searched for from the working folder: not from a result's."""
    stage, received, planted = compared[0], tmp_path / "received", tmp_path / "planted"
    shutil.copytree(stage.result(), received)
    shutil.copytree(evil_tree(stage, tmp_path, mark), planted / ".pagewise/modules/default")
    edit(received, lambda manifest: manifest.update(started_in=str(planted)))
    variables = {name: value for name, value in stage.variables().items() if name != "PAGEWISE_ROOT"}
    del variables["PAGEWISE_MODULES"]
    done = subprocess.run(
        stage.command("results", "rerun", str(received), "--trust", "--anyway", "--plan"),
        env=variables, cwd=stage.folder, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert not mark.exists()


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_is_asked(
    answer: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    asked = []
    monkeypatch.setattr(consent.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(click, "confirm", lambda *words, **named: asked.append(words) or answer)
    chosen = {"command": ("./app", "\x1b[2Jargument"), "checks": ("| a\rb",)}
    if answer:
        consent.confirm(Path("r"), "compare", chosen, trusted=False)
    else:
        with pytest.raises(SelectionError):
            consent.confirm(Path("r"), "compare", chosen, trusted=False)
    assert len(asked) == 1
    shown = capsys.readouterr().err
    assert all(sign.isprintable() or sign == "\n" for sign in shown) and "./app" in shown


def test_what_a_simulation_executes_is_shown(capsys: pytest.CaptureFixture[str]):
    chosen = {"kernel": "ember", "arguments": ("--edge", "8"), "build": Path("/planted")}
    consent.confirm(Path("r"), "simulate", chosen, trusted=True)
    shown = capsys.readouterr().err.split()
    assert {"ember", "--edge", "8", "/planted"} <= set(shown)
