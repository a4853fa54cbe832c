"""Modules written by real Spack, loaded by real Lmod in bash and zsh."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import check_modules
import pytest
import yaml

from conftest import BUILTIN, ROOT, STATE, git, roots, run, spack_settings, succeed

SHELLS = ("bash", "zsh")


def in_shell(shell: str, checkout: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a clean shell after activation."""
    flags = {"bash": ["--noprofile", "--norc"], "zsh": ["--no-rcs"]}[shell]
    return subprocess.run(
        [shell, *flags, "-c", f". {checkout}/setup/activate.sh && {script}"],
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LMOD_PAGER": "none"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def compiler_of(checkout: Path) -> str:
    """Name and version of the GCC that the set-up verified."""
    facts = json.loads((checkout / ".pagewise" / "setup.json").read_text())
    verified = (entry for entry in facts["compilers"] if entry["name"] == "gcc" and entry["entered"])
    return f"gcc-{next(verified)['version']}"


def expected(checkout: Path, spec: dict) -> dict[str, str]:
    """The variables that a spec's module must set."""
    parameters = spec["parameters"]
    target = spec["arch"]["target"]
    return {
        "PACKAGE": spec["name"],
        "VERSION": spec["version"],
        "COMPILER": compiler_of(checkout),
        "HUGEPAGES": parameters["hugepages"],
        "PREFETCH": parameters["prefetch"],
        "STORES": parameters["stores"],
        "LOOP": parameters["loop"],
        "OPENMP": "on" if parameters["openmp"] else "off",
        "PAPI": "on" if parameters["papi"] else "off",
        "TARGET": target["name"] if isinstance(target, dict) else target,
        "HASH": spec["hash"],
        "BUILDER": "spack",
        "PREFIX": str(checkout / ".pagewise" / "opt" / spec["name"] / f"{spec['version']}-{spec['hash']}"),
    }


def module_of(facts: dict[str, str]) -> str:
    """The module's name according to the naming scheme."""
    configuration = f"{facts['HUGEPAGES']}/{facts['PREFETCH']}-{facts['STORES']}"
    return f"{facts['PACKAGE']}/{facts['VERSION']}/{facts['COMPILER']}/{configuration}"


def modules_in(tree: Path) -> list[str]:
    """The modules of a tree, by their names in Lmod."""
    return sorted(str(file.relative_to(tree).with_suffix("")) for file in tree.rglob("*.lua"))


def test_one_module_per_configuration_and_nothing_else(built: Path) -> None:
    names = sorted(module_of(expected(built, spec)) for spec in roots(built / "envs" / "quick"))
    assert len(names) == 2
    assert modules_in(built / ".pagewise" / "modules" / "quick") == names


def test_every_setting_is_in_every_module(built: Path) -> None:
    for spec in roots(built / "envs" / "quick"):
        facts = expected(built, spec)
        printed = " ".join(f'"${{PAGEWISE_{name}}}"' for name in facts)
        script = f"module load {module_of(facts)} && printf '%s\\n' {printed} \"$PATH\""
        done = in_shell("bash", built, script)
        *values, path = done.stdout.splitlines()
        assert dict(zip(facts, values, strict=True)) == facts
        assert path.split(":")[0] == f"{facts['PREFIX']}/bin"


@pytest.mark.parametrize("shell", SHELLS)
def test_activate_and_load(built: Path, shell: str) -> None:
    names = modules_in(built / ".pagewise" / "modules" / "quick")
    name = next(name for name in names if "/thp/" in name)
    script = f"cd {built}/envs/quick && spack env activate . && module load {name}"
    script += " && pw-schoenauer_triad --version"
    done = in_shell(shell, built, script)
    assert done.returncode == 0, done.stdout
    assert "thp" in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_loading_another_configuration_swaps_the_first_out(built: Path, shell: str) -> None:
    first, second = modules_in(built / ".pagewise" / "modules" / "quick")
    done = in_shell(shell, built, f"module load {first}; module load {second}; echo; module --terse list")
    assert done.stdout.splitlines().count(second) == 1
    assert first not in done.stdout.splitlines()


@pytest.mark.parametrize("command", ["whatis", "help", "spider"])
def test_whatis_help_and_spider_show_the_configuration(built: Path, command: str) -> None:
    facts = expected(built, roots(built / "envs" / "quick")[0])
    output = in_shell("bash", built, f"module {command} {module_of(facts)}").stdout
    for name in facts.keys() - ({"PREFIX"} if command == "whatis" else set()):
        assert facts[name] in output, name


def test_the_fields_of_lmod_describe_the_module(built: Path) -> None:
    shown = in_shell(
        "bash", built, f"module whatis {module_of(expected(built, roots(built / 'envs' / 'quick')[0]))}"
    ).stdout
    fields = {line.split(":")[1].strip() for line in shown.splitlines() if ":" in line}
    assert {"Name", "Version", "Category", "Description", "URL", "Keywords"} <= fields
    keyword = "module keyword prefetching"
    assert "pagewise-micro" in in_shell("bash", built, keyword).stdout


def test_the_default_module_is_the_baseline(built: Path) -> None:
    done = in_shell(
        "bash", built, 'module load pagewise-micro && echo "$PAGEWISE_HUGEPAGES $PAGEWISE_PREFETCH"'
    )
    assert done.stdout.splitlines()[-1] == "none hardware", done.stdout


@pytest.fixture
def users_spack(built: Path, tmp_path: Path) -> dict[str, str]:
    """The settings of a user whose own Spack has the packages of the quick environment, from an upstream."""
    shutil.copytree(STATE / "misc-cache", tmp_path / "indexes")
    repos = {name: str(built / "repos" / "spack_repo" / name) for name in ("externals", "pagewise")}
    settings = spack_settings(
        tmp_path / "config",
        config={"misc_cache": f"{tmp_path}/indexes"},
        repos={**repos, "builtin:": str(BUILTIN)},
        upstreams={"quick": {"install_tree": str((built / ".pagewise" / "opt").resolve())}},
    )
    own = {"SPACK_ROOT": str((STATE / "spack").resolve()), "XDG_CACHE_HOME": f"{tmp_path}/xdg"}
    return {**settings, **own, "MODULEPATH": ""}


def listed(settings: dict[str, str]) -> dict[str, str]:
    """The configurations that pagewise lists without a checkout: modules by hash."""
    runner = {"PAGEWISE_ROOT": "", "PYTHONPATH": str(ROOT / "runners")}
    python = STATE / "venv" / "bin" / "python"
    done = succeed(python, "-m", "pagewise", "list", "configurations", "--json", **settings, **runner)
    return {row["hash"]: row["module"] for row in json.loads(done.stdout)["configurations"]}


def test_pagewise_measures_packages_of_a_users_spack(
    built: Path, users_spack: dict[str, str], tmp_path: Path
) -> None:
    names = {spec["hash"]: module_of(expected(built, spec)) for spec in roots(built / "envs" / "quick")}
    # Spack's own names: the environment describes the configuration.
    assert listed(users_spack).keys() == names.keys()
    selected = next(iter(names))
    loaded = run(
        Path(users_spack["SPACK_ROOT"], "bin", "spack"), "load", "--sh", f"/{selected}", **users_spack
    )
    assert f"PAGEWISE_HASH={selected};" in loaded.stdout

    fork = tmp_path / "fork"
    shutil.copytree(built / "modulefiles", fork / "modulefiles")
    git(tmp_path, "init", "--quiet", str(fork))
    git(fork, "add", ".")
    git(fork, "commit", "--quiet", "--message", "Module scope")
    scope = {
        "git": f"file://{fork}",
        "commit": git(fork, "rev-parse", "HEAD").strip(),
        "paths": ["modulefiles"],
    }
    file = Path(users_spack["SPACK_USER_CONFIG_PATH"], "include.yaml")
    file.write_text(yaml.safe_dump({"include": [scope]}))
    assert listed(users_spack) == {key: f"{name}-{key[:7]}" for key, name in names.items()}


@pytest.fixture
def changed_modules(built: Path):
    """The modules' settings for a test to edit; restores them and the live tree."""
    file = built / "modulefiles" / "modules.yaml"
    before = file.read_text()
    yield file
    file.write_text(before)
    assert run(built / "setup" / "modules", "quick").returncode == 0


def test_two_specs_with_one_name_are_an_error(built: Path, changed_modules: Path) -> None:
    live = built / ".pagewise" / "modules" / "quick"
    before, trees = modules_in(live), set((built / ".pagewise" / "module-trees").iterdir())
    settings = yaml.safe_load(changed_modules.read_text())
    lmod = settings["modules"]["default"]["lmod"]
    lmod["projections"] = dict.fromkeys(lmod["projections"], "{name}/{version}")
    changed_modules.write_text(yaml.safe_dump(settings))
    done = run(built / "setup" / "modules", "quick")
    assert done.returncode == 4
    assert "Name clashes" in done.stdout
    assert modules_in(live) == before
    assert set((built / ".pagewise" / "module-trees").iterdir()) == trees


def test_a_module_that_cannot_be_written_is_an_error(built: Path) -> None:
    template = built / "modulefiles" / "configuration.lua"
    before = template.read_text()
    live = built / ".pagewise" / "modules" / "quick"
    try:
        template.write_text(before + '{{ spec.variants["nonesuch"].value }}\n')
        done = run(built / "setup" / "modules", "quick")
        assert done.returncode == 4
        assert len(modules_in(live)) == 2
    finally:
        template.write_text(before)
        assert run(built / "setup" / "modules", "quick").returncode == 0


def test_a_reader_never_sees_an_incomplete_tree(built: Path, changed_modules: Path) -> None:
    live = built / ".pagewise" / "modules" / "quick"
    complete = modules_in(live)
    seen: set[int] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            # Follows the link each time, as a shell does.
            seen.add(sum((live / f"{name}.lua").exists() for name in complete))

    reader = threading.Thread(target=read)
    reader.start()
    target = live.readlink()
    changed_modules.write_text(changed_modules.read_text() + "# changed\n")
    done = run(built / "setup" / "modules", "quick")
    stop.set()
    reader.join()
    assert done.returncode == 0, done.stdout
    assert live.readlink() != target
    # Programs that still read the old tree can finish.
    assert target.exists()
    assert seen == {len(complete)}
    assert modules_in(live) == complete


def test_faults_of_a_tree_are_listed(tmp_path: Path) -> None:
    faults = check_modules.faults
    lock, tree = tmp_path / "spack.lock", tmp_path / "tree"
    lock.write_text(json.dumps({"roots": [{"hash": h, "spec": f"spec {h}"} for h in ("a", "b")]}))
    assert len(faults(lock, tree)) == 2

    files = {name: tree / "Core" / f"{name}.lua" for name in ("a", "b", "c", "stray")}
    files["a"].parent.mkdir(parents=True)
    for name in ("a", "stray"):
        files[name].touch()
    index = {name: {"path": str(files[name]), "use_name": name} for name in ("a", "b", "c")}
    (tree / "module-index.yaml").write_text(yaml.safe_dump({"module_index": index}))
    written, root, stray = faults(lock, tree)
    assert (written.split()[0], root.split()[0], stray.split()[0]) == ("b", "c", str(files["stray"]))
