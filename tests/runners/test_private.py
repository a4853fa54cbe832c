"""Files that are loaded or executed come from folders that no other user can write to."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from pagewise.core import files
from pagewise.core.errors import SetupError
from pagewise.core.files import is_private, make_private, user_folder
from pagewise.stack import c_code
from pagewise.stack.c_code import Product, compile_code, find_compiler
from pagewise.stack.paths import module_tree, project_root

LIBRARY = Product("a library", "test", ("-shared", "-fPIC"), suffix=".so")
Spoiler = Callable[[Path], None]


def _give_to_user(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to another user")
    os.chown(path, 65534, 65534, follow_symlinks=False)


SPOILERS: dict[str, Spoiler] = {
    "group may write": lambda path: path.chmod(0o770),
    "all may write": lambda path: path.chmod(0o707),
    "another's": _give_to_user,
}


@pytest.fixture(params=SPOILERS)
def spoil(request: pytest.FixtureRequest) -> Spoiler:
    return SPOILERS[request.param]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source" / "value.c"
    file.parent.mkdir()
    file.write_text("int value(void) { return 1; }\n")
    return file


@pytest.fixture
def compiler() -> list[str]:
    command = find_compiler()
    if command is None:
        pytest.skip("no C compiler is installed")
    return command


def compiled_in(environ: dict[str, str], source: Path, compiler: list[str]) -> Path:
    with patch.dict(os.environ, environ, clear=True):
        return compile_code(source, LIBRARY, compiler)


def environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PAGEWISE_ROOT": str(folder / "nowhere")}


def test_a_path_is_private_if_all_folders_above_it_are(tmp_path: Path, spoil: Spoiler):
    file = tmp_path / "a" / "b" / "file"
    assert make_private(file.parent)
    file.touch(mode=0o644)
    assert is_private(file) and not is_private(tmp_path / "missing")
    (tmp_path / "link").symlink_to(file)
    assert is_private(tmp_path / "link")
    for place in (file, file.parent, file.parent.parent):
        mode = place.stat().st_mode
        spoil(place)
        assert not is_private(file) and not is_private(tmp_path / "link")
        os.chown(place, os.geteuid(), os.getegid())
        place.chmod(mode)
        assert is_private(file)


def test_a_path_below_a_sticky_folder_is_private_and_the_folder_is_not(tmp_path: Path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    assert make_private(tmp_path / "shared" / "mine")
    assert not make_private(tmp_path / "shared")


def test_without_home_the_password_database_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    known = pwd.getpwuid(os.geteuid())
    assert user_folder("XDG_CACHE_HOME", ".cache", {}) == Path(known.pw_dir) / ".cache"
    assert user_folder("XDG_CACHE_HOME", ".cache", {"HOME": "here"}) == Path(known.pw_dir) / ".cache"
    assert user_folder("XDG_CACHE_HOME", ".cache", {"HOME": "/h"}) == Path("/h/.cache")
    assert user_folder("XDG_CACHE_HOME", ".cache", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}) == Path("/x")

    def unknown(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr(files.pwd, "getpwuid", unknown)
    assert user_folder("XDG_CACHE_HOME", ".cache", {}) is None


def test_without_a_home_code_is_compiled_in_a_temporary_folder(
    tmp_path: Path, source: Path, compiler: list[str], monkeypatch: pytest.MonkeyPatch
):
    def unknown(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr(files.pwd, "getpwuid", unknown)
    made = compiled_in(environment(tmp_path), source, compiler)
    assert made.parent == files.temporary_folder() and is_private(made)
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert compiled_in(environment(tmp_path), source, compiler) == made


def test_a_planted_library_is_never_used(tmp_path: Path, source: Path, compiler: list[str], spoil: Spoiler):
    settings = {**environment(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    made = compiled_in(settings, source, compiler)
    assert made.parent == tmp_path / "cache/pagewise/test"
    good = made.read_bytes()
    made.write_bytes(b"planted by the owner: used")
    assert compiled_in(settings, source, compiler).read_bytes().startswith(b"planted")
    spoil(made)
    again = compiled_in(settings, source, compiler)
    assert again.read_bytes() == good and is_private(again)
    # The same for a link to a file that another user can write.
    (tmp_path / "elsewhere").write_bytes(b"planted")
    spoil(tmp_path / "elsewhere")
    again.unlink()
    again.symlink_to(tmp_path / "elsewhere")
    assert compiled_in(settings, source, compiler).read_bytes() == good
    assert (tmp_path / "elsewhere").read_bytes() == b"planted"


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, source: Path, compiler: list[str], spoil: Spoiler
):
    settings = {**environment(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    made = compiled_in(settings, source, compiler)
    made.write_bytes(b"planted")
    spoil(tmp_path / "cache")
    other = compiled_in(settings, source, compiler)
    assert other.parent == files.temporary_folder() and other.read_bytes() != b"planted"


def test_the_state_of_a_checkout_is_used_if_it_is_private(
    tmp_path: Path, source: Path, compiler: list[str], spoil: Spoiler
):
    settings = {**environment(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    settings["PAGEWISE_ROOT"] = str(tmp_path)
    state = tmp_path / ".pagewise"
    state.mkdir()
    assert compiled_in(settings, source, compiler).parent == state / "test"
    spoil(state)
    assert compiled_in(settings, source, compiler).parent == tmp_path / "cache/pagewise/test"


def test_a_library_to_be_preloaded_is_compiled_where_the_loader_takes_its_path_whole(
    tmp_path: Path, source: Path, compiler: list[str], monkeypatch: pytest.MonkeyPatch
):
    settings = {**environment(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for name in ("a b", "a:b"):
        (tmp_path / name / ".pagewise").mkdir(parents=True)
        settings["PAGEWISE_ROOT"] = str(tmp_path / name)
        assert compiled_in(settings, source, compiler).parent == tmp_path / "cache/pagewise/test"
    settings["XDG_CACHE_HOME"] = str(tmp_path / "a b")
    assert compiled_in(settings, source, compiler).parent == files.temporary_folder()
    monkeypatch.setattr(c_code, "temporary_folder", lambda: tmp_path / "a b")
    with pytest.raises(SetupError):
        compiled_in(settings, source, compiler)


def test_a_detected_checkout_must_be_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Spoiler):
    """Its modules are executed as Lua, and its setup.json names a file that a shell executes."""
    (tmp_path / ".pagewise" / "modules" / "default").mkdir(parents=True)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.delenv("PAGEWISE_ROOT", raising=False)
    monkeypatch.delenv("PAGEWISE_MODULES", raising=False)
    assert project_root() == tmp_path
    assert module_tree("default", None) == tmp_path / ".pagewise/modules/default"
    spoil(tmp_path / ".pagewise")
    assert project_root() == tmp_path / "below"
    monkeypatch.setenv("PAGEWISE_ROOT", str(tmp_path))
    assert project_root() == tmp_path
