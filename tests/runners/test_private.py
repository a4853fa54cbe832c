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
def compiled(tmp_path: Path) -> Callable[..., Path]:
    """A function that compiles a library in an environment with these variables."""
    command, source = find_compiler(), tmp_path / "source/value.c"
    if command is None:
        pytest.skip("no C compiler is installed")
    source.parent.mkdir()
    source.write_text("int value(void) { return 1; }\n")
    usual = {"PAGEWISE_ROOT": tmp_path / "nowhere", "XDG_CACHE_HOME": tmp_path / "cache"}

    def compile_in(**variables: object) -> Path:
        environment = {"PATH": os.environ["PATH"], **usual, **variables}
        with patch.dict(os.environ, {name: str(value) for name, value in environment.items()}, clear=True):
            return compile_code(source, LIBRARY, command)

    return compile_in


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


def test_without_home_the_password_database_is_used_else_a_temporary_folder(
    compiled: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    known = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    for environ, folder in (
        ({}, known / ".cache"),
        ({"HOME": "here"}, known / ".cache"),
        ({"HOME": "/h"}, Path("/h/.cache")),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, Path("/x")),
    ):
        assert user_folder("XDG_CACHE_HOME", ".cache", environ) == folder

    def unknown(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr(files.pwd, "getpwuid", unknown)
    assert user_folder("XDG_CACHE_HOME", ".cache", {}) is None
    made = compiled(XDG_CACHE_HOME="")
    assert made.parent == files.temporary_folder() and is_private(made)
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert compiled(XDG_CACHE_HOME="") == made


def test_a_planted_library_is_never_used(tmp_path: Path, compiled: Callable[..., Path], spoil: Spoiler):
    made = compiled()
    assert made.parent == tmp_path / "cache/pagewise/test"
    good = made.read_bytes()
    made.write_bytes(b"planted by the owner: used")
    assert compiled().read_bytes().startswith(b"planted")
    spoil(made)
    again = compiled()
    assert again.read_bytes() == good and is_private(again)
    # The same for a link to a file that another user can write.
    (tmp_path / "elsewhere").write_bytes(b"planted")
    spoil(tmp_path / "elsewhere")
    again.unlink()
    again.symlink_to(tmp_path / "elsewhere")
    assert compiled().read_bytes() == good
    assert (tmp_path / "elsewhere").read_bytes() == b"planted"


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, compiled, spoil: Spoiler):
    """The state of a checkout is the first choice, and the user's cache the second."""
    state = tmp_path / ".pagewise"
    state.mkdir()
    for folder, place in (
        (state / "test", state),
        (tmp_path / "cache/pagewise/test", tmp_path / "cache"),
    ):
        made = compiled(PAGEWISE_ROOT=tmp_path)
        assert made.parent == folder and made.read_bytes() != b"planted"
        made.write_bytes(b"planted")
        spoil(place)
    other = compiled(PAGEWISE_ROOT=tmp_path)
    assert other.parent == files.temporary_folder() and other.read_bytes() != b"planted"


def test_a_library_to_be_preloaded_is_compiled_where_the_loader_takes_its_path_whole(
    tmp_path: Path, compiled: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    split = tmp_path / "a b"
    for root in (split, tmp_path / "a:b"):
        (root / ".pagewise").mkdir(parents=True)
        assert compiled(PAGEWISE_ROOT=root).parent == tmp_path / "cache/pagewise/test"
    assert compiled(PAGEWISE_ROOT=split, XDG_CACHE_HOME=split).parent == files.temporary_folder()
    monkeypatch.setattr(c_code, "temporary_folder", lambda: split)
    with pytest.raises(SetupError):
        compiled(PAGEWISE_ROOT=split, XDG_CACHE_HOME=split)


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
