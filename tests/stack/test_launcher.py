"""`pagewise` and setup/activate.sh: they find their checkout, and report why it cannot be used."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import POLICIES, ROOT, STATE, copy_checkout, write_script

SHELLS = [["bash", "--norc"], ["zsh", "-f"]]
OUTSIDER = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="pagewise-launcher-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def fresh(place: Path) -> Path:
    """A checkout whose Python prints PAGEWISE_ROOT and exits with 23."""
    root = copy_checkout(place / "with a blank" / "checkout", "setup", "runners", POLICIES, "pagewise")
    python = place / "private" / "python"
    python.parent.mkdir()
    write_script(python, '#!/bin/sh\nprintf "%s\\n" "$PAGEWISE_ROOT"\nexit 23\n')
    link = root / ".pagewise" / "venv" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(python)
    return root


def run(
    *command: str | Path, at: Path = Path("/"), **variables: str | None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; variables that are None are unset."""
    environment = {name: text for name, text in (os.environ | variables).items() if text is not None}
    # Look the program up in the PATH of the tests.
    program = shutil.which(command[0])
    assert program
    words = [program, *map(str, command[1:])]
    return subprocess.run(words, env=environment, cwd=at, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", ["", None, "/nowhere"])
def test_the_launcher_finds_its_checkout_without_path(fresh: Path, place: Path, path: str | None) -> None:
    link = place / "link"
    link.symlink_to("with a blank/checkout/pagewise")
    (place / "checkout").mkdir()
    by_folder = place / "folder"
    by_folder.symlink_to(fresh)
    for command, at in (
        ([fresh / "pagewise"], place),
        (["./pagewise"], fresh),
        ([link], fresh),
        ([by_folder / "pagewise"], place),
        (["sh", "pagewise"], fresh),
        (["bash", "../checkout/pagewise"], fresh),
        # CDPATH contains a folder of this name.
        (["sh", "checkout/pagewise"], fresh.parent),
    ):
        words = [str(at / word) if word == "./pagewise" else word for word in command]
        done = run(*words, at=at, PATH=path, CDPATH=str(place))
        assert (done.returncode, done.stdout) == (23, f"{fresh}\n"), (command, done)


def test_the_launcher_never_uses_the_current_folder(fresh: Path) -> None:
    # The shell reads the script from standard input instead of a file.
    script = (ROOT / "pagewise").read_text()
    done = subprocess.run(["sh"], input=script, cwd=fresh, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run as another user")
@pytest.mark.parametrize("closed", ["private", "with a blank/checkout/.pagewise"])
def test_a_python_without_permission_is_not_reported_as_a_missing_set_up(
    fresh: Path, place: Path, closed: str
) -> None:
    assert run(*OUTSIDER, fresh / "pagewise").returncode == 23
    (place / closed).chmod(0o700)
    done = run(*OUTSIDER, fresh / "pagewise")
    assert (done.returncode, done.stdout) == (4, ""), done
    assert run(fresh / "pagewise").returncode == 23


def test_a_checkout_without_python_is_not_set_up(fresh: Path, place: Path) -> None:
    shutil.rmtree(place / "private")
    done = run(fresh / "pagewise")
    assert (done.returncode, done.stdout) == (3, "") and f"make -C '{fresh}' setup\n" in done.stderr, done


@pytest.mark.parametrize("missing", ["click", "yaml"])
def test_a_python_without_its_packages_is_not_set_up(fresh: Path, missing: str) -> None:
    shutil.rmtree(fresh / ".pagewise" / "venv")
    (fresh / ".pagewise" / "venv").symlink_to((STATE / "venv").resolve())
    hidden = fresh / "runners" / f"{missing}.py"
    hidden.write_text(f"raise ModuleNotFoundError('it is hidden', name='{missing}')\n")
    done = run(fresh / "pagewise", "site", "list")
    assert (done.returncode, done.stdout) == (3, ""), done


def test_the_callers_variables_do_not_add_code(fresh: Path, place: Path) -> None:
    shutil.rmtree(fresh / ".pagewise" / "venv")
    (fresh / ".pagewise" / "venv").symlink_to((STATE / "venv").resolve())
    planted = place / "planted"
    planted.mkdir()
    for name in ("sitecustomize", "usercustomize", "click", "pagewise", "runpy"):
        (planted / f"{name}.py").write_text(f"open({str(place / name)!r}, 'w')\nraise SystemExit(99)\n")
    done = run(
        fresh / "pagewise", "--version", at=planted, PYTHONPATH=str(planted), PYTHONHOME=str(planted),
        PYTHONUSERBASE=str(planted), PYTHONSTARTUP=str(planted / "click.py"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {file.name for file in place.iterdir()} == {"planted", "private", "with a blank"}
    # The package comes from this checkout, not from the Python environment.
    (fresh / "runners" / "pagewise" / "__init__.py").write_text("raise SystemExit(42)\n")
    assert run(fresh / "pagewise", "--version").returncode == 42


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"], ["mksh"]], ids=lambda shell: shell[0])
def test_activation_in_another_shell_is_an_error_that_does_not_end_the_script(
    fresh: Path, shell: list[str]
) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"needs {shell[0]}")
    script = f'. "{fresh}/setup/activate.sh"; echo "$? ${{PAGEWISE_ROOT-unset}}"'
    done = run(*shell, "-c", script, PAGEWISE_ROOT=None)
    assert (done.returncode, done.stdout) == (0, "1 unset\n") and "error:" in done.stderr, done


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_activation_uses_whole_paths_or_nothing(fresh: Path, shell: list[str]) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"needs {shell[0]}")
    trees = fresh / ".pagewise" / "modules"
    for name in ("one", "two", "two.new"):
        (trees / name).mkdir(parents=True)
    use = """module() { printf '%s\\n' "$*"; }"""
    done = run(*shell, "-c", f'{use}; . "{fresh}/setup/activate.sh"; echo "$?"')
    assert done.stdout.splitlines() == [f"use {trees / 'two'}", f"use {trees / 'one'}", "0"], done
    # PATH and MODULEPATH cannot contain a colon.
    moved = fresh.rename(fresh.with_name("a:b"))
    done = run(
        *shell,
        "-c",
        f'{use}; before=$PATH; . "{moved}/setup/activate.sh"; echo "$?"; [ "$PATH" = "$before" ]',
    )
    assert (done.returncode, done.stdout) == (0, "1\n") and "error:" in done.stderr, done


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("path", ["", None, "/nowhere"])
def test_activation_finds_its_checkout_without_path(
    fresh: Path, place: Path, shell: list[str], path: str | None
) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"needs {shell[0]}")
    link = place / "activate.sh"
    link.symlink_to(fresh / "setup" / "activate.sh")
    for file in (fresh / "setup" / "activate.sh", link):
        script = f'. "{file}" && "$PAGEWISE_ROOT/pagewise"; echo "$?"'
        done = run(*shell, "-c", script, at=place, PATH=path, CDPATH=str(place))
        assert done.stdout.splitlines()[-2:] == [str(fresh), "23"], done
