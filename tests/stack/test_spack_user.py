"""A Spack user without a clone of this repository."""

from __future__ import annotations

import shutil
from pathlib import Path

from conftest import STATE, run


def test_spack_takes_the_recipes_from_the_repositorys_url(
    spack_ready: None, origin: Path, tmp_path: Path
) -> None:
    # Indexing the builtin packages takes a minute; the set-up has done it.
    indexes = tmp_path / "indexes"
    shutil.copytree(STATE / "misc-cache", indexes)
    settings = {
        "SPACK_USER_CONFIG_PATH": str(tmp_path / "config"),
        "SPACK_USER_CACHE_PATH": str(tmp_path / "cache"),
        "SPACK_SYSTEM_CONFIG_PATH": str(tmp_path / "none"),
        "SPACK_PYTHON": str(STATE / "venv" / "bin" / "python"),
    }
    builtin = STATE / "spack-packages" / "repos" / "spack_repo" / "builtin"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "repos.yaml").write_text(f"repos:\n  builtin:: {builtin.resolve()}\n")
    spack = (STATE / "spack" / "bin" / "spack", "-c", f"config:misc_cache:{indexes}")

    added = run(*spack, "repo", "add", f"file://{origin}", **settings)
    assert added.returncode == 0, added.stdout
    listed = run(*spack, "list", "pagewise", **settings)
    assert "pagewise-micro" in listed.stdout.split(), listed.stdout
    # The recipes of externals must not be added.
    shown = run(*spack, "repo", "list", "--names", **settings)
    assert sorted(shown.stdout.split()) == ["builtin", "pagewise"], shown.stdout
