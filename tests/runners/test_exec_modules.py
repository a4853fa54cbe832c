"""Modules that apply page policies to whole scripts, as the launcher of pagewise exec does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from launched import Launcher
from own_program import needs_madvise, needs_thp
from pagewise.core.errors import SelectionError
from pagewise.stack.lmod import USUAL_PLACES, find_init
from pagewise.workloads.program.applied import PolicyLauncher as AskedLauncher
from pagewise.workloads.program.policy import IN_MODULES, module_of
from pagewise.workloads.program.production import MODULES, install, module_text
from scripts import called

needs_lmod = pytest.mark.skipif(
    not any((Path(place) / "init/bash").is_file() for place in USUAL_PLACES), reason="Lmod is not installed"
)


def with_module(launcher: Launcher, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A shell in which the modules of the installation are known, with a clean environment."""
    tree = launcher.program.parents[1] / MODULES
    words = ["bash", "--norc", "--noprofile", "-c", f". {find_init(None)}; module use '{tree}'; {script}"]
    variables = {"PATH": os.environ["PATH"], "HOME": str(launcher.folder), "LMOD_PAGER": "none"}
    return called(words, cwd=launcher.folder, env=variables | environment)


@needs_lmod
@needs_thp
@pytest.mark.parametrize("policy", ["thp", "reuse+malloc", "none"])
def test_a_module_applies_a_policy_to_a_whole_script(launcher: Launcher, programs: Path, policy: str):
    script = f"module load pagewise-pages/{policy}; {programs / 'memory'} large; true"
    # The user's own page policy is overridden.
    mine = {"GLIBC_TUNABLES": f"glibc.malloc.hugetlb={'0' if policy == 'none' else '2'}"}
    done = with_module(launcher, script, PAGEWISE_EXEC_RECORD=str(launcher.folder / "pages.jsonl"), **mine)
    assert done.stdout.startswith("sum:") and "pagewise" not in done.stderr, done.stderr
    (record,) = (one for one in launcher.records() if one["program"] == str(programs / "memory"))
    assert record["policy"] == policy and record["met"] is True


@needs_lmod
@needs_madvise
def test_a_module_warns_if_its_policy_was_not_met(launcher: Launcher, programs: Path):
    # What the program maps itself is not malloc's. The test above shows that a met one prints nothing.
    done = with_module(launcher, f"module load pagewise-pages/malloc; {programs / 'memory'} mapped")
    assert [line for line in done.stderr.splitlines() if line.startswith("pagewise: warning")]


@needs_lmod
def test_a_module_replaces_another_and_leaves_nothing(launcher: Launcher):
    script = "unset LD_PRELOAD; module load pagewise-pages/thp pagewise-pages/reuse; env"
    inside = with_module(launcher, script).stdout.splitlines()
    assert "PAGEWISE_EXEC_POLICY=reuse" in inside and "PAGEWISE_PRELOAD=refuse" in inside
    assert not [line for line in inside if "malloc.hugetlb" in line and line.startswith("GLIBC_TUNABLES")]
    mine = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}
    script = "module load pagewise-pages/thp; module unload pagewise-pages/thp; env"
    inside = with_module(launcher, script, **mine).stdout.splitlines()
    assert "GLIBC_TUNABLES=glibc.malloc.arena_max=1" in inside
    assert not [line for line in inside if line.startswith(("PAGEWISE_", "LD_PRELOAD="))]


@needs_lmod
@pytest.mark.parametrize("name", ["a b", "prefix"])
def test_a_module_in_a_folder_that_the_loader_would_split_is_not_loaded(launcher: Launcher, name: str):
    prefix = launcher.folder / name
    shutil.copytree(launcher.program.parents[1], prefix)
    script = "unset LD_PRELOAD; module load pagewise-pages/none; echo $?; env"
    done = with_module(Launcher(prefix / "bin" / launcher.program.name, launcher.folder), script)
    code, *variables = done.stdout.splitlines()
    preloaded = [line for line in variables if line.startswith("LD_PRELOAD=")]
    assert (code == "0") == bool(preloaded) == (name == "prefix"), done


@pytest.mark.parametrize("name", ["a b", "a:b/prefix"])
def test_nothing_is_installed_where_the_loader_would_split_its_path(tmp_path: Path, name: str):
    with pytest.raises(SelectionError) as fault:
        install(tmp_path / name)
    assert fault.value.exit_code == 2 and str(tmp_path / name) in str(fault.value.where)
    assert not any(tmp_path.iterdir())
    # A link does not help: the launcher finds its libraries by its real path.
    (tmp_path / "real folder").mkdir()
    (tmp_path / "link").symlink_to("real folder")
    with pytest.raises(SelectionError):
        install(tmp_path / "link")


def test_all_users_can_use_an_installation_whatever_the_umask(tmp_path: Path, installed, monkeypatch):
    # What is installed is compiled there already.
    monkeypatch.setenv("PAGEWISE_ROOT", str(installed.parents[2]))
    (tmp_path / "mine").mkdir(mode=0o700)
    before = os.umask(0o077)
    try:
        launcher = install(tmp_path / "mine" / "new" / "prefix")
    finally:
        os.umask(before)
    made = [*(tmp_path / "mine").rglob("*")]
    assert len(made) > 10 and launcher in made
    assert [path for path in made if path.is_dir() and path.stat().st_mode & 0o777 != 0o755] == []
    assert [path for path in made if path.is_file() and not path.stat().st_mode & 0o004] == []
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


@needs_madvise
@pytest.mark.parametrize("name", IN_MODULES)
def test_module_and_launcher_set_the_same_where_programs_must_request_pages(launcher: Launcher, name: str):
    """Each setting of the launcher, except the sizes of this node."""
    text = module_text(launcher.program, name).decode()
    asked = AskedLauncher(launcher.program, ("thp", "pool")).ask(name, Path("/bin/true"), {})
    set_alone = re.findall(r'^setenv\("(\w+)", "(.*)"\)$', text, re.MULTILINE)
    entries = re.findall(r'^append_path\("(\w+)", "(.*)", "(.)"\)$', text, re.MULTILINE)
    lists = {
        variable: separator.join(entry for name, entry, _ in entries if name == variable)
        for variable, _, separator in entries
    }
    sizes = ("PAGEWISE_PRELOAD_SIZE", "PAGEWISE_PRELOAD_POOL")
    expected = {name: value for name, value in asked.settings.environment.items() if name not in sizes}
    assert {**dict(set_alone), **lists} == {**expected, "PAGEWISE_EXEC_REPORT": "warn"}
    assert asked.settings.is_advised and module_of(name) == f"pagewise-pages/{name}"
    assert module_of("hugetlbfs:1g") is None
