"""The environments of third-party codes: concretized with the machine's packages, and their modules."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from conftest import STATE, roots, spack, succeed

SITE = STATE / "site" / "packages.yaml"
CODES = {"hpcc", "hpl", "stream", "npb", "lulesh", "minife", "cloverleaf"}

needs_hpcc = pytest.mark.skipif(
    not SITE.exists() or "hpcc@" not in SITE.read_text(), reason="hpcc is not installed"
)


@needs_hpcc
def test_codes_of_the_distribution_get_modules_and_nothing_is_built(checkout: Path) -> None:
    folder = checkout / "envs" / "hpcc"
    folder.mkdir()
    content = yaml.safe_load((checkout / "envs" / "suites" / "spack.yaml").read_text())
    content["spack"]["specs"] = ["hpcc"]
    text = yaml.safe_dump(content).replace("- modulefiles", "- ../suites/modulefiles")
    (folder / "spack.yaml").write_text(text.replace("sites/suites", "sites/hpcc"))
    succeed(checkout / "setup" / "stack", "hpcc")
    specs = {spec["name"]: spec for spec in roots(folder)}
    assert specs["hpcc"]["external"]["path"] == "/usr"
    module = checkout / ".pagewise/modules/hpcc" / "hpcc" / f"{specs['hpcc']['version']}.lua"
    text = module.read_text()
    assert 'setenv("PAGEWISE_SUITE", "hpcc")' in text and "PAGEWISE_PACKAGE" not in text


@pytest.mark.release
def test_all_codes_concretize(checkout: Path) -> None:
    folder = checkout / "envs" / "suites"
    spack(checkout, folder, "concretize", "--force", "--quiet")
    specs = {spec["name"]: spec for spec in roots(folder)}
    assert specs.keys() == CODES
    if not needs_hpcc.args[0]:
        assert "external" in specs["hpcc"]


@pytest.mark.release
def test_npb_and_hpcc_are_built_for_old_and_new_processors(checkout: Path) -> None:
    """Each build has another module, by which `compare --build` names it."""
    folder = checkout / "envs" / "targets-suites"
    succeed(checkout / "setup" / "solve", "targets-suites")
    specs = roots(folder)
    assert not any("external" in spec for spec in specs)
    script = folder / "names.py"
    script.write_text(NAMES)
    done = spack(checkout, folder, "python", script)
    names = set(done.stdout.split())
    assert {name.split("/")[0] for name in names} == {"hpcc", "npb"} and len(names) == len(specs) == 6
    assert {name.rpartition("-")[2] for name in names} >= {"tuned"}
    assert sum(name.endswith("/native") for name in names) == 2


NAMES = """
import spack.config
import spack.environment
import spack.projections
names = spack.config.get("modules:default:lmod:projections")
for root in spack.environment.active_environment().concrete_roots():
    print(root.format_path(spack.projections.get_projection(names, root)))
"""
