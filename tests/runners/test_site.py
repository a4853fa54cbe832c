"""Sites: those of the checkout are consistent; all faults are reported at once; the template is complete."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from pagewise.core.errors import FormatError, SelectionError
from pagewise.stack.site import read_site, site_names, toolchain_compilers
from scripts import called

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEWISE_ROOT", str(ROOT))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with this checkout's sites, and detected packages."""
    for folder in ("sites", "toolchains"):
        shutil.copytree(ROOT / "envs" / folder, tmp_path / "envs" / folder)
    state = tmp_path / ".pagewise"
    (state / "detected").mkdir(parents=True)
    packages = yaml.safe_load((ROOT / "envs/sites/debian/packages.yaml").read_text())
    (state / "detected" / "packages.yaml").write_text(json.dumps(packages))
    definitions = {"definitions": [{"toolchains": ["%pagewise-gcc", "%pagewise-llvm"]}]}
    (state / "detected" / "definitions.yaml").write_text(json.dumps(definitions))
    monkeypatch.setenv("PAGEWISE_ROOT", str(tmp_path))
    return tmp_path


def edit(file: Path, before: str, after: str) -> None:
    """Replace a text in a file."""
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_every_site_of_the_checkout_is_valid_with_known_flag_sets_and_their_combinations() -> None:
    known = toolchain_compilers()
    assert site_names() == ["debian", "fugaku", "grace", "ookami", "rocky"]
    for name in site_names():
        site = read_site(name)
        assert site.name == name
        lists = {list_name for entry in site.definitions["definitions"] for list_name in entry}
        assert lists >= {"quick", "gcc_and_llvm", "generic", "natives", "vector_math", "widths", "targets"}
        named = re.findall(r"%(pagewise-[\w-]+)", json.dumps(site.definitions))
        assert all(known[flags] <= site.packages.keys() for flags in named), name


def test_all_faults_are_reported_at_once(checkout: Path) -> None:
    folder = checkout / "envs" / "sites" / "debian"
    edit(folder / "site.yaml", "base_kib: 4", "base_kib: 5")
    edit(folder / "site.yaml", "modules:", "scheduler: {kind: slurm}\nmodules:")
    edit(folder / "packages.yaml", "cmake@=3.25.1", "cmake")
    with pytest.raises(FormatError) as refused:
        read_site("debian")
    for part in ("pages.base_kib", "scheduler", "packages.yaml: cmake"):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("site", "file", "before", "after", "named"),
    [
        ("debian", "site.yaml", "name: debian", "name: bookworm", "site.yaml|name|'bookworm'"),
        ("debian", "definitions.yaml", "llvm", "nag", "toolchains|'pagewise-nag'"),
        ("debian", "packages.yaml", ", fortran: /usr/bin/gfortran-12", "", "gcc@|fortran"),
        ("debian", "packages.yaml", "  ninja:", "  meson:", "packages.yaml|ninja"),
        ("debian", "packages.yaml", "prefix: /usr/lib/llvm-22", "prefix: llvm-22", "'llvm-22'"),
        ("ookami", "packages.yaml", "  fujitsu-libmpg:", "  libmpg:", "fujitsu-libmpg|fjmpg"),
        ("ookami", "packages.yaml", "[a64fx]", "[zen4]", "all: {target: [a64fx]}"),
        (
            "debian",
            "packages.yaml",
            "  gcc:",
            "  all: {target: [zen4]}\n  gcc:",
            "packages.yaml|all: target|site.yaml",
        ),
        ("debian", "definitions.yaml", "- toolchains:", "- chains:", "definitions.yaml|toolchains"),
        ("grace", "definitions.yaml", "target=neoverse_v2 ", "target=zen4 ", "zen4"),
        ("ookami", "packages.yaml", "  acfl:", "  arm:", "acfl|pagewise-arm-a64fx"),
    ],
)
def test_faults_of_a_site_are_reported(
    checkout: Path, *, site: str, file: str, before: str, after: str, named: str
) -> None:
    edit(checkout / "envs" / "sites" / site / file, before, after)
    with pytest.raises(FormatError) as refused:
        read_site(site)
    lines = refused.value.message.splitlines()
    assert any(all(part in line for part in named.split("|")) for line in lines)


def test_missing_prerequisites_are_reported_on_request(checkout: Path) -> None:
    read_site("fugaku")
    with pytest.raises(FormatError) as refused:
        read_site("fugaku", here=True)
    assert "frt" in str(refused.value)
    assert "/opt/FJSVxos/mmm" in str(refused.value)


def test_an_unknown_site_is_refused_with_the_known_ones(checkout: Path) -> None:
    with pytest.raises(SelectionError, match="'summit'") as refused:
        read_site("summit")
    assert "fugaku, grace, ookami" in str(refused.value)


@pytest.mark.long
def test_the_documented_commands_make_a_site_of_the_detected_one(checkout: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "new-site.md").read_text()
    lines = re.findall(r"^    ((?:mkdir|cp|sed) .*envs/sites/mine.*)$", text, re.M)
    assert len(lines) == 3
    done = called(["sh", "-ec", "\n".join(lines)], cwd=checkout)
    assert done.returncode == 0, done.stderr
    site = read_site("mine")
    assert site.data.target is None and site.toolchains == ["pagewise-gcc", "pagewise-llvm"]
    assert site.packages == read_site("debian").packages
    command = [sys.executable, "-m", "pagewise", "site"]
    variables = {**os.environ, "PAGEWISE_ROOT": str(checkout), "PYTHONPATH": str(ROOT / "runners")}
    assert "mine" in called([*command, "list"], env=variables).stdout
    assert called([*command, "check", "mine"], env=variables).returncode == 0
