"""pagewise without a checkout: the modules of the user's own Spack, of MODULEPATH; what needs a checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from pagewise.core.errors import SetupError
from pagewise.stack.paths import checkout, find_spack, module_tree, spack_tree, spack_version
from scripts import called, write_script
from stage import ROOT, RUNNERS, Stage

SPACK = """#!/bin/sh
# Copies the stage's modules to the folder that `-c modules:default:roots:lmod:FOLDER` names.
[ -z "${PYTHONPATH:-}" ] || exit 7
[ "$1" != --version ] || { echo "1.1.0 (0123456789)"; exit 0; }
[ -z "${FAKE_FAILS:-}" ] || { echo "==> Error: name clashes"; exit 1; }
for word; do
    case ${word} in modules:default:roots:lmod:*) folder=${word#modules:default:roots:lmod:} ;; esac
done
cp -R "${FAKE_MODULES}" "${folder}/Core"
find "${folder}/Core" -name '*.lua' -exec sh -c 'echo "-- created by spack on $(date +%N)" >>"$1"' sh {} ';'
[ -z "${FAKE_SKIPS:-}" ] || echo "${folder}/Core/pagewise-micro/x.lua: unknown namespace"
"""


@pytest.fixture
def installed(small: Stage) -> Stage:
    """A stage without a checkout, whose user has a Spack with the stage's configurations."""
    write_script(small.folder / "spack" / "bin" / "spack", SPACK)
    small.environment = {
        "PAGEWISE_ROOT": "",
        "PAGEWISE_MODULES": "",
        "MODULEPATH": "",
        "SPACK_ROOT": str(small.folder / "spack"),
        "FAKE_MODULES": str(small.modules),
        "XDG_CACHE_HOME": str(small.folder / "cache"),
    }
    return small


def listed(stage: Stage) -> tuple[Path, list[str]]:
    """The module tree and the modules that `pagewise list` shows."""
    done = stage.run("list", "configurations", "--json", code=0)
    data = json.loads(done.stdout)
    return Path(data["tree"]), sorted(row["module"] for row in data["configurations"])


@pytest.mark.long
def test_the_users_spack_is_listed_measured_reported_and_checked(installed: Stage):
    tree, names = listed(installed)
    assert tree.is_relative_to(installed.folder / "cache") and len(names) == 3
    assert listed(installed) == (tree, names)
    installed.run("kernels", "--rounds", "1", "--no-sweep", "--kernels", "triad", code=0)
    manifest = json.loads((installed.result() / "manifest.json").read_text())
    facts = manifest["provenance"]
    # The commit of the user's own folder would be wrong.
    assert facts["spack_version"] == "1.1.0" and facts["project_commit"] is None
    assert Path(manifest["modules"]["tree"]) == tree
    installed.run("report", str(installed.result()), code=0)
    checked = json.loads(installed.run("doctor", "--no-noise", "--json").stdout)
    actual = {row["name"]: row for row in checked["findings"]}
    assert actual["Spack"]["state"] == actual["modules"]["state"] == "good"
    assert "set-up" not in actual and "any" not in actual
    # Another installation is another tree; results still find the modules that they measured.
    installed.add("gcc-13.1.0", ("none", "hardware", "regular"), [])
    other, more = listed(installed)
    assert other != tree and len(more) == 4 and tree.is_dir()
    assert sorted(other.parent.iterdir()) == sorted([tree, other])


def test_a_module_tree_on_modulepath_is_enough(installed: Stage):
    other = installed.folder / "others"
    other.mkdir()
    (other / "app.lua").write_text('setenv("APP", "1")\n')
    installed.environment |= {"SPACK_ROOT": "", "MODULEPATH": f"/nonexistent:{other}:{installed.modules}"}
    assert listed(installed)[0] == installed.modules


@pytest.mark.parametrize("fault", ["FAKE_FAILS", "FAKE_SKIPS", "empty", "no Spack"])
def test_packages_that_spack_does_not_provide_are_an_error(installed: Stage, fault: str):
    if fault == "empty":
        shutil.rmtree(installed.modules)
        installed.modules.mkdir()
    elif fault == "no Spack":
        installed.environment |= {"SPACK_ROOT": "", "PATH": "/usr/bin:/bin"}
    else:
        installed.environment[fault] = "1"
    environment = {**installed.environment, "PYTHONPATH": "/x"}
    with patch.dict(os.environ, environment), pytest.raises(SetupError):
        spack_tree()
    folder = installed.folder / "cache" / "pagewise" / "modules"
    assert not folder.is_dir() or not list(folder.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [("list", "--env", "quick"), ("site", "list"), ("simulate", "ember"), ("compare", "--suite", "stream")],
)
def test_commands_that_need_a_checkout_end_as_not_set_up(installed: Stage, arguments: tuple[str, ...]):
    installed.run(*arguments, code=3)


def test_places_of_spack(tmp_path: Path):
    root, on_path, by_package = (
        write_script(tmp_path / name / "bin" / "spack", "#!/bin/sh\n") for name in ("root", "path", "package")
    )
    with patch.dict(os.environ, {"PAGEWISE_SPACK": str(by_package)}, clear=True) as environ:
        assert find_spack() == by_package
        environ["PATH"] = str(on_path.parent)
        assert find_spack() == on_path
        environ["SPACK_ROOT"] = str(root.parents[1])
        assert find_spack() == root
        environ.clear()
        assert spack_version() is None


def test_an_empty_root_is_not_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".pagewise").mkdir()
    monkeypatch.chdir(tmp_path)
    with patch.dict(os.environ, clear=True) as environ:
        assert checkout() == tmp_path
        environ |= {"PAGEWISE_ROOT": "", "MODULEPATH": str(tmp_path)}
        assert checkout() is None
        with pytest.raises(SetupError):
            module_tree("quick", None)


def test_the_recipe_and_pip_ask_for_the_same_oldest_versions():
    recipe = (ROOT / "repos/spack_repo/pagewise/packages/pagewise/package.py").read_text()
    text = (RUNNERS / "pyproject.toml").read_text().partition("dev = [")[0]
    ranges = re.findall(r'"([\w-]+)>=([\d.]+),<\d+"', text)
    assert len(ranges) > 12
    for package, oldest in ranges:
        name = {"duckdb": "duckdb", "reframe-hpc": "reframe"}.get(package, f"py-{package.lower()}")
        assert f'depends_on("{name}@{oldest}:' in recipe


@pytest.mark.long
def test_an_installed_package_has_all_files_and_runs_without_the_checkout(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    shutil.copytree(RUNNERS, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    code = "import setuptools; setuptools.setup()"
    subprocess.run(
        [sys.executable, "-c", code, "--quiet", "build", "--build-lib", built], cwd=source, check=True
    )
    packaged, installed = (
        {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()}
        for folder in (source / "pagewise", built / "pagewise")
    )
    assert packaged == installed
    done = called(
        [sys.executable, "-P", "-m", "pagewise", "list", "policies"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(built)},
    )
    assert done.returncode == 0 and "hugetlbfs" in done.stdout, done.stderr
